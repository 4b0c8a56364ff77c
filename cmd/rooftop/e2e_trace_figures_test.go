//go:build e2e && linux

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// cacheHeavy is a model whose cache outgrows its weights: at a context of 2,000 a token
// reads 32 MB of keys and values, and 10 MB of weights.
var cacheHeavy = gguf.Shape{Name: "cache-heavy", Layers: 4, Width: 1024, Heads: 16, KVHeads: 16, Hidden: 64, Vocab: 2048, Context: 4096, Weights: gguf.Q4_0}

// links returns the number of programs that a trace has attached: it holds a file for each.
func (r *traceRun) links(t *testing.T) int {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("the trace has ended: %v: %s", err, r.stderr.String())
	}
	n := 0
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.Contains(to, "bpf") && strings.Contains(to, "link") || strings.Contains(to, "perf_event") {
			n++
		}
	}
	return n
}

// attached waits until a trace records, while the target computes: until it has printed the cost and then set the
// probes of operators.
func (r *traceRun) attached(t *testing.T, compute func()) {
	t.Helper()
	before := 0
	for !r.stderr.says("expected to cost") {
		before = max(before, r.links(t))
		compute()
	}
	deadline := time.Now().Add(3 * time.Minute)
	for last, same := 0, 0; same < 10; time.Sleep(20 * time.Millisecond) {
		n := r.links(t)
		if same++; n <= before || n != last {
			last, same = n, 0
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute after it told the cost no operator is watched: %s", r.stderr.String())
		}
	}
	compute()
}

// figures ends a trace and reads its figures.
func (r *traceRun) figures(t *testing.T) *optrace.Summary {
	t.Helper()
	r.end(t)
	return readFigures(t, r.stdout.Bytes())
}

func readFigures(t *testing.T, text []byte) *optrace.Summary {
	t.Helper()
	s := &optrace.Summary{}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatalf("%v: %.400s", err, text)
	}
	if s.Coverage.Dropped > 0 {
		t.Errorf("%d of %d events were dropped", s.Coverage.Dropped, s.Coverage.Events)
	}
	return s
}

func findingOf(s *optrace.Summary, id string) *optrace.Finding {
	if i := slices.IndexFunc(s.Findings, func(f optrace.Finding) bool { return f.ID == id }); i >= 0 {
		return &s.Findings[i]
	}
	return nil
}

// most returns the row with the largest share of a phase.
func most(rows []optrace.OperatorRow, phase optrace.Phase) *optrace.OperatorRow {
	var best *optrace.OperatorRow
	for i := range rows {
		if r := &rows[i]; r.Phase == phase.String() && (best == nil || r.Time > best.Time) {
			best = r
		}
	}
	return best
}

// TestE2ETraceProducts traces a load of matrix products: a long prompt is compute-bound, a token only reads their
// weights.
func TestE2ETraceProducts(t *testing.T) {
	needsRoot(t)
	const prompt, tokens = 256, 25
	d := drive(t, "npm-new", gguf.Mid, 1)
	r := beginTrace(t, d)
	r.attached(t, func() { d.run(t, tracePrompt, tokens) })
	for range 2 {
		d.run(t, prompt, tokens)
	}
	s := r.figures(t)
	for phase, want := range map[optrace.Phase]optrace.Bound{optrace.PhasePrefill: optrace.BoundCompute, optrace.PhaseDecode: optrace.BoundMemory} {
		row := most(s.Kinds, phase)
		t.Logf("%v: %s of %s has %.1f %%, %.1f GB/s, %.1f GFLOP/s, bound by %q from %q; roof %+v", phase, row.Op, row.Type, 100*row.Share.V, row.BytesRate.V/1e9, row.FlopsRate.V/1e9, row.Bound, row.BoundFrom, s.Peak)
		if row.Op != "MUL_MAT" || row.Type != "q8_0" || !(row.Share.V > 0.5) || row.Bound != want || row.BoundFrom == "" {
			t.Errorf("%v is mostly %s of %s, %.1f %%, bound by %q (%s); want products of q8_0, bound by %s", phase, row.Op, row.Type, 100*row.Share.V, row.Bound, row.BoundFrom, want)
		}
	}
}

// TestE2ETraceAttention traces a load of attention: at a context near 2,000 it takes most of a token and is bound by
// memory, and its share grows with the context.
func TestE2ETraceAttention(t *testing.T) {
	needsRoot(t)
	const short, long, tokens = 24, 1900, 40
	d := drive(t, "npm-new", cacheHeavy, 1)
	r := beginTrace(t, d)
	r.attached(t, func() { d.run(t, short, tokens) })
	for range 3 {
		d.run(t, short, tokens)
		d.run(t, long, tokens)
	}
	s := r.figures(t)
	row := most(s.Kinds, optrace.PhaseDecode)
	t.Logf("decode: %s has %.1f %%, bound by %q from %q; roof %+v", row.Op, 100*row.Share.V, row.Bound, row.BoundFrom, s.Peak)
	// A last-level cache that holds the 11 MB of weights sets a peak that the KV cache, which does not fit, may be
	// far below: the correct bound is then "neither".
	want := optrace.BoundMemory
	if row.BytesRate.V < optrace.FarBelow*s.Peak.BytesPerSecond {
		want = optrace.BoundNeither
	}
	if row.Op != "FLASH_ATTN_EXT" || row.Bound != want {
		t.Errorf("decode is mostly %s at %.1f GB/s, bound by %q; want attention, bound by %q", row.Op, row.BytesRate.V/1e9, row.Bound, want)
	}
	if len(s.Context) < 2 {
		t.Fatalf("contexts of the lengths %+v, want short and long ones", s.Context)
	}
	first, last := s.Context[0], s.Context[len(s.Context)-1]
	for _, c := range s.Context {
		t.Logf("context %d: attention %v of %v, %.1f %%, %d graphs", c.Length, c.Attention, c.Graph, 100*c.Share.V, c.Graphs)
	}
	if first.Length > 512 || last.Length < long || last.Length > 2048 {
		t.Errorf("contexts from %d to %d, want from %d tokens to %d as the runtime pads them", first.Length, last.Length, short, long+tokens)
	}
	if !(last.Share.V > 0.5 && last.Share.V > 2*first.Share.V) || last.Attention < 2*first.Attention {
		t.Errorf("attention takes %.1f %% at %d tokens and %.1f %% at %d: want most there, and twice the share at least", 100*first.Share.V, first.Length, 100*last.Share.V, last.Length)
	}
	if findingOf(s, "attention-grows") == nil {
		t.Errorf("that attention grows is not among the findings: %+v", s.Findings)
	}
}
