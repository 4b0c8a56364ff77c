package vllm

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ours returns a page of testdata: recordings of a real vLLM are compressed,
// the others are written by hand after the releases they are named for.
func ours(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return body
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return body
}

const loadedPage = "vllm-0.32.0-cpu-loaded.txt.gz"

// shared returns a file of the field data, which lies beside the checkout.
func shared(t testing.TB, path ...string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "..", "shared", "data"}, path...)...))
	if err != nil {
		t.Skipf("NOT CHECKED: the field data are not here, so the pages of other people's servers are not read: %v", err)
	}
	return body
}

// read parses a page that must be good.
func read(t testing.TB, body []byte) *engine.Page {
	t.Helper()
	var p engine.Page
	if err := newReader("").Parse(body, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// values are what a page is expected to show; what is not named must be absent.
type values struct {
	model    string
	gauges   map[engine.Gauge]float64
	kvMax    stat.Opt
	counters map[engine.Counter]float64
	hists    map[engine.Hist]brief
	start    stat.Opt
	created  stat.Opt
}

// brief is a histogram in short: the name it came from, how many bounds, the
// last finite one, sum and count.
type brief struct {
	From   string
	Bounds int
	Last   float64
	Sum    float64
	Count  float64
}

// check compares a page with what is expected of it.
func (v values) check(t *testing.T, p *engine.Page) {
	t.Helper()
	if p.Model != v.model {
		t.Errorf("model %q, want %q", p.Model, v.model)
	}
	same := func(what string, got, want stat.Opt) {
		if got != want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for g := range engine.NumGauges {
		want, ok := v.gauges[g]
		same(gaugeNames[g], p.Gauges[g], stat.Opt{V: want, OK: ok})
	}
	same("fullest rank's KV usage", p.KVUsageMax, v.kvMax)
	for c := range engine.NumCounters {
		want, ok := v.counters[c]
		same(counterNames[c], p.Counters[c], stat.Opt{V: want, OK: ok})
	}
	same("start time", p.StartTime, v.start)
	same("created", p.Created, v.created)
	for h := range engine.NumHists {
		want, ok := v.hists[h]
		got := p.Hists[h]
		if got.OK != ok {
			t.Errorf("histogram %s present: %v, want %v", histNames[h], got.OK, ok)
			continue
		}
		if !ok {
			continue
		}
		short := brief{From: p.HistNames[h], Bounds: len(got.Bounds), Sum: got.Sum, Count: got.Count}
		if n := len(got.Bounds); n > 1 {
			short.Last = got.Bounds[n-2]
		}
		// Sums over ranks are rounded.
		if diff := cmp.Diff(want, short, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("histogram %s (-want +got):\n%s", histNames[h], diff)
		}
		if n := len(got.Cumulative); n > 0 && got.Cumulative[n-1] != got.Count {
			t.Errorf("histogram %s: %g at the last bound, %g in all", histNames[h], got.Cumulative[n-1], got.Count)
		}
	}
}

// Names for messages, from the keys that the table uses.
var gaugeNames, counterNames, histNames = func() (g [engine.NumGauges]string, c [engine.NumCounters]string, h [engine.NumHists]string) {
	c[engine.CounterPromptTokensComputed], c[engine.CounterPromptTokensExternal] = "computed", "external"
	c[engine.CounterHTTP2xx], c[engine.CounterHTTP4xx], c[engine.CounterHTTP5xx] = "2xx", "4xx", "5xx"
	c[engine.CounterProcessCPUSeconds], c[engine.CounterRequestErrors] = "process CPU", "request errors"
	g[engine.GaugeMaxLoRAs], g[engine.GaugeRunningLoRAs], g[engine.GaugeWaitingLoRAs] = "max LoRAs", "running LoRAs", "waiting LoRAs"
	for _, m := range catalog.EngineOf(catalog.VLLM).Metrics() {
		for _, to := range Dialect().TargetsOf(m.Key) {
			switch {
			case to.Reading == enginepage.ReadGauge:
				g[to.Index] = m.Key
			case to.Reading == enginepage.ReadHist:
				h[to.Index] = m.Key
			case c[to.Index] == "":
				c[to.Index] = m.Key
			}
		}
	}
	return g, c, h
}()

// newReader returns a reader of vLLM's page alone.
func newReader(model string) *enginepage.Reader { return enginepage.NewReader(model, Dialect()) }
