package tally

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// callSums sums up the graphs of an open call.
type callSums struct {
	time, off time.Duration
	end       time.Duration // of the last graph
	context   int64
}

// addOpen adds a graph to its open call.
func (t *Tally) addOpen(one *graphSums, took time.Duration) {
	if one.g.Call < 0 {
		return
	}
	s := t.open[one.g.Call]
	if s == nil {
		if len(t.open) >= maxOpen { // calls whose ends were lost
			clear(t.open)
		}
		s = &callSums{}
		t.open[one.g.Call] = s
	}
	s.time, s.off = stat.AddSaturating(s.time, took), stat.AddSaturating(s.off, mostOff(one.g))
	s.end, s.context = max(s.end, one.g.End), max(s.context, one.length)
}

// sumsOf returns the sums of a graph as a call of its own.
func sumsOf(one *graphSums, took time.Duration) *callSums {
	return &callSums{time: took, off: mostOff(one.g), context: one.length}
}

// mostOff returns the time off the CPU of the thread that was off it longest.
func mostOff(g *optrace.Graph) (off time.Duration) {
	for i := range g.Threads {
		off = max(off, g.Threads[i].Off)
	}
	return off
}

// tokenSum is a call that has ended.
type tokenSum struct {
	begin, end time.Duration
	phase      optrace.Phase
	tokens     int
	of         callSums
}

// tokenRing keeps the last calls.
type tokenRing struct {
	of   []tokenSum
	next int // index of the oldest call once the ring is full
}

// add adds a call and replaces the oldest one if the ring is full.
func (r *tokenRing) add(s tokenSum) {
	if len(r.of) < maxTokens {
		r.of = append(r.of, s)
		return
	}
	r.of[r.next] = s
	r.next = (r.next + 1) % maxTokens
}

// tokenRows returns the last calls, the oldest first.
func (t *Tally) tokenRows(s *Settings) []optrace.TokenRow {
	began := s.Begin
	if began == 0 {
		began = t.began
	}
	rows := make([]optrace.TokenRow, 0, len(t.tokens.of))
	known := t.calls > 0 || t.namesLogits()
	for i := range t.tokens.of {
		c := &t.tokens.of[(t.tokens.next+i)%len(t.tokens.of)]
		rows = append(rows, optrace.TokenRow{
			Begin: stat.Elapsed(began, c.begin), Time: stat.Elapsed(c.begin, c.end), Phase: c.phase.String(), Tokens: max(c.tokens, 0),
			Graph: c.of.time, Off: optrace.RecordedTime(s.Detail&optrace.DetailSched != 0, c.of.off), Context: c.of.context,
		})
		if !known {
			rows[i].Tokens = 0
		}
	}
	return rows
}
