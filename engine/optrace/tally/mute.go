package tally

import (
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// muteSums counts calls whose tokens are unknown, both from the call and from its graphs.
type muteSums struct {
	calls   int
	process int // those through llama_process
}

func (m *muteSums) addCall(c *optrace.Call) {
	if c.Tokens > 0 || len(c.Graphs) > 0 {
		return
	}
	m.calls++
	if c.Kind == optrace.CallProcess {
		m.process++
	}
}

// gaps says why calls have no phase if graphs, which show their tokens, were not traced with
// them. last is the last recorded detail.
func (m *muteSums) gaps(last optrace.Detail, graphs int) []optrace.Gap {
	if m.calls == 0 || last&optrace.DetailGraph != 0 && graphs == 0 {
		return nil
	}
	why := "the calls do not report their number of tokens"
	if m.process > 0 {
		why = "llama_process takes its batch as an object whose layout no exported symbol describes"
	}
	return []optrace.Gap{{
		What: "the tokens and the phase of " + figure.Counted(m.calls, "call"), Why: why + ", and the graphs that would show them were not traced with them",
		Next: optrace.LevelFlag + " graph shows them",
	}}
}
