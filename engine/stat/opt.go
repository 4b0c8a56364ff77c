package stat

import "encoding/json"

// Opt is an optional number. The zero Opt is absent; Some(0) is a measured zero.
type Opt struct {
	V  float64
	OK bool
}

// Some returns a present value.
func Some(v float64) Opt { return Opt{V: v, OK: true} }

// None is the absent value.
var None = Opt{}

// Or returns the value, or fallback if it is absent.
func (o Opt) Or(fallback float64) float64 {
	if o.OK {
		return o.V
	}
	return fallback
}

// Max returns the larger value. If one is absent, it returns the other.
func (o Opt) Max(p Opt) Opt {
	if !o.OK || (p.OK && p.V > o.V) {
		return p
	}
	return o
}

// Plus returns the sum. An absent side counts as zero; if both are absent, so is the sum.
func (o Opt) Plus(p Opt) Opt {
	switch {
	case !o.OK:
		return p
	case !p.OK:
		return o
	}
	return Some(o.V + p.V)
}

// Div returns o/p, absent if either is or if p is not positive.
func (o Opt) Div(p Opt) Opt {
	if !o.OK || !p.OK || p.V <= 0 {
		return None
	}
	return Some(o.V / p.V)
}

// Times returns o*f, absent if o is.
func (o Opt) Times(f float64) Opt {
	if !o.OK {
		return None
	}
	return Some(o.V * f)
}

// Map returns f of the value, absent if o is.
func (o Opt) Map(f func(float64) float64) Opt {
	if !o.OK {
		return None
	}
	return Some(f(o.V))
}

// MarshalJSON encodes the value, or null if it is absent or not finite.
func (o Opt) MarshalJSON() ([]byte, error) {
	if !o.Finite().OK {
		return []byte("null"), nil
	}
	return json.Marshal(o.V)
}

// UnmarshalJSON decodes a number; null is absent.
func (o *Opt) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*o = None
		return nil
	}
	if err := json.Unmarshal(b, &o.V); err != nil {
		return err
	}
	o.OK = true
	return nil
}
