package optrace

import "time"

// readCounters gives a reading to the lane of its thread. The first one in a span, or
// one at the very moment of its begin, is what the span grows from, and what the span
// before grew to unless something was read within that. One for the last span comes
// before the end of its graph.
func (a *Assembler) readCounters(th *thread, e *Event) {
	th.read, th.readAt = e.Ref, e.At
	w := th.lane
	if w == nil || len(w.Spans) == 0 {
		return
	}
	if w.base != 0 {
		w.span().Counters = grown(a.t, w.base, e.Ref)
		return
	}
	w.base = e.Ref
	if n := len(w.Spans) - 2; n >= 0 && w.Spans[n].Counters == nil {
		w.Spans[n].Counters = grown(a.t, w.baseBefore, e.Ref)
	}
}

// countFrom begins the count of a span that begins.
func (w *laneWork) countFrom(at time.Duration) {
	w.baseBefore, w.base = w.base, 0
	if w.th.read != 0 && w.th.readAt == at {
		w.base = w.th.read
	}
}

// grown is the growth between two readings, nil where they have nothing in common. A
// counter that went backwards was opened anew and is left out.
func grown(t *Tables, from, to uint32) *Counted {
	if from == 0 || to == 0 || int(from) > len(t.Counters) || int(to) > len(t.Counters) {
		return nil
	}
	a, b := &t.Counters[from-1], &t.Counters[to-1]
	var c Counted
	for i := range c.Value {
		bit := uint16(1) << i
		if a.Have&b.Have&bit == 0 || b.Value[i] < a.Value[i] {
			continue
		}
		c.Have |= bit
		c.Value[i] = b.Value[i] - a.Value[i]
	}
	if c.Have == 0 {
		return nil
	}
	return &c
}
