package report

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
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func probeText(t testing.TB, p *Probe, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteProbe(&b, p, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func probeJSON(t testing.TB, p *Probe) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteProbeJSON(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestProbeGoldens(t *testing.T) {
	variants := map[string]Options{"80": {Width: 80}, "120": {Width: 120}}
	for _, name := range slices.Sorted(maps.Keys(probes())) {
		of := maps.Clone(variants)
		if name == "one" || name == "many" {
			of["80-ascii"], of["80-v"], of["60"] = Options{Width: 80, ASCII: true}, Options{Width: 80, Verbose: true}, Options{Width: 60}
		}
		for _, v := range slices.Sorted(maps.Keys(of)) {
			t.Run(name+"-"+v, func(t *testing.T) {
				page := probeText(t, probes()[name](), of[v])
				checkWidth(t, page, of[v].Width)
				golden(t, "probe-"+name+"-"+v, []byte(page))
			})
		}
	}
}

// TestProbeColour holds that colour adds nothing but colour.
func TestProbeColour(t *testing.T) {
	for name, p := range probes() {
		plain, colored := probeText(t, p(), Options{}), probeText(t, p(), Options{Color: true})
		if plain == colored {
			t.Errorf("%s: no colour at all", name)
		}
		if diff := cmp.Diff(plain, escapes.ReplaceAllString(colored, "")); diff != "" {
			t.Errorf("%s: colour changes the text:\n%s", name, diff)
		}
	}
}

func TestProbeJSONMatchesSchema(t *testing.T) {
	s := schema(t, "probe.v1.schema.json")
	cases := probes()
	cases["empty"] = func() *Probe { return &Probe{Capture: &capture.Capture{Kind: capture.Observation}} }
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(decoded(t, probeJSON(t, cases[name]()))); err != nil {
				t.Error(err)
			}
		})
	}
}

// unsaid gives a row without a value the reason that the document gives it.
var unsaid = cmpopts.AcyclicTransformer("unsaid", func(r capture.Row) capture.Row {
	if !r.Mean.OK && !r.Peak.OK && r.Reason == "" {
		r.Reason = "not measured"
	}
	return r
})

// TestProbeComesBack holds that a document gives the capture, its setup and its
// figures again.
func TestProbeComesBack(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(probes())) {
		t.Run(name, func(t *testing.T) {
			p := probes()[name]()
			p.Capture.Round()
			doc := probeJSON(t, p)
			back, err := ReadProbe(bytes.NewReader(doc))
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
		{"a sample that is none", `"present":[[0,`, `"present":[[-1,`, "stretches"},
		{"a column that falls", `"rss_bytes":{"from":[0]`, `"rss_bytes":{"from":[999999]`, "rise"},
		{"a value without a place", `"rss_bytes":{"from":[0]`, `"rss_bytes":{"from":[0,1]`, "places"},
		{"a page too few", `"kv_usage":[0.02,`, `"kv_usage":[`, "kv_usage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := strings.Replace(good, c.from, c.to, 1)
			if wrong == good {
				t.Fatalf("the document has no %s", c.from)
			}
			_, err := ReadProbe(strings.NewReader(wrong))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want one that says %q", err, c.says)
			}
		})
	}
}

