package stat

import "encoding/json"

// Opt is a number that may be missing. Absent is not zero: the zero Opt is
// absent, and Some(0) is a measured zero.
type Opt struct {
	V  float64
	OK bool
}

// Some returns a present value.
func Some(v float64) Opt { return Opt{V: v, OK: true} }

// None is the absent value.
var None = Opt{}

// Or returns the value, or fallback where it is absent.
func (o Opt) Or(fallback float64) float64 {
	if o.OK {
		return o.V
	}
	return fallback
}

// Max returns the larger of two optional values; an absent one loses.
func (o Opt) Max(p Opt) Opt {
	if !o.OK || (p.OK && p.V > o.V) {
		return p
	}
	return o
}

// Plus adds two optional values. One absent side counts as nothing; both
// absent stay absent.
func (o Opt) Plus(p Opt) Opt {
	switch {
	case !o.OK:
		return p
	case !p.OK:
		return o
	}
	return Some(o.V + p.V)
}

// Div returns o/p, absent where either is or where p is not positive.
func (o Opt) Div(p Opt) Opt {
	if !o.OK || !p.OK || p.V <= 0 {
		return None
	}
	return Some(o.V / p.V)
}

// Times returns o*f, absent where o is.
func (o Opt) Times(f float64) Opt {
	if !o.OK {
		return None
	}
	return Some(o.V * f)
}

// MarshalJSON writes null for an absent value.
func (o Opt) MarshalJSON() ([]byte, error) {
	if !o.OK {
		return []byte("null"), nil
	}
	return json.Marshal(o.V)
}

// UnmarshalJSON reads null as absent.
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
