package document_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/page/probe"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// probePages are the pages and documents of probes.
var probePages = subject[*capture.Record]{
	states: probes(), page: probe.Page, document: document.WriteProbe, schema: "probe.v1.schema.json",
}

func probeText(t testing.TB, p *capture.Record, o render.Options) string {
	t.Helper()
	return probePages.text(t, p, o)
}

func probeJSON(t testing.TB, p *capture.Record) []byte {
	t.Helper()
	return probePages.json(t, p)
}

func TestProbeGolden(t *testing.T) { probePages.checkGolden(t, "probe") }
func TestProbeColour(t *testing.T) { probePages.checkColour(t) }

func TestProbeJSONMatchesSchema(t *testing.T) {
	probePages.checkSchema(t, map[string]func() *capture.Record{
		"empty": func() *capture.Record { return &capture.Record{Capture: &capture.Capture{Kind: capture.Observation}} },
	})
}

// anyProbe returns a random, implausible probe.
func anyProbe(seed uint64) *capture.Record {
	r := rand.New(rand.NewPCG(seed, 3))
	p := &capture.Record{Capture: &capture.Capture{}, Summary: &capture.Summary{}}
	if seed%2 == 0 {
		p = probes()[slices.Sorted(maps.Keys(probes()))[seed/2%7]]()
	}
	fill(r, reflect.ValueOf(&p.Setup).Elem())
	fill(r, reflect.ValueOf(p.Summary).Elem())
	if seed%4 != 0 {
		fill(r, reflect.ValueOf(p.Capture).Elem())
	}
	p.Capture.Wall = time.Unix(r.Int64N(4e9), 0)
	return p
}

// FuzzProbe checks that any probe is drawn within the width, without foreign control characters, and written as JSON.
func FuzzProbe(f *testing.F) {
	for seed := range uint64(200) {
		if longtest.Tests || seed%4 == 0 {
			f.Add(seed, int(20+seed%130), seed%3 == 0, seed%5 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, columns int, ascii, verbose bool) {
		p := anyProbe(seed)
		o := render.Options{Width: columns, ASCII: ascii, Verbose: verbose}
		probePages.checkDrawn(t, p, o)
	})
}

// TestProbeStaysSmall checks that ten minutes of sixty mostly idle processes fit into an e-mail.
func TestProbeStaysSmall(t *testing.T) {
	c := &capture.Capture{Kind: capture.Observation, End: 10 * time.Minute, Period: 50 * ms}
	for i := range 60 {
		c.Tree.Processes = append(c.Tree.Processes, capture.Process{PID: 1000 + i, Comm: "python3", Role: "worker"})
	}
	for at := time.Duration(0); at <= c.End; at += c.Period {
		s := capture.TreeSample{At: at, Took: 900 * time.Microsecond}
		for i := range 60 {
			p := capture.ProcessSample{Process: i, RSSBytes: 1 << 30, Threads: 5, CPU: 4 * time.Second}
			if i < 4 {
				p.CPU += at.Truncate(10 * ms)
			}
			s.Processes = append(s.Processes, p)
		}
		c.Tree.Samples = append(c.Tree.Samples, s)
	}
	doc := probeJSON(t, &capture.Record{Capture: c})
	if most := 2 << 20; len(doc) > most {
		t.Errorf("the document has %d bytes, more than %d", len(doc), most)
	}
}

func TestProbeSchemaRejects(t *testing.T) {
	checkRejects(t, probePages.schema, string(probeJSON(t, manyOnGPU())), []replacement{
		{"another schema", `"rooftop.probe/v1"`, `"rooftop.probe/v2"`},
		{"an unknown kind", `"kind": "probe"`, `"kind": "walk"`},
		{"a time without its zone", `"started": "2026-11-21T22:46:10Z"`, `"started": "2026-11-21 22:46"`},
		{"quantiles of another kind", `"quantiles": "nearest rank"`, `"quantiles": "interpolated"`},
		{"no latencies", `"itl": {`, `"gaps": {`},
		{"a number in quotes", `"period_s": 0.05`, `"period_s": "0.05"`},
		{"a digest that is none", `"prompt_sha256": "9f`, `"prompt_sha256": "x9f`},
		{"a row without a value or a reason", `"reason": "no reading includes it"`, `"reason": ""`},
		{"an unread GPU field left out", `"sm_clock_mhz": {`, `"sm_clock": {`},
		{"an unknown origin of a quantity", `"source": "derived"`, `"source": "guess"`},
		{"an unknown kind of chunk", `"kind":"text"`, `"kind":"song"`},
		{"no samples", `"tree":{"root_pid"`, `"trees":{"root_pid"`},
		{"a run of samples with one end", `"present":[[0,91]]`, `"present":[[0]]`},
	})
}

// numberFields sets every field of a value to a distinct value, so that mixed-up fields are found.
func numberFields(v reflect.Value, n *int) {
	*n++
	switch x := v.Addr().Interface().(type) {
	case *stat.Opt:
		*x = some(float64(*n))
		return
	case *time.Time:
		*x = time.Unix(int64(*n), 0).UTC()
		return
	case *time.Duration:
		*x = time.Duration(*n) * time.Microsecond
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text " + strconv.Itoa(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*n % 3))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		numberFields(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		numberFields(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			numberFields(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			numberFields(v.Field(i), n)
		}
	}
}
