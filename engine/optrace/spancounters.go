package optrace

import (
	"time"
)

// readCounters assigns a reading of counters to spans. The first one in a span, or one at the
// very moment of its begin, is the start of the span's growth; it also ends the growth of the
// span before, unless that had a later reading of its own. The reading for the last span comes
// before the end of its graph.
func (a *Assembler) readCounters(th *thread, e *Event) {
	th.read, th.readAt = e.Ref, e.At
	w := th.work
	if w == nil || len(w.Spans) == 0 {
		return
	}
	if w.base != 0 {
		w.span().Counters = counterGrowth(a.t, w.base, e.Ref)
		return
	}
	w.base = e.Ref
	if n := len(w.Spans) - 2; n >= 0 && w.Spans[n].Counters == nil {
		w.Spans[n].Counters = counterGrowth(a.t, w.baseBefore, e.Ref)
	}
}

// countFrom begins the count of a span.
func (w *worker) countFrom(at time.Duration) {
	w.baseBefore, w.base = w.base, 0
	if w.th.read != 0 && w.th.readAt == at {
		w.base = w.th.read
	}
}

// counterGrowth returns the growth between two readings, nil if they have no counter in common. A
// counter that decreased was reopened, and is left out.
func counterGrowth(t *Tables, from, to uint32) *Counted {
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
