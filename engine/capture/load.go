package capture

import "time"

// Load is the CPU use of a tree between two samples.
type Load struct {
	From, To time.Duration
	Cores    float64 // mean
}

// Load returns the CPU use of the tree over time: every interval between samples that did not fail.
// Time of a process that was seen only after it ended is spread evenly over the time in which it
// may have been used. The result is nil without two samples, or if a sample refers to a process
// that the tree does not have.
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
