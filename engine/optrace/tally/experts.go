package tally

import (
	"maps"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxMixtures is the number of layers with a mixture that are distinguished.
const maxMixtures = 512

const (
	// disturbedMixture is the share of a mixture's time off a CPU above which its time is
	// ignored: a thread that another process preempts for a few milliseconds makes its experts
	// look tens of times slower.
	disturbedMixture = 0.01
	// fewestTimes is the number of batches that the time of an expert needs to be compared with
	// that of others.
	fewestTimes = 5
)

// mixed is a matmul of a mixture.
type mixed struct {
	layer     int
	experts   int64
	time, off time.Duration // off is the time off the CPU, summed over threads
	choice    *optrace.ExpertChoice
}

// expertSums sums up mixtures.
type expertSums struct {
	of     bounded[int, expertSum] // by layer
	count  int64                   // largest number of experts of a layer
	used   int
	tokens int64
}

// expertSum sums up a layer's mixture.
type expertSum struct {
	chosen []int64
	tokens int64
	// time is, by expert, the time of the mixture in undisturbed batches of one token that used
	// it, and calls the number of these batches.
	time  []time.Duration
	calls []int64
}

// addGraph adds the mixtures of a graph, one per layer, since its matmuls share the ids.
func (s *expertSums) addGraph(t *Tally, one *graphSums) {
	for i := range one.mixed {
		m := &one.mixed[i]
		if slices.ContainsFunc(one.mixed[:i], func(o mixed) bool { return o.layer == m.layer }) {
			continue
		}
		choice, took, off := m.choice, time.Duration(0), time.Duration(0)
		for j := i; j < len(one.mixed); j++ {
			if o := &one.mixed[j]; o.layer == m.layer {
				took, off = stat.AddSaturating(took, o.time), stat.AddSaturating(off, o.off)
				if choice == nil {
					choice = o.choice
				}
			}
		}
		s.count = max(s.count, min(max(m.experts, 0), optrace.MaxExperts))
		if choice == nil {
			continue
		}
		layer := m.layer
		if layer < 0 {
			layer = choice.Layer
		}
		if float64(off) > disturbedMixture*float64(took) {
			took = 0
		}
		t.overflow = t.overflow || !s.add(layer, choice, m.experts, took)
	}
}

// add adds one choice of a layer's mixture, and returns false if there is no room for it. A
// time of 0 is unknown.
func (s *expertSums) add(layer int, c *optrace.ExpertChoice, experts int64, took time.Duration) bool {
	l := s.of.get(layer)
	if l == nil {
		return false
	}
	if c.Used <= 0 {
		return true
	}
	limit := int64(optrace.MaxExperts)
	if experts > 0 {
		limit = min(limit, experts)
	}
	rows := int64(len(c.IDs) / c.Used)
	s.used = max(s.used, c.Used)
	s.tokens += rows
	l.tokens += rows
	for _, id := range c.IDs[:rows*int64(c.Used)] {
		if id < 0 || int64(id) >= limit {
			continue
		}
		l.grow(int(id) + 1)
		l.chosen[id]++
		if took > 0 && rows == 1 && c.Tokens <= 1 {
			l.time[id] = stat.AddSaturating(l.time[id], took)
			l.calls[id]++
		}
	}
	return true
}

// grow makes room for n experts.
func (l *expertSum) grow(n int) {
	if n -= len(l.chosen); n > 0 {
		l.chosen = append(l.chosen, make([]int64, n)...)
		l.time = append(l.time, make([]time.Duration, n)...)
		l.calls = append(l.calls, make([]int64, n)...)
	}
}

// summary returns the figures of the mixtures, nil if there were none.
func (s *expertSums) summary() *optrace.Experts {
	if s.count == 0 && len(s.of.of) == 0 {
		return nil
	}
	for _, l := range s.of.of {
		s.count = max(s.count, int64(len(l.chosen)))
	}
	e := &optrace.Experts{Count: int(s.count), Used: s.used, Tokens: s.tokens, Layers: []optrace.ExpertLayer{}}
	var chosen, times []float64
	for _, layer := range slices.Sorted(maps.Keys(s.of.of)) {
		l := s.of.of[layer]
		l.grow(int(s.count))
		row := optrace.ExpertLayer{Layer: layer, Chosen: slices.Clone(l.chosen), Time: make([]stat.Opt, len(l.chosen))}
		counts, means := make([]float64, len(l.chosen)), []float64{}
		for id, n := range l.chosen {
			counts[id] = float64(n)
			if l.calls[id] > 0 {
				mean := l.time[id].Seconds() / float64(l.calls[id])
				row.Time[id] = stat.Finite(mean)
				if l.calls[id] >= fewestTimes {
					means = append(means, mean)
				}
			}
		}
		row.CV = stat.Variation(counts)
		if l.tokens > 0 {
			row.Top = stat.Finite(float64(slices.Max(l.chosen)) / float64(l.tokens))
		}
		chosen = append(chosen, relative(counts)...)
		if len(means) > 1 { // a single mean has no variation
			times = append(times, relative(means)...)
		}
		e.Layers = append(e.Layers, row)
	}
	e.CV, e.TimeCV = stat.Variation(chosen), stat.Variation(times)
	return e
}

// relative returns numbers divided by their mean, so that layers can be pooled; nil if the mean
// is not positive.
func relative(of []float64) []float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	if sum <= 0 {
		return nil
	}
	out := make([]float64, len(of))
	for i, v := range of {
		out[i] = v * float64(len(of)) / sum
	}
	return out
}
