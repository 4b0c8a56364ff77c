package tally

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// liveSeconds is the number of past seconds for which rates are kept.
const liveSeconds = 256

// liveSums is what a screen shows of the latest moments.
type liveSums struct {
	newest *optrace.Graph       // the newest decode graph
	tokens [liveSeconds]float64 // decoded tokens, by second
	second [liveSeconds]int64   // the second of each entry, counted from 1
}

// addGraph keeps the newest decode graph.
func (l *liveSums) addGraph(_ *Tally, g *optrace.Graph) { l.newest = g }

// addCall spreads the tokens of a decode evenly over its time.
func (l *liveSums) addCall(begin, end time.Duration, tokens int) {
	if tokens <= 0 || begin < 0 || end <= begin {
		return
	}
	each := float64(tokens) / (end - begin).Seconds()
	from := max(begin, end-liveSeconds*time.Second)
	for from < end {
		to := min(end, from-from%time.Second+time.Second)
		if to <= from { // overflow
			return
		}
		l.add(from, each*(to-from).Seconds())
		from = to
	}
}

// add adds tokens to the second of a moment.
func (l *liveSums) add(at time.Duration, tokens float64) {
	second := int64(at/time.Second) + 1
	i := second % liveSeconds
	switch {
	case l.second[i] > second: // too old
	case l.second[i] < second:
		l.second[i], l.tokens[i] = second, tokens
	default:
		l.tokens[i] += tokens
	}
}

// Rates returns decode tokens per second over the last n whole seconds before now, a moment on
// the clock of the events, the newest last; NaN if nothing was decoded. It covers 255 seconds.
func (t *Tally) Rates(now time.Duration, n int) []float64 {
	rates := make([]float64, max(n, 0))
	last := int64(now / time.Second) // counted from 1: the second before the one of now
	for i := range rates {
		rates[i] = math.NaN()
		second := last - int64(len(rates)-1-i)
		if second > 0 && t.live.second[second%liveSeconds] == second {
			rates[i] = t.live.tokens[second%liveSeconds]
		}
	}
	return rates
}

// Live returns the newest complete decode graph, the zero one before the first.
func (t *Tally) Live() optrace.LiveGraph {
	if t.live.newest == nil {
		return optrace.LiveGraph{}
	}
	return t.liveGraph(t.live.newest)
}

// liveGraph converts a graph for a timeline. Spans are clipped to the graph.
func (t *Tally) liveGraph(g *optrace.Graph) optrace.LiveGraph {
	l := optrace.LiveGraph{Index: g.Index, Phase: phaseIndex(g.Phase).String(), Tokens: max(g.Tokens, 0), Time: stat.Elapsed(g.Begin, g.End), Threads: make([]optrace.LiveThread, len(g.Threads))}
	for i := range g.Threads {
		thread := &g.Threads[i]
		l.Threads[i] = optrace.LiveThread{Index: i, TID: thread.TID, Spans: make([]optrace.LiveSpan, len(thread.Spans))}
		for k := range thread.Spans {
			p := &thread.Spans[k]
			f := t.factsOf(p.Operator)
			begin := min(stat.Elapsed(g.Begin, p.Begin), l.Time)
			end := min(max(stat.Elapsed(g.Begin, waitsUntil(thread, k, g.End)), begin), l.Time)
			off := min(max(p.Off, 0), end-begin)
			l.Threads[i].Spans[k] = optrace.LiveSpan{
				Op: f.op, Name: f.name, Begin: begin, End: end, Sync: min(stat.Elapsed(max(p.OffWaiting, 0), max(p.Sync, 0)), end-begin-off), Off: off,
			}
		}
	}
	return l
}
