package tally

import (
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// The columns of a graph without a call are tokens only if the runtime names its logits like
// llama.cpp; whisper.cpp encodes 1,500 time frames of a sound.
func TestTokensOfGraphsWithoutCalls(t *testing.T) {
	for name, told := range map[string]bool{"node_7": false, optrace.LogitsName: true} {
		tally := New(&optrace.Tables{Tensors: []optrace.Tensor{{Name: name}}})
		for i := range 3 {
			begin := time.Duration(i) * time.Second
			tally.Graph(&optrace.Graph{Call: -1, Phase: optrace.PhasePrefill, Tokens: 1500, Begin: begin, End: begin + 500*time.Millisecond})
		}
		s := tally.Summary(Settings{})
		if len(s.Phases) != 1 || len(s.Tokens) != 3 {
			t.Fatalf("%s: phases %+v, tokens %+v", name, s.Phases, s.Tokens)
		}
		p, want := s.Phases[0], int64(0)
		if told {
			want = 4500
		}
		if p.Tokens != want || p.Rate.OK != told || (s.Tokens[0].Tokens > 0) != told || p.Graph.Count != 3 {
			t.Errorf("%s: %+v, of its calls %+v", name, p, s.Tokens[0])
		}
		if got := slices.ContainsFunc(s.Gaps, func(g optrace.Gap) bool { return g.What == "calls and tokens" }); got == told {
			t.Errorf("%s: gaps %+v", name, s.Gaps)
		}
	}
}
