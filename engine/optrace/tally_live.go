package optrace

import (
	"math"
	"time"
)

// liveSeconds is how far back rates by the second are kept.
const liveSeconds = 256

// liveSums holds what a screen shows of the last moments.
type liveSums struct {
	newest *Graph               // the newest decode graph
	tokens [liveSeconds]float64 // decoded, by second
	second [liveSeconds]int64   // which second it is, counted from 1
}

// addGraph remembers the newest decode graph.
func (l *liveSums) addGraph(_ *Tally, g *Graph) { l.newest = g }

// addCall spreads the tokens of a decode evenly over the time that it took.
func (l *liveSums) addCall(begin, end time.Duration, tokens int) {
	if tokens <= 0 || begin < 0 || end <= begin {
		return
	}
	each := float64(tokens) / (end - begin).Seconds()
	from := max(begin, end-liveSeconds*time.Second)
	for from < end {
		to := min(end, from-from%time.Second+time.Second)
		if to <= from { // at the end of all times
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
	case l.second[i] > second: // a straggler of long ago
	case l.second[i] < second:
		l.second[i], l.tokens[i] = second, tokens
	default:
		l.tokens[i] += tokens
	}
}

// Rates are decode tokens a second over the last n whole seconds before a moment on the
// clock of the events, the newest last; NaN where nothing was decoded. It knows 255
// seconds back.
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

// Live is the newest whole decode graph, the zero one before the first.
func (t *Tally) Live() LiveGraph {
	if t.live.newest == nil {
		return LiveGraph{}
	}
	return t.draw(t.live.newest)
}

// draw makes a graph ready to draw. Spans are cut to the graph.
func (t *Tally) draw(g *Graph) LiveGraph {
	l := LiveGraph{Index: g.Index, Phase: phaseIndex(g.Phase).String(), Tokens: max(g.Tokens, 0), Time: span(g.Begin, g.End), Lanes: make([]LiveLane, len(g.Lanes))}
	for i := range g.Lanes {
		lane := &g.Lanes[i]
		l.Lanes[i] = LiveLane{Lane: i, TID: lane.TID, Spans: make([]LiveSpan, len(lane.Spans))}
		for k := range lane.Spans {
			p := &lane.Spans[k]
			f := t.factsOf(p.Operator)
			begin := min(span(g.Begin, p.Begin), l.Time)
			end := min(max(span(g.Begin, lane.waitsUntil(k, g.End)), begin), l.Time)
			off := min(max(p.Off, 0), end-begin)
			l.Lanes[i].Spans[k] = LiveSpan{
				Op: f.op, Name: f.name, Begin: begin, End: end, Sync: min(span(max(p.OffWaiting, 0), max(p.Sync, 0)), end-begin-off), Off: off,
			}
		}
	}
	return l
}
