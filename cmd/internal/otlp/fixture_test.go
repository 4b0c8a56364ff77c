package otlp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// collector runs in this process, on loopback.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	paths   []string
	headers []http.Header
	traces  []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics
	// answer, if set, replaces the empty success.
	answer func(w http.ResponseWriter, r *http.Request)
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, r.Method+" "+r.URL.Path)
	c.headers = append(c.headers, r.Header)
	body, err := io.ReadAll(r.Body)
	var traces tracepb.TracesData
	var metrics metricspb.MetricsData
	switch {
	case err != nil:
	case len(r.URL.Path) > 6 && r.URL.Path[len(r.URL.Path)-6:] == "traces":
		err = proto.Unmarshal(body, &traces)
		c.traces = append(c.traces, traces.ResourceSpans...)
	default:
		err = proto.Unmarshal(body, &metrics)
		c.metrics = append(c.metrics, metrics.ResourceMetrics...)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	} else if c.answer != nil {
		c.answer(w, r)
	}
}

// spans returns the received spans, by name.
func (c *collector) spans() []*tracepb.Span {
	var list []*tracepb.Span
	for _, r := range c.traces {
		for _, s := range r.ScopeSpans {
			list = append(list, s.Spans...)
		}
	}
	return list
}

// metric returns the received metric with a name, nil if there is none.
func (c *collector) metric(name string) *metricspb.Metric {
	for _, r := range c.metrics {
		for _, s := range r.ScopeMetrics {
			for _, m := range s.Metrics {
				if m.Name == name {
					return m
				}
			}
		}
	}
	return nil
}

// partialAnswer returns the body of a partial success.
func partialAnswer(rejected uint64, message string) []byte {
	var inner []byte
	inner = protowire.AppendTag(inner, 1, protowire.VarintType)
	inner = protowire.AppendVarint(inner, rejected)
	inner = protowire.AppendTag(inner, 2, protowire.BytesType)
	inner = protowire.AppendString(inner, message)
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	return protowire.AppendBytes(b, inner)
}

const ms = time.Millisecond

var wall = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

// recorded returns a probe of two requests, one of which failed.
func recorded() (*capture.Capture, *capture.Summary) {
	device := func(power, energy float64) engine.GPU {
		d := engine.GPU{Index: 0, Name: "NVIDIA L4", UUID: "GPU-1"}
		d.Fields[engine.GPUPowerW], d.Fields[engine.GPUEnergyJ] = stat.Some(power), stat.Some(energy)
		return d
	}
	c := &capture.Capture{
		Kind: capture.Probe, Wall: wall, Period: 50 * ms, Begin: 10 * ms, End: 400 * ms, PagesFrom: "vLLM",
		Requests: []capture.Request{
			{ID: 0, Sent: 10 * ms, Connect: 2 * ms, End: 200*ms + 1, Status: 200, Finish: "length", Text: "what was generated",
				Chunks:       []capture.Chunk{{At: 50*ms + 1}, {At: 100 * ms}, {At: 200 * ms}},
				PromptTokens: stat.Some(7), OutputTokens: stat.Some(3), CachedTokens: stat.Some(0)},
			{ID: 1, Lane: 1, Sent: 201 * ms, Reused: true, End: 400 * ms, Status: 429, Error: "too many requests"},
		},
		Tree: capture.Tree{
			Processes: []capture.Process{{PID: 101, Comm: "python", Title: "VLLM::EngineCore", Role: "engine-core"}},
			Samples: []capture.TreeSample{
				{At: 5 * ms, Processes: []capture.ProcessSample{{CPU: time.Second, RSSBytes: 1 << 30, Threads: 52, PSSBytes: stat.Some(9), MajorFaults: stat.Some(3)}}},
				{At: 55 * ms, Error: "gone for a while"},
				{At: 405 * ms, Processes: []capture.ProcessSample{{CPU: 1250 * ms, RSSBytes: 2 << 30, Threads: 53, PSSBytes: stat.Some(10), MajorFaults: stat.Some(8)}}},
			}},
		GPUs: capture.GPUs{Readings: []engine.GPUReading{
			{T: 6 * ms, Devices: []engine.GPU{device(37, 1000)}}, {T: 406 * ms, Devices: []engine.GPU{device(72, 1020)}},
		}},
		Pages: []capture.PageSample{
			{At: 4 * ms, GenerationTokens: stat.Some(100), Running: stat.Some(0), TTFTSum: stat.Some(1), TTFTCount: stat.Some(10)},
			{At: 200 * ms, Error: "refused"},
			{At: 404 * ms, GenerationTokens: stat.Some(103), Running: stat.Some(1), TTFTSum: stat.Some(1.25), TTFTCount: stat.Some(12)},
		},
	}
	s := &capture.Summary{
		Span:     c.Span(),
		Requests: &capture.RequestsSummary{Sent: 2, Whole: 1, OutputPerSecond: stat.Some(7.5), TTFT: capture.Distribution{Count: 1, Mean: 40 * ms, P50: 40 * ms, P95: 40 * ms, P99: 40 * ms, Max: 40 * ms}},
		Energy:   capture.Energy{Joules: stat.Some(20), How: "energy counter"},
		Derived:  []engine.NamedQuantity{{Name: "joules_per_token", Quantity: engine.Quantity{Value: stat.Some(6.5), Unit: "J", Source: engine.Derived}}},
	}
	return c, s
}

func options(endpoint string) Options {
	return Options{Endpoint: endpoint, Version: "1.2.3",
		Run: Run{Operation: "chat", Model: "m", ServerAddress: "127.0.0.1", ServerPort: 8000}}
}
