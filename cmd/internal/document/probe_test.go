package document_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/page/probe"
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
