//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/comparison"
)

// midQ4 is mid with half the bytes.
var midQ4 = gguf.Shape{Name: "mid-q4_0", Layers: gguf.Mid.Layers, Width: gguf.Mid.Width, Heads: gguf.Mid.Heads, KVHeads: gguf.Mid.KVHeads, Hidden: gguf.Mid.Hidden, Vocab: gguf.Mid.Vocab, Context: gguf.Mid.Context, Weights: gguf.Q4_0}

// comparedTrace is what these tests look at in rooftop.trace-compare/v1.
type comparedTrace struct {
	Schema     string
	Comparable bool
	*comparison.Comparison
}

// compareRuns has rooftop compare two recordings.
func compareRuns(t *testing.T, a, b string) comparedTrace {
	t.Helper()
	var c comparedTrace
	out := runTrace(t, "compare", a, b, "--json")
	if err := json.Unmarshal(out, &c); err != nil || c.Schema != "rooftop.trace-compare/v1" || !c.Comparable {
		t.Fatalf("%v: %.600s", err, out)
	}
	t.Log(c.Headline)
	for _, d := range c.Differs {
		t.Logf("%s: %s, %s", d.What, d.A, d.B)
	}
	return c
}

// runTrace is rooftop trace with these arguments.
func runTrace(t *testing.T, args ...string) []byte {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(testContext(t), path, append([]string{"trace"}, args...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("rooftop trace %s: %v: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return out
}

// recordedRun is a recording with the rate of decodes by the runtime's own clock.
type recordedRun struct {
	file string
	rate float64 // tokens a second, the middle one of the runs
}

// recorded traces a runtime while it decodes.
func recorded(t *testing.T, runtime string, model gguf.Shape, threads, tokens int) recordedRun {
	t.Helper()
	d := drive(t, runtime, model, threads)
	r := beginTrace(t, d)
	r.attached(t, func() { d.run(t, tracePrompt, tokens) })
	var rates []float64
	for range 3 {
		rates = append(rates, d.run(t, tracePrompt, tokens).Rate)
	}
	r.end(t)
	slices.Sort(rates)
	return recordedRun{r.file, rates[len(rates)/2]}
}

// differs is what two recordings do not share, by what it is.
func (c *comparedTrace) differs(t *testing.T, what, a, b string) {
	t.Helper()
	for _, d := range c.Differs {
		if d.What == what {
			if !strings.Contains(d.A, a) || !strings.Contains(d.B, b) {
				t.Errorf("%s is said to be %s and %s, want %s and %s", what, d.A, d.B, a, b)
			}
			return
		}
	}
	t.Errorf("that %s differs is not said: %+v", what, c.Differs)
}

// same says that two recordings share what is not told.
func (c *comparedTrace) same(t *testing.T, what ...string) {
	t.Helper()
	for _, d := range c.Differs {
		for _, w := range what {
			if d.What == w {
				t.Errorf("%s is said to differ: %s, %s", w, d.A, d.B)
			}
		}
	}
}

// clearly is the ratio of two rates by the runtimes' own clocks from which on a verdict
// is owed: runs of the same differ by a tenth.
const clearly = 1.3

// direction holds the verdict on decodes against the runtimes' own clocks. Two builds may
// be equally fast; then there is none.
func (c *comparedTrace) direction(t *testing.T, a, b recordedRun, owed bool) {
	t.Helper()
	i := slices.IndexFunc(c.Phases, func(p comparison.PhaseChange) bool { return p.Phase == optrace.PhaseDecode.String() })
	if i < 0 {
		t.Fatalf("no decode among %+v", c.Phases)
	}
	got, clock := c.Phases[i].Rate, b.rate/a.rate
	t.Logf("decodes: ×%.2f, %s; by the runtimes' clocks %.1f and %.1f tokens/s, ×%.2f", got.Ratio.V, got.Verdict, a.rate, b.rate, clock)
	want := compare.Faster
	switch {
	case clock < 1/clearly:
		want = compare.Slower
	case clock < clearly:
		if owed {
			t.Logf("NOT CHECKED: the direction of this change (by the runtimes' clocks it is less than ×%v)", clearly)
		}
		return
	}
	// A wide interval may leave it open; the other way it must not point.
	if got.Verdict != want && (got.Verdict != compare.Unresolved || (got.Ratio.V > 1) != (clock > 1)) {
		t.Errorf("decodes are said to be %q, ×%v; want %q", got.Verdict, got.Ratio.V, want)
	}
}

// TestE2ETraceCompare holds real traces against each other: what differs in the setup is
// told, and nothing that does not, and decodes went the way that the runtimes' own clocks
// say.
func TestE2ETraceCompare(t *testing.T) {
	needsRoot(t)
	one := recorded(t, "npm-new", gguf.Mid, 1, traceTokens)
	t.Run("threads", func(t *testing.T) {
		two := recorded(t, "npm-new", gguf.Mid, 2, tokensFor(2))
		c := compareRuns(t, one.file, two.file)
		c.differs(t, "threads", "1", "2")
		c.same(t, "model", "types of weights", "runtime", "build of cpu", "CPU", "kernel", "detail")
		if c.Threads.CountA != 1 || c.Threads.CountB != 2 {
			t.Errorf("threads: %+v", c.Threads)
		}
		c.direction(t, one, two, true)
	})
	t.Run("quantisation", func(t *testing.T) {
		four := recorded(t, "npm-new", midQ4, 1, traceTokens)
		c := compareRuns(t, one.file, four.file)
		c.differs(t, "types of weights", "q8_0", "q4_0")
		c.differs(t, "model", "mid.gguf", "mid-q4_0.gguf")
		c.same(t, "threads", "runtime", "build of cpu", "CPU", "kernel", "detail")
		c.direction(t, one, four, true)
	})
	t.Run("builds", func(t *testing.T) {
		old := recorded(t, "npm-old", gguf.Mid, 1, traceTokens)
		c := compareRuns(t, old.file, one.file)
		c.differs(t, "runtime", "", "")
		c.same(t, "threads", "model", "types of weights", "CPU", "kernel", "detail")
		build := slices.ContainsFunc(c.Differs, func(d compare.Difference) bool { return strings.HasPrefix(d.What, "build of ") })
		if !build {
			t.Errorf("that the builds differ is not said: %+v", c.Differs)
		}
		// What one computes as operators of its own the other lacks.
		lacks := func(phase, op string) bool {
			return slices.ContainsFunc(c.Operators, func(o comparison.OperatorChange) bool {
				return o.Phase == phase && o.Op == op && o.PerToken.B.Or(1) == 0
			})
		}
		if !lacks("decode", "SOFT_MAX") {
			t.Errorf("that the new build has no SOFT_MAX is not said: %+v", c.Operators)
		}
		c.direction(t, old, one, false)
	})
}

// TestE2ETraceFiles shows a recording again: with the figures of the live document, and
// files that their readers open.
func TestE2ETraceFiles(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	files := func(of string) []string {
		var flags []string
		for _, f := range []string{"trace", "html", "svg", "dot"} {
			flags = append(flags, "--"+f, filepath.Join(dir, of+"."+f))
		}
		return flags
	}
	d := drive(t, "npm-new", gguf.MoE, 1)
	r := beginTrace(t, d, files("live")...)
	r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
	for range 3 {
		d.run(t, tracePrompt, traceTokens)
	}
	r.end(t)
	var live, again map[string]any
	shown := runTrace(t, append([]string{r.file, "--json"}, files("again")...)...)
	if err := errors.Join(json.Unmarshal(r.stdout.Bytes(), &live), json.Unmarshal(shown, &again)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live, again); diff != "" {
		t.Errorf("the recording shown again differs from the live document (-live +again):\n%s", diff)
	}
	for _, of := range []string{"live", "again"} {
		read := func(kind string) []byte {
			text, err := os.ReadFile(filepath.Join(dir, of+"."+kind))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s.%s: %d bytes", of, kind, len(text))
			return text
		}
		chrome(t, read("trace"))
		wellFormed(t, of+".svg", bytes.NewReader(read("svg")))
		if dot := string(read("dot")); !strings.HasPrefix(dot, "digraph") || strings.Count(dot, "{") != strings.Count(dot, "}") || !strings.Contains(dot, "MUL_MAT_ID") {
			t.Errorf("%s.dot: %.400s", of, dot)
		}
		page := read("html")
		pictures := inlineSVG.FindAll(page, -1)
		if len(pictures) == 0 || regexp.MustCompile(`(src|href)="https?:`).Match(page) {
			t.Errorf("%s.html has %d pictures, or loads something", of, len(pictures))
		}
		for _, picture := range pictures {
			wellFormed(t, of+".html", bytes.NewReader(picture))
		}
	}
}

var inlineSVG = regexp.MustCompile(`(?s)<svg.*?</svg>`)

// chrome is whether a file is a trace of spans.
func chrome(t *testing.T, text []byte) {
	t.Helper()
	var doc struct {
		TraceEvents []struct {
			Name string
			Ph   string
			Ts   float64
			Dur  float64
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	spans := map[string]int{}
	for _, e := range doc.TraceEvents {
		if e.Ph == "X" && e.Dur >= 0 && e.Ts >= 0 {
			spans[e.Name]++
		}
	}
	if len(doc.TraceEvents) < 3*traceTokens*gguf.MoE.Layers || len(spans) < 10 {
		t.Errorf("%d events of %d names", len(doc.TraceEvents), len(spans))
	}
}

// wellFormed reads XML to its end.
func wellFormed(t *testing.T, name string, r io.Reader) {
	t.Helper()
	elements := 0
	for x := xml.NewDecoder(r); ; {
		token, err := x.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if _, ok := token.(xml.StartElement); ok {
			elements++
		}
	}
	if elements < 2 { // a picture and something in it
		t.Errorf("%s has %d elements", name, elements)
	}
}
