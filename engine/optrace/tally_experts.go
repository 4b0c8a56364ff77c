package optrace

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxMixtures is the number of layers with a mixture that are told apart.
const maxMixtures = 512

const (
	// disturbedMixture is the share of a mixture's time off a CPU above which it says
	// nothing of its experts: a lane that another process puts off for a few
	// milliseconds makes them look tens of times slower.
	disturbedMixture = 0.01
	// fewestTimes are the batches that the time of an expert needs to be held against
	// that of others.
	fewestTimes = 5
)

// mixed is a matmul of a mixture.
type mixed struct {
	layer     int
	experts   int64
	time, off time.Duration // off the CPU, of all lanes
	choice    *ExpertChoice
}

// expertSums adds mixtures up.
type expertSums struct {
	of     map[int]*expertSum // by layer
	count  int64              // of experts of a layer, the largest
	used   int
	tokens int64
}

// expertSum adds a layer's mixture up.
type expertSum struct {
	chosen []int64
	tokens int64
	// By expert the time of the mixture in batches of one token that used it and that
	// nothing disturbed, and how many these were.
	time  []time.Duration
	calls []int64
}

// addGraph adds the mixtures of a graph, each layer's once: its matmuls share the ids.
func (s *expertSums) addGraph(t *Tally, one *graphSums) {
	for i := range one.mixed {
		m := &one.mixed[i]
		if slices.ContainsFunc(one.mixed[:i], func(o mixed) bool { return o.layer == m.layer }) {
			continue
		}
		choice, took, off := m.choice, time.Duration(0), time.Duration(0)
		for j := i; j < len(one.mixed); j++ {
			if o := &one.mixed[j]; o.layer == m.layer {
				took, off = plus(took, o.time), plus(off, o.off)
				if choice == nil {
					choice = o.choice
				}
			}
		}
		s.count = max(s.count, min(max(m.experts, 0), maxExperts))
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

// add adds one choice of a layer's mixture, and is false where there is no room for it.
// A time of 0 is not known.
func (s *expertSums) add(layer int, c *ExpertChoice, experts int64, took time.Duration) bool {
	l := s.of[layer]
	if l == nil {
		if len(s.of) >= maxMixtures {
			return false
		}
		l = &expertSum{}
		s.of[layer] = l
	}
	if c.Used <= 0 {
		return true
	}
	limit := int64(maxExperts)
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
			l.time[id] = plus(l.time[id], took)
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

// summary is what the mixtures came to, nil where there was none.
func (s *expertSums) summary() *Experts {
	if s.count == 0 && len(s.of) == 0 {
		return nil
	}
	for _, l := range s.of {
		s.count = max(s.count, int64(len(l.chosen)))
	}
	e := &Experts{Count: int(s.count), Used: s.used, Tokens: s.tokens, Layers: []ExpertLayer{}}
	var chosen, times []float64
	for _, layer := range sorted(s.of) {
		l := s.of[layer]
		l.grow(int(s.count))
		row := ExpertLayer{Layer: layer, Chosen: slices.Clone(l.chosen), Time: make([]stat.Opt, len(l.chosen))}
		counts, means := make([]float64, len(l.chosen)), []float64{}
		for id, n := range l.chosen {
			counts[id] = float64(n)
			if l.calls[id] > 0 {
				mean := l.time[id].Seconds() / float64(l.calls[id])
				row.Time[id] = finite(mean)
				if l.calls[id] >= fewestTimes {
					means = append(means, mean)
				}
			}
		}
		row.CV = variation(counts)
		if l.tokens > 0 {
			row.Top = finite(float64(slices.Max(l.chosen)) / float64(l.tokens))
		}
		chosen = append(chosen, relative(counts)...)
		if len(means) > 1 { // one alone varies from nothing
			times = append(times, relative(means)...)
		}
		e.Layers = append(e.Layers, row)
	}
	e.CV, e.TimeCV = variation(chosen), variation(times)
	return e
}

// relative are numbers over their mean, none where it is not positive: layers can then
// be put together whatever one of them has more of.
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
