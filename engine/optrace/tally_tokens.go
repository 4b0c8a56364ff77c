package optrace

import "time"

// callSums is what the graphs of a call took, while the call goes on.
type callSums struct {
	time, off time.Duration
	end       time.Duration // of the last one
	context   int64
	scheduled time.Duration // of time, in which scheduling was recorded
}

// addOpen adds a graph to its call.
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
	s.time, s.off = plus(s.time, took), plus(s.off, mostOff(one.g))
	if one.g.watched(DetailSched) {
		s.scheduled = plus(s.scheduled, took)
	}
	s.end, s.context = max(s.end, one.g.End), max(s.context, one.length)
}

// sumsOf is a graph as a call of its own.
func sumsOf(one *graphSums, took time.Duration) *callSums {
	s := &callSums{time: took, off: mostOff(one.g), context: one.length}
	if one.g.watched(DetailSched) {
		s.scheduled = took
	}
	return s
}

// mostOff is the time off the CPU of the lane that was off it longest.
func mostOff(g *Graph) (off time.Duration) {
	for i := range g.Lanes {
		off = max(off, g.Lanes[i].Off)
	}
	return off
}

// tokenSum is a call that ended.
type tokenSum struct {
	begin, end time.Duration
	phase      Phase
	tokens     int
	of         callSums
}

// tokenRing holds the last calls.
type tokenRing struct {
	of   []tokenSum
	next int // where the next goes once the ring is full
}

// add adds a call, in the place of the oldest where the ring is full.
func (r *tokenRing) add(s tokenSum) {
	if len(r.of) < maxTokens {
		r.of = append(r.of, s)
		return
	}
	r.of[r.next] = s
	r.next = (r.next + 1) % maxTokens
}

// tokenRows are the last calls, the oldest first.
func (t *Tally) tokenRows(s *Settings) []TokenRow {
	began := s.Begin
	if began == 0 {
		began = t.began
	}
	recorded := s.Detail | t.recorded
	rows := make([]TokenRow, 0, len(t.tokens.of))
	told := t.calls > 0 || t.namesLogits()
	for i := range t.tokens.of {
		c := &t.tokens.of[(t.tokens.next+i)%len(t.tokens.of)]
		rows = append(rows, TokenRow{
			Begin: span(began, c.begin), Time: span(c.begin, c.end), Phase: c.phase.String(), Tokens: max(c.tokens, 0),
			Graph: c.of.time, Off: recordedTime(recorded&DetailSched != 0 && (c.of.scheduled > 0 || c.of.time == 0), c.of.off), Context: c.of.context,
		})
		if !told {
			rows[i].Tokens = 0
		}
	}
	return rows
}
