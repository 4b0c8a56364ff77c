package document_test

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/page/probe"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// probePages are the pages and documents of probes.
var probePages = subject[*capture.Record]{
	name: "probe", states: probes(), page: probe.Page, document: document.WriteProbe, schema: "probe.v1.schema.json",
	widths: []string{"80", "120"}, thorough: []string{"one", "many"},
}

func probeText(t testing.TB, p *capture.Record, o render.Options) string {
	t.Helper()
	return probePages.text(t, p, o)
}

func probeJSON(t testing.TB, p *capture.Record) []byte {
	t.Helper()
	return probePages.json(t, p)
}

func TestProbeGoldens(t *testing.T) { probePages.checkGoldens(t) }
func TestProbeColour(t *testing.T)  { probePages.checkColour(t) }

func TestProbeJSONMatchesSchema(t *testing.T) {
	probePages.checkSchema(t, map[string]func() *capture.Record{
		"empty": func() *capture.Record { return &capture.Record{Capture: &capture.Capture{Kind: capture.Observation}} },
	})
}

// unsaid sets the reason of a row without a value to the one in the document.
var unsaid = cmpopts.AcyclicTransformer("unsaid", func(r capture.Row) capture.Row {
	if !r.Mean.OK && !r.Peak.OK && r.Reason == "" {
		r.Reason = "not measured"
	}
	return r
})

// TestProbeComesBack checks that a document contains the capture, its setup and its figures.
func TestProbeComesBack(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(probes())) {
		t.Run(name, func(t *testing.T) {
			p := probes()[name]()
			p.Capture.Round()
			doc := probeJSON(t, p)
			back, err := document.ReadProbe(bytes.NewReader(doc))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, back, cmpopts.EquateEmpty(), unsaid); diff != "" {
				t.Errorf("what came back differs (-written +read):\n%s", diff)
			}
			if again := probeJSON(t, back); !bytes.Equal(doc, again) {
				t.Error("a document that is read and written is another one")
			}
		})
	}
}

func TestReadProbeRefuses(t *testing.T) {
	good := string(probeJSON(t, manyOnGPU()))
	for _, c := range []struct{ name, from, to, says string }{
		{"no JSON", "{", "", "whole file"},
		{"another schema", "rooftop.probe/v1", "rooftop.run/v1", "rooftop.run/v1"},
		{"an unknown kind", `"kind": "probe"`, `"kind": "walk"`, "another version"},
		{"a chunk without a size", `"bytes":[3,`, `"bytes":[`, "sizes"},
		{"an unknown kind of chunk", `"kind":"text"`, `"kind":"song"`, "song"},
		{"chunks without a kind", `"kind":"text","count":96`, `"kind":"text","count":95`, "95 of 96"},
		{"more chunks than there are", `"kind":"text","count":96`, `"kind":"text","count":97`, "do not fit"},
		{"a sample that is none", `"present":[[0,`, `"present":[[-1,`, "runs"},
		{"a column that falls", `"rss_bytes":{"from":[0]`, `"rss_bytes":{"from":[999999]`, "rise"},
		{"a value without a place", `"rss_bytes":{"from":[0]`, `"rss_bytes":{"from":[0,1]`, "places"},
		{"a page too few", `"kv_usage":[0.02,`, `"kv_usage":[`, "kv_usage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := strings.Replace(good, c.from, c.to, 1)
			if wrong == good {
				t.Fatalf("the document has no %s", c.from)
			}
			_, err := document.ReadProbe(strings.NewReader(wrong))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want one that says %q", err, c.says)
			}
		})
	}
}

