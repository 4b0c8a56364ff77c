package perf

// Constants returns the values of all constants of the machine by name.
func (m *Machine) Constants() map[string]float64 {
	out := map[string]float64{}
	for _, s := range specs {
		out[s.name] = *s.field(&m.c)
	}
	return out
}
