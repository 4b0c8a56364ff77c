package optrace

import "time"

// callWork is a call that goes on.
type callWork struct {
	Call
	nested  int           // calls of the interface within it
	ended   time.Duration // the end of its last graph
	guessed bool          // Tokens are those of its graphs
}

// beginCall begins a call. One within another, of another kind and before any graph,
// is the same call: llama_decode goes through llama_process in some releases.
func (a *Assembler) beginCall(th *thread, e *Event) {
	kind, tokens := CallKind(e.Ref), int(max(e.N, 0))
	if c := th.call; c != nil {
		if c.Kind != kind && len(c.Graphs) == 0 && c.nested < maxNested {
			c.nested++
			if c.Tokens == 0 {
				c.Tokens = tokens
			}
			return
		}
		a.inferEnd(th)
	}
	th.call = &callWork{Call: Call{Index: a.calls, Kind: kind, Tokens: tokens, TID: th.tid, Begin: e.At}}
	a.calls++
}

// endCall ends the call of a thread.
func (a *Assembler) endCall(th *thread, at time.Duration) {
	a.callEnds = true
	c := th.call
	switch {
	case c == nil:
	case c.nested > 0:
		c.nested--
	default:
		c.End = at
		a.handOver(th)
	}
}

// inferEnd ends a call whose end was not seen with its last graph.
func (a *Assembler) inferEnd(th *thread) {
	th.call.End, th.call.Inferred = th.call.ended, true
	a.handOver(th)
}

// handOver hands a call over. One that does not tell its tokens, and of which no graph came
// whole although those of other calls do, was cut: by a pause, or by probes that were put on
// or taken off, which takes a while. It is of no phase, and is left out.
func (a *Assembler) handOver(th *thread) {
	c := th.call
	th.call = nil
	if c.Phase == PhaseUnknown {
		c.Phase = judgePhase(c.Kind, c.Tokens, batchShape{})
	}
	if c.Phase == PhaseUnknown && len(c.Graphs) == 0 && a.computes && a.seesGraphs(th.pid) {
		a.cut++
		return
	}
	a.to.Call(&c.Call)
}

// seesGraphs says whether graphs of a process are recorded, as far as events say so.
func (a *Assembler) seesGraphs(pid int32) bool {
	d := a.detailOf(pid)
	return d == 0 || d&DetailGraph != 0
}

// endCalls ends all calls whose ends are not probed, in the order of their begin.
func (a *Assembler) endCalls() {
	var open []*thread
	for _, th := range a.threads {
		if th.call != nil && th.epoch == a.epoch && th.graph == nil {
			open = append(open, th)
		}
	}
	sortByCall(open)
	for _, th := range open {
		a.inferEnd(th)
	}
}

// charge puts a graph that ended to its call, and gives it the call's phase.
func (a *Assembler) charge(g *building) {
	c := g.call
	if c == nil {
		shape := a.shape(g)
		g.Tokens, g.Phase = shape.tokens, judgePhase(CallOther, shape.tokens, shape)
		return
	}
	var shape batchShape
	if c.Tokens != 1 {
		shape = a.shape(g)
	}
	if c.Tokens == 0 || c.guessed {
		c.guessed = true
		c.Tokens += shape.tokens
	}
	if c.Phase == PhaseUnknown {
		c.Phase = judgePhase(c.Kind, c.Tokens, shape)
	}
	c.ended, a.computes = g.End, true
	if len(c.Graphs) < maxGraphsOfCall {
		c.Graphs = append(c.Graphs, g.Index)
	}
	g.Call, g.Tokens, g.Phase = c.Index, c.Tokens, c.Phase
	if c.guessed {
		g.Tokens = shape.tokens
	}
}
