//go:build e2e && linux

package main_test

import (
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// TestE2ETraceCacheGrows decodes past the lengths to which a runtime pads its cache, where
// nothing of a graph changes but views of K and V. Operators have the shapes of the graph,
// of which a part is looked at each time: what they are said to read is right but for two
// graphs after each step.
func TestE2ETraceCacheGrows(t *testing.T) {
	needsRoot(t)
	const prompt, tokens, padding, late = 250, 300, 256, 2
	for _, c := range []struct {
		runtime string
		model   gguf.Shape
	}{{"npm-new", gguf.Tiny}, {"npm-static", gguf.Tiny}} {
		t.Run(c.runtime+"/"+c.model.Name, func(t *testing.T) {
			d := drive(t, c.runtime, c.model, 1)
			r := beginTrace(t, d, "--level", "operator")
			r.attached(t, func() { d.run(t, prompt, tokens/10) })
			for range 2 {
				d.run(t, prompt, tokens)
			}
			_, recording := r.end(t)
			a := assembledOf(recording)
			began, length, wrong, steps, runs := false, 0, 0, 0, 0
			var before int64
			for _, g := range a.graphs {
				if g.Phase == optrace.PhasePrefill && g.Tokens == prompt {
					began, length, wrong, before = true, prompt, 0, 0
					runs++
					continue
				}
				if !began {
					continue
				}
				length++
				if length%padding == 1 {
					steps, wrong = steps+1, 0
				}
				seen := a.cacheOf(t, g)
				if length-prompt <= late { // the graph of one token is a new one, and seen at once
					before = seen
				}
				switch {
				case seen >= int64(length) && seen < int64(length+padding):
				case seen == before && wrong < late:
					wrong++
				default:
					t.Fatalf("run %d, %d tokens: attention reads %d, %d graphs after the cache grew", runs, length, seen, wrong)
				}
				if seen >= int64(length) {
					before = seen
				}
			}
			t.Logf("%d runs, %d steps of the cache, %d partial graphs, %d graphs with nodes", runs, steps, a.partial, len(a.Tables.DAGs))
			if runs < 2 || steps < 4 {
				t.Errorf("%d whole runs and %d steps of the cache, want 2 and 4", runs, steps)
			}
		})
	}
}

// cacheOf is how many positions of K the attention of a graph reads, the same in all layers.
func (a *assembled) cacheOf(t *testing.T, g *optrace.Graph) int64 {
	t.Helper()
	var length int64
	for _, s := range g.Threads[0].Spans {
		o := a.Tables.Operator(s.Operator)
		if o.Op != "FLASH_ATTN_EXT" || len(o.In) < 3 {
			continue
		}
		n := a.Tables.Tensor(o.In[1]).NE[1]
		if length != 0 && n != length || a.Tables.Tensor(o.In[2]).NE[1] != n {
			t.Fatalf("graph %d: K has %d positions, V %d, those of another layer %d", g.Index, n, a.Tables.Tensor(o.In[2]).NE[1], length)
		}
		length = n
	}
	return length
}
