package optrace

import (
	"cmp"
	"slices"
	"time"
)

// callWork is a call in progress.
type callWork struct {
	Call
	nested  int           // open calls of the interface within it
	ended   time.Duration // the end of its last graph
	guessed bool          // Tokens are taken from its graphs
}

// callBook tracks the calls of threads.
type callBook struct {
	to       Receiver
	dags     *dagBook
	begun    int
	ends     bool // the end of a call was seen, so ends are probed
	computes bool // a call had a complete graph
	cut      int  // calls that were left out
}

// begin begins a call. A call within another, of another kind and before any graph, is the same
// call: llama_decode calls llama_process in some releases.
func (b *callBook) begin(th *thread, e *Event) {
	kind, tokens := CallKind(e.Ref), int(max(e.N, 0))
	if c := th.call; c != nil {
		if c.Kind != kind && len(c.Graphs) == 0 && c.nested < maxNested {
			c.nested++
			if c.Tokens == 0 {
				c.Tokens = tokens
			}
			return
		}
		b.inferEnd(th)
	}
	th.call = &callWork{Call: Call{Index: b.begun, Kind: kind, Tokens: tokens, TID: th.tid, Begin: e.At}}
	b.begun++
}

// end ends the call of a thread, or the innermost nested one.
func (b *callBook) end(th *thread, at time.Duration) {
	b.ends = true
	c := th.call
	switch {
	case c == nil:
	case c.nested > 0:
		c.nested--
	default:
		c.End = at
		b.deliver(th)
	}
}

// inferEnd ends a call whose end was not seen with its last graph.
func (b *callBook) inferEnd(th *thread) {
	th.call.End = th.call.ended
	b.deliver(th)
}

// deliver passes a call to the receiver. A call without tokens and without a complete graph,
// although other calls have some, was cut: by a pause, or while probes were attached or
// detached, which takes a while. Its phase is unknown, and it is left out.
func (b *callBook) deliver(th *thread) {
	c := th.call
	th.call = nil
	if c.Phase == PhaseUnknown {
		c.Phase = judgePhase(c.Kind, c.Tokens, batchShape{})
	}
	if c.Phase == PhaseUnknown && len(c.Graphs) == 0 && b.computes {
		b.cut++
		return
	}
	b.to.Call(&c.Call)
}

// inferEnds ends all calls of an epoch whose ends are not probed, in the order in which they
// began.
func (b *callBook) inferEnds(threads map[int32]*thread, epoch uint32) {
	var open []*thread
	for _, th := range threads {
		if th.call != nil && th.epoch == epoch && th.graph == nil {
			open = append(open, th)
		}
	}
	slices.SortFunc(open, func(x, y *thread) int { return cmp.Compare(x.call.Index, y.call.Index) })
	for _, th := range open {
		b.inferEnd(th)
	}
}

// assignGraph assigns a graph that ended to its call, and gives it the call's phase.
func (b *callBook) assignGraph(g *building) {
	c := g.call
	if c == nil {
		shape := b.dags.shape(g)
		g.Tokens, g.Phase = shape.tokens, judgePhase(CallOther, shape.tokens, shape)
		return
	}
	var shape batchShape
	if c.Tokens != 1 {
		shape = b.dags.shape(g)
	}
	if c.Tokens == 0 || c.guessed {
		c.guessed = true
		c.Tokens += shape.tokens
	}
	if c.Phase == PhaseUnknown {
		c.Phase = judgePhase(c.Kind, c.Tokens, shape)
	}
	c.ended, b.computes = g.End, true
	if len(c.Graphs) < maxGraphsOfCall {
		c.Graphs = append(c.Graphs, g.Index)
	}
	g.Call, g.Tokens, g.Phase = c.Index, c.Tokens, c.Phase
	if c.guessed {
		g.Tokens = shape.tokens
	}
}
