package optrace

import "fmt"

// muteSums counts calls of whose tokens nothing tells: neither they nor a graph.
type muteSums struct {
	calls   int
	process int // of them through llama_process
}

func (m *muteSums) addCall(c *Call) {
	if c.Tokens > 0 || len(c.Graphs) > 0 {
		return
	}
	m.calls++
	if c.Kind == CallProcess {
		m.process++
	}
}

// gaps say why calls are of no phase where graphs, which would tell their tokens, were not
// traced with them. last is what was recorded last.
func (m *muteSums) gaps(last Detail, graphs int) []Gap {
	if m.calls == 0 || last&DetailGraph != 0 && graphs == 0 {
		return nil
	}
	calls := fmt.Sprintf("%d calls", m.calls)
	if m.calls == 1 {
		calls = "1 call"
	}
	why := "they do not say how many tokens they compute"
	if m.process > 0 {
		why = "llama_process takes its batch as an object whose layout nothing exported tells"
	}
	return []Gap{{
		What: "the tokens and the phase of " + calls, Why: why + ", and the graphs that would tell were not traced with them",
		Next: levelFlag + " graph tells them",
	}}
}