// FuzzReadProbe holds that no document makes the reader panic, and that what it reads
// can be written and read again.
func FuzzReadProbe(f *testing.F) {
	f.Add(probeJSON(f, allAbsent()))
	f.Add(probeJSON(f, everyField()))
	f.Add([]byte(`{"schema":"rooftop.probe/v1","kind":"probe","figures":{"derived":{"a":1}}}`))
	f.Add([]byte(`{"schema":"rooftop.probe/v1","kind":"probe","capture":{"tree":{"at_s":[1],"took_s":[1],"processes":[{"present":[[0,0]]}]}}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := ReadProbe(bytes.NewReader(doc))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteProbeJSON(&b, p); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadProbe(&b); err != nil {
			t.Fatalf("what was read is written so that it cannot be read: %v", err)
		}
		if err := WriteProbe(io.Discard, p, Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
	})
}

// anyProbe returns a probe that no program would make.
func anyProbe(seed uint64) *Probe {
	r := rand.New(rand.NewPCG(seed, 3))
	p := &Probe{Capture: &capture.Capture{}, Summary: &capture.Summary{}}
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

// FuzzProbe holds that any probe is drawn within the width, without a control
// character that is not ours, and written as JSON.
func FuzzProbe(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, int(20+seed%130), seed%3 == 0, seed%5 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, columns int, ascii, verbose bool) {
		p := anyProbe(seed)
		o := Options{Width: columns, ASCII: ascii, Verbose: verbose}
		page := probeText(t, p, o)
		checkWidth(t, page, o.width())
		for _, r := range page {
			if r == utf8.RuneError && ascii || r < ' ' && r != '\n' || r == 0x7f || ascii && r > 0x7e {
				t.Fatalf("%q is on the page", r)
			}
		}
		decoded(t, probeJSON(t, p))
	})
}

// TestProbeStaysSmall holds ten minutes of sixty processes, most of them idle, to a
// size that a person can mail.
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
	doc := probeJSON(t, &Probe{Capture: c})
	if most := 2 << 20; len(doc) > most {
		t.Errorf("the document has %d bytes, more than %d", len(doc), most)
	}
	back, err := ReadProbe(bytes.NewReader(doc))
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
		if err := WriteProbe(io.Discard, p, Options{Width: 120}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadProbe(b *testing.B) {
	doc := probeJSON(b, manyOnGPU())
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := ReadProbe(bytes.NewReader(doc)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestProbeSchemaRejects(t *testing.T) {
	s := schema(t, "probe.v1.schema.json")
	good := string(probeJSON(t, manyOnGPU()))
	for _, c := range []struct{ name, from, to string }{
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

func TestProbeJSONGolden(t *testing.T) { golden(t, "probe-failures.json", probeJSON(t, failedProbe())) }

// numberFields gives every field of a value a value of its own, so that none can take another's place.
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

// everyField is a probe of which no field is empty.
func everyField() *Probe {
	p, n := &Probe{}, 0
	numberFields(reflect.ValueOf(p).Elem(), &n)
	p.Capture.Kind = capture.Probe
	p.Capture.Tree.Samples[0].Processes[0].Process = 0
	p.Summary.Derived[0].Reason = "" // what has a value has no reason for its absence
	return p
}

// TestProbeHoldsEveryField holds that no field of a capture, its setup or its figures
// is left out of the document.
func TestProbeHoldsEveryField(t *testing.T) {
	p := everyField()
	back, err := ReadProbe(bytes.NewReader(probeJSON(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Errorf("what came back differs (-written +read):\n%s", diff)
	}
}

// TestFiguresFollowFromTheDocument holds that a capture that was read back has the
// figures that stand in its document.
func TestFiguresFollowFromTheDocument(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(probes())) {
		t.Run(name, func(t *testing.T) {
			p := probes()[name]()
			p.Capture.Round()
			p.Summary = capture.Summarize(p.Capture, capture.Machine{Facts: &engine.Facts{}})
			doc := probeJSON(t, p)
			back, err := ReadProbe(bytes.NewReader(doc))
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

// A mean of the server that is not of these requests alone is not shown as a part of
// theirs.
func TestTTFTThatIsNotDivided(t *testing.T) {
	var out strings.Builder
	r := probePage{page: newPage(&out, Options{Width: 120})}
	r.serverTTFT(&capture.ServerTTFT{Client: stat.Some(0.2), Server: stat.Some(0.3), From: "vLLM metrics", Reason: "its mean is of others too"})
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "=") || !strings.Contains(got, "its mean is of others too") {
		t.Errorf("got %q", got)
	}
}
