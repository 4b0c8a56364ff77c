package document_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/probe"
)

// comparisons are the states of a comparison for the writers' tests.
func comparisons() map[string]func() *probe.Comparison {
	itself := func(a, b *capture.Record) *probe.Comparison {
		return probe.Compare("1.2.0", "before.json", "after.json", a, b)
	}
	compare := func(a, b *capture.Record) *probe.Comparison {
		b.Capture.Wall = b.Capture.Wall.Add(10 * time.Minute)
		return itself(a, b)
	}
	// runOf is a probe of n requests, four at a time, on a version of the server.
	runOf := func(n int, version string, seed uint64, itl time.Duration) *capture.Record {
		p := manyOnGPU()
		p.Setup = probeSetup(4, n)
		p.Setup.Target.EngineVersion = version
		p.Capture.Requests = streams(seed, n, 4, 96, 121*ms, itl)
		p.Capture.End = endOf(p.Capture.Requests)
		p.Summary.Requests = requestFigures(p.Capture.Requests, p.Capture.Span())
		p.Summary.Span = p.Capture.Span()
		p.Summary.Tree = treeFigures(10, p.Summary.Span)
		return p
	}
	by := func(version string, seed uint64, itl time.Duration) *capture.Record {
		return runOf(128, version, seed, itl)
	}
	return map[string]func() *probe.Comparison{
		"versions": func() *probe.Comparison { return compare(by("0.32.0", 8, 22*ms), by("0.33.0", 9, 20*ms)) },
		"same":     func() *probe.Comparison { return compare(by("0.32.0", 8, 22*ms), by("0.32.0", 10, 22*ms)) },
		"itself":   func() *probe.Comparison { return itself(by("0.32.0", 8, 22*ms), by("0.32.0", 8, 22*ms)) },
		"few":      func() *probe.Comparison { return compare(runOf(8, "0.32.0", 8, 22*ms), runOf(8, "0.32.0", 10, 22*ms)) },
		"one-each": func() *probe.Comparison { return compare(oneOnCPU(), oneOnCPU()) },
		"refused":  func() *probe.Comparison { return compare(idlePID(), interruptedProbe()) },
		"observed": func() *probe.Comparison { return compare(observed(), observed()) },
		"no-figures": func() *probe.Comparison {
			p := oneOnCPU()
			p.Summary = nil
			return compare(p, oneOnCPU())
		},
	}
}

// probeComparePages are the pages and documents of comparisons.
var probeComparePages = subject[*probe.Comparison]{
	name: "probe-compare", states: comparisons(), page: func(c *probe.Comparison, _ bool) *page.Page { return c.Page() },
	document: document.WriteProbeCompare, schema: "probe-compare.v1.schema.json", widths: []string{"80"}, thorough: []string{"versions"},
}

func TestProbeCompareGoldens(t *testing.T) {
	probeComparePages.checkGoldens(t)
	golden(t, "probe-compare-versions.json", probeComparePages.json(t, comparisons()["versions"]()))
}

func TestProbeCompareColour(t *testing.T) { probeComparePages.checkColour(t) }

func TestProbeCompareJSONMatchesSchema(t *testing.T) {
	probeComparePages.checkSchema(t, nil)
	checkRejects(t, probeComparePages.schema, string(probeComparePages.json(t, comparisons()["versions"]())), []replacement{
		{"another schema", "probe-compare/v1", "probe-compare/v2"},
		{"an unknown verdict", `"verdict": "faster"`, `"verdict": "better"`},
		{"a verdict without an interval", `"ratio_low": 0`, `"low": 0`},
		{"figures of what is not comparable", `"comparable": true`, `"comparable": false`},
		{"no reason and no verdict", `"reason": "a single value per run does not show the noise"`, `"reason": ""`},
	})
}

// FuzzProbeCompare checks that any two probes can be compared, drawn within the width and written as JSON.
func FuzzProbeCompare(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, seed*7+1, int(20+seed*2))
	}
	f.Fuzz(func(t *testing.T, x, y uint64, columns int) {
		c := probe.Compare("1", "a", "b", anyProbe(x), anyProbe(y))
		r := rand.New(rand.NewPCG(x, y))
		if x%2 == 0 {
			c.Refused = nil
			fill(r, reflect.ValueOf(&c.Comparison).Elem())
		}
		c.A.Capture.Wall, c.B.Capture.Wall = time.Unix(r.Int64N(4e9), 0), time.Unix(r.Int64N(4e9), 0)
		probeComparePages.checkDrawn(t, c, render.Options{Width: columns, ASCII: y%2 == 0})
	})
}

func TestProbeWriteErrorsAreReturned(t *testing.T) {
	probePages.checkFailure(t, oneOnCPU())
	probeComparePages.checkFailure(t, comparisons()["same"]())
}

// TestVerboseComparisonCounts checks that -v adds the number of values behind each figure.
func TestVerboseComparisonCounts(t *testing.T) {
	c := comparisons()["few"]
	plain, full := probeComparePages.text(t, c(), render.Options{Width: 120}), probeComparePages.text(t, c(), render.Options{Width: 120, Verbose: true})
	if strings.Contains(plain, "groups A") || !strings.Contains(full, "groups A") {
		t.Errorf("without -v:\n%s\nwith it:\n%s", plain, full)
	}
}
