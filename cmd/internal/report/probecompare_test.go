package report

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// comparisons are the states of a comparison that the writers are held against.
func comparisons() map[string]func() *ProbeComparison {
	itself := func(a, b *Probe) *ProbeComparison { return CompareProbes("1.2.0", "before.json", "after.json", a, b) }
	compare := func(a, b *Probe) *ProbeComparison {
		b.Capture.Wall = b.Capture.Wall.Add(10 * time.Minute)
		return itself(a, b)
	}
	// runOf is a probe of n requests, four at a time, on a version of the server.
	runOf := func(n int, version string, seed uint64, itl time.Duration) *Probe {
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
	by := func(version string, seed uint64, itl time.Duration) *Probe { return runOf(128, version, seed, itl) }
	return map[string]func() *ProbeComparison{
		"versions": func() *ProbeComparison { return compare(by("0.32.0", 8, 22*ms), by("0.33.0", 9, 20*ms)) },
		"same":     func() *ProbeComparison { return compare(by("0.32.0", 8, 22*ms), by("0.32.0", 10, 22*ms)) },
		"itself":   func() *ProbeComparison { return itself(by("0.32.0", 8, 22*ms), by("0.32.0", 8, 22*ms)) },
		"few":      func() *ProbeComparison { return compare(runOf(8, "0.32.0", 8, 22*ms), runOf(8, "0.32.0", 10, 22*ms)) },
		"one-each": func() *ProbeComparison { return compare(oneOnCPU(), oneOnCPU()) },
		"refused":  func() *ProbeComparison { return compare(idlePID(), interruptedProbe()) },
		"observed": func() *ProbeComparison { return compare(observed(), observed()) },
		"no-figures": func() *ProbeComparison {
			p := oneOnCPU()
			p.Summary = nil
			return compare(p, oneOnCPU())
		},
	}
}

func comparisonText(t testing.TB, c *ProbeComparison, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteProbeCompare(&b, c, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func comparisonJSON(t testing.TB, c *ProbeComparison) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteProbeCompareJSON(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestProbeCompareGoldens(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(comparisons())) {
		for suffix, o := range map[string]Options{"80": {Width: 80}, "80-v": {Width: 80, Verbose: true}, "120": {Width: 120}, "80-ascii": {Width: 80, ASCII: true}} {
			if suffix != "80" && name != "versions" {
				continue
			}
			t.Run(name+"-"+suffix, func(t *testing.T) {
				page := comparisonText(t, comparisons()[name](), o)
				checkWidth(t, page, o.Width)
				golden(t, "probe-compare-"+name+"-"+suffix, []byte(page))
			})
		}
	}
	golden(t, "probe-compare-versions.json", comparisonJSON(t, comparisons()["versions"]()))
}

func TestProbeCompareColour(t *testing.T) {
	for name, c := range comparisons() {
		plain, colored := comparisonText(t, c(), Options{}), comparisonText(t, c(), Options{Color: true})
		if diff := cmp.Diff(plain, escapes.ReplaceAllString(colored, "")); diff != "" || plain == colored {
			t.Errorf("%s: colour changes the text, or there is none:\n%s", name, diff)
		}
	}
}

func TestProbeCompareJSONMatchesSchema(t *testing.T) {
	s := schema(t, "probe-compare.v1.schema.json")
	for name, c := range comparisons() {
		if err := s.Validate(decoded(t, comparisonJSON(t, c()))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := string(comparisonJSON(t, comparisons()["versions"]()))
	for _, c := range []struct{ name, from, to string }{
		{"another schema", "probe-compare/v1", "probe-compare/v2"},
		{"an unknown verdict", `"verdict": "faster"`, `"verdict": "better"`},
		{"a verdict without an interval", `"ratio_low": 0`, `"low": 0`},
		{"figures of what is not comparable", `"comparable": true`, `"comparable": false`},
		{"no reason and no verdict", `"reason": "one value a run has no noise to be held against"`, `"reason": ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := strings.Replace(good, c.from, c.to, 1)
			if wrong == good {
				t.Fatalf("the document has no %s", c.from)
			}
			if s.Validate(decoded(t, []byte(wrong))) == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

// FuzzProbeCompare holds that any two probes can be compared, drawn within the width
// and written as JSON.
func FuzzProbeCompare(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, seed*7+1, int(20+seed*2))
	}
	f.Fuzz(func(t *testing.T, x, y uint64, columns int) {
		c := CompareProbes("1", "a", "b", anyProbe(x), anyProbe(y))
		r := rand.New(rand.NewPCG(x, y))
		if x%2 == 0 {
			c.Refused = nil
			fill(r, reflect.ValueOf(&c.Comparison).Elem())
		}
		c.A.Capture.Wall, c.B.Capture.Wall = time.Unix(r.Int64N(4e9), 0), time.Unix(r.Int64N(4e9), 0)
		o := Options{Width: columns, ASCII: y%2 == 0}
		checkWidth(t, comparisonText(t, c, o), o.width())
		decoded(t, comparisonJSON(t, c))
	})
}

func TestProbeWriteErrorsAreReturned(t *testing.T) {
	for name, err := range map[string]error{
		"text":               WriteProbe(failing{}, oneOnCPU(), Options{}),
		"document":           WriteProbeJSON(failing{}, oneOnCPU()),
		"comparison":         WriteProbeCompare(failing{}, comparisons()["same"](), Options{}),
		"comparison as JSON": WriteProbeCompareJSON(failing{}, comparisons()["same"]()),
	} {
		if err == nil {
			t.Errorf("%s: a failed write is not reported", name)
		}
	}
}

// TestIntervalBounds holds that an end of an interval which says nothing has no digits.
func TestIntervalBounds(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{.99, 1.05, "−1.0 to +5.0 %"},
		{.0001, 285.83, "−100 to >+1,000 %"},
		{1.5, 11, "+50 to +1,000 %"},
		{12, 40, ">+1,000 to >+1,000 %"},
	} {
		got := strings.ReplaceAll(intervalChange(&capture.Change{Low: stat.Some(c.low), High: stat.Some(c.high)}), nbsp, " ")
		if got != c.want {
			t.Errorf("%v to %v: got %q, want %q", c.low, c.high, got, c.want)
		}
	}
}

// TestVerboseComparisonCounts holds that -v adds on how much each figure rests.
func TestVerboseComparisonCounts(t *testing.T) {
	c := comparisons()["few"]
	plain, full := comparisonText(t, c(), Options{Width: 120}), comparisonText(t, c(), Options{Width: 120, Verbose: true})
	if strings.Contains(plain, "groups A") || !strings.Contains(full, "groups A") {
		t.Errorf("without -v:\n%s\nwith it:\n%s", plain, full)
	}
}
