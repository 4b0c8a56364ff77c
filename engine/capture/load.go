package capture

import "time"

// Load is the CPU of a tree between two looks.
type Load struct {
	From, To time.Duration
	Cores    float64 // mean
}

// Load is the CPU of the tree over time: every interval between looks that did not
// fail. Time of a process that is only seen after it ended counts evenly from when it
// may have been used. It is nil where there are no two looks, or where one names a
// process that the tree does not have.
func (t *Tree) Load() []Load {
	for i := range t.Samples {
		for _, p := range t.Samples[i].Processes {
			if p.Process < 0 || p.Process >= len(t.Processes) {
				return nil
			}
		}
	}
	g := t.grow()
	if len(g.looks) < 2 {
		return nil
	}
	used := make([]float64, len(g.looks)) // seconds
	sum := g.total()
	for k := 1; k < len(g.looks); k++ {
		total := sum[k].Seconds()
		first := k - 1
		if s := g.since[k]; s >= 0 {
			first = min(s, first)
		}
		whole := (g.looks[k].At - g.looks[first].At).Seconds()
		for i := first + 1; i <= k && whole > 0; i++ {
			used[i] += total * (g.looks[i].At - g.looks[i-1].At).Seconds() / whole
		}
	}
	var out []Load
	for k := 1; k < len(g.looks); k++ {
		if from, to := g.looks[k-1].At, g.looks[k].At; to > from {
			out = append(out, Load{From: from, To: to, Cores: used[k] / (to - from).Seconds()})
		}
	}
	return out
}
