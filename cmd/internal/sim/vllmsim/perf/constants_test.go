package perf

// Constant is one number of the model, as a machine uses it.
type Constant struct {
	Name   string
	Value  float64
	Unit   string // "1" for a ratio
	Origin Origin
	Note   string
}

// Constants lists every constant of the machine with its origin.
func (m *Machine) Constants() []Constant {
	out := make([]Constant, 0, len(specs))
	for _, s := range specs {
		k := Constant{Name: s.name, Value: *s.field(&m.c), Unit: s.unit, Origin: s.origin, Note: s.note}
		if m.cpu {
			k.Origin = Assumed
		}
		for _, g := range m.given {
			if g.Name == s.name {
				k.Origin = DeviceFile
			}
		}
		out = append(out, k)
	}
	return out
}
