package vllm

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
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
