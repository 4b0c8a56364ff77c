package optrace

import (
	"slices"
	"testing"
	"time"
)

// The columns of a graph without a call are tokens where the runtime names its logits as
// llama.cpp does; whisper.cpp encodes 1,500 moments of a sound, which are none.
func TestTokensOfGraphsWithoutCalls(t *testing.T) {
	for name, told := range map[string]bool{"node_7": false, logits: true} {
		tally := NewTally(&Tables{Tensors: []Tensor{{Name: name}}})
		for i := range 3 {
			begin := time.Duration(i) * time.Second
			tally.Graph(&Graph{Call: -1, Phase: PhasePrefill, Tokens: 1500, Begin: begin, End: begin + 500*time.Millisecond})
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
		if got := slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.What == "calls and tokens" }); got == told {
			t.Errorf("%s: gaps %+v", name, s.Gaps)
		}
	}
}