// FuzzReadProbe checks that no document makes the reader panic, and that what it reads can be written and read again.
func FuzzReadProbe(f *testing.F) {
	f.Add(probeJSON(f, allAbsent()))
	f.Add(probeJSON(f, everyField()))
	f.Add([]byte(`{"schema":"rooftop.probe/v1","kind":"probe","figures":{"derived":{"a":1}}}`))
	f.Add([]byte(`{"schema":"rooftop.probe/v1","kind":"probe","capture":{"tree":{"at_s":[1],"took_s":[1],"processes":[{"present":[[0,0]]}]}}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := document.ReadProbe(bytes.NewReader(doc))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := document.WriteProbe(&b, p); err != nil {
			t.Fatal(err)
		}
		if _, err := document.ReadProbe(&b); err != nil {
			t.Fatalf("what was read is written so that it cannot be read: %v", err)
		}
		if err := render.Text(io.Discard, probe.Page(p, true), render.Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
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
			p := capture.ProcessSample{Process: i, RSSBytes: 1 << 30, Threads: 5, CPU: 4 * time.Second, MinorFaults: some(100)}
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
	back, err := document.ReadProbe(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Tree.Samples {
		if !slices.Equal(c.Tree.Samples[i].Processes, back.Capture.Tree.Samples[i].Processes) {
			t.Fatalf("sample %d is another one", i)
		}
	}
}

func BenchmarkWriteProbe(b *testing.B) {
	p := manyOnGPU()
	b.ReportAllocs()
	for b.Loop() {
		if err := render.Text(io.Discard, probe.Page(p, false), render.Options{Width: 120}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadProbe(b *testing.B) {
	doc := probeJSON(b, manyOnGPU())
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := document.ReadProbe(bytes.NewReader(doc)); err != nil {
			b.Fatal(err)
		}
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
		{"a row without a value or a reason", `"reason": "the run is shorter than the sensor's own averaging of 1 s"`, `"reason": ""`},
		{"an unread GPU field left out", `"sm_clock_mhz": {`, `"sm_clock": {`},
		{"an unknown origin of a quantity", `"source": "derived"`, `"source": "guess"`},
		{"an unknown kind of chunk", `"kind":"text"`, `"kind":"song"`},
		{"no samples", `"tree":{"root_pid"`, `"trees":{"root_pid"`},
		{"a run of samples with one end", `"present":[[0,91]]`, `"present":[[0]]`},
	})
}

func TestProbeJSONGolden(t *testing.T) { golden(t, "probe-failures.json", probeJSON(t, failedProbe())) }

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

// everyField is a probe without empty fields.
func everyField() *capture.Record {
	p, n := &capture.Record{}, 0
	numberFields(reflect.ValueOf(p).Elem(), &n)
	p.Capture.Requests[0].Simulated = false // the document has it in its target
	p.Capture.Kind = capture.Probe
	p.Capture.Tree.Samples[0].Processes[0].Process = 0
	p.Summary.Derived[0].Reason = "" // a present value has no reason for its absence
	return p
}

// TestProbeHoldsEveryField checks that the document has every field of a capture, its setup and its figures.
func TestProbeHoldsEveryField(t *testing.T) {
	p := everyField()
	back, err := document.ReadProbe(bytes.NewReader(probeJSON(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Errorf("what came back differs (-written +read):\n%s", diff)
	}
}

// TestFiguresFollowFromTheDocument checks that the figures computed from a capture that was read back equal those in its
// document.
func TestFiguresFollowFromTheDocument(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(probes())) {
		t.Run(name, func(t *testing.T) {
			p := probes()[name]()
			p.Capture.Round()
			p.Summary = capture.Summarize(p.Capture, capture.Machine{Facts: &engine.Facts{}})
			doc := probeJSON(t, p)
			back, err := document.ReadProbe(bytes.NewReader(doc))
			if err != nil {
				t.Fatal(err)
			}
			back.Summary = capture.Summarize(back.Capture, capture.Machine{Facts: &engine.Facts{}})
			if diff := cmp.Diff(string(doc), string(probeJSON(t, back))); diff != "" {
				t.Errorf("the figures differ (-of the document +of its capture):\n%s", diff)
			}
		})
	}
}
