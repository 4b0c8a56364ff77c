package otlp

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// collect makes every metric of the capture.
func (e *export) collect() []metricdata.Metrics {
	return slices.Concat(e.requestMetrics(), e.serverMetrics(), e.processMetrics(), e.gpuMetrics(), e.runMetrics())
}

// Bounds of buckets that the conventions ask for.
var (
	secondBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBounds  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// histogram gathers values by a word that tells series apart.
type histogram struct {
	e                       *export
	name, unit, description string
	bounds                  []float64
	key                     string // of the attribute that holds the word; "" one series
	values                  map[string][]float64
}

func (e *export) histogram(name, unit, description string, bounds []float64, key string) *histogram {
	return &histogram{e: e, name: name, unit: unit, description: description, bounds: bounds, key: key, values: map[string][]float64{}}
}

func (h *histogram) add(word string, v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		h.values[word] = append(h.values[word], v)
	}
}

// metric is the histogram over the run; none where nothing was added.
func (h *histogram) metric() []metricdata.Metrics {
	if len(h.values) == 0 {
		return nil
	}
	var data metricdata.Histogram[float64]
	data.Temporality = metricdata.CumulativeTemporality
	words := make([]string, 0, len(h.values))
	for word := range h.values {
		words = append(words, word)
	}
	slices.Sort(words)
	for _, word := range words {
		attrs := h.e.genAI()
		if word != "" {
			attrs = append(attrs, attribute.String(h.key, word))
		}
		p := metricdata.HistogramDataPoint[float64]{
			Attributes: attribute.NewSet(attrs...), StartTime: h.e.moment(h.e.c.Begin), Time: h.e.moment(h.e.c.End),
			Bounds: h.bounds, BucketCounts: make([]uint64, len(h.bounds)+1),
			Min: metricdata.NewExtrema(slices.Min(h.values[word])), Max: metricdata.NewExtrema(slices.Max(h.values[word])),
		}
		for _, v := range h.values[word] {
			// A bucket holds its upper bound.
			bucket, _ := slices.BinarySearch(h.bounds, v)
			p.BucketCounts[bucket]++
			p.Count++
			p.Sum += v
		}
		data.DataPoints = append(data.DataPoints, p)
	}
	return []metricdata.Metrics{{Name: h.name, Unit: h.unit, Description: h.description, Data: data}}
}

// requestMetrics are what the conventions have a client say of its requests.
func (e *export) requestMetrics() []metricdata.Metrics {
	duration := e.histogram("gen_ai.client.operation.duration", "s", "Time from the send of a request to the end of its answer", secondBounds, "error.type")
	first := e.histogram("gen_ai.client.operation.time_to_first_chunk", "s", "Time from the send of a request to its first chunk", secondBounds, "")
	gap := e.histogram("gen_ai.client.operation.time_per_output_chunk", "s", "Time between neighbouring chunks", secondBounds, "")
	tokens := e.histogram("gen_ai.client.token.usage", "{token}", "Tokens of a request by the server's usage report", tokenBounds, "gen_ai.token.type")
	for i := range e.c.Requests {
		r := &e.c.Requests[i]
		duration.add(errorType(r), (r.End - r.Sent).Seconds())
		for n := range r.Chunks {
			if n == 0 {
				first.add("", (r.Chunks[0].At - r.Sent).Seconds())
			} else {
				gap.add("", (r.Chunks[n].At - r.Chunks[n-1].At).Seconds())
			}
		}
		if r.PromptTokens.OK {
			tokens.add("input", r.PromptTokens.V)
		}
		if r.OutputTokens.OK {
			tokens.add("output", r.OutputTokens.V)
		}
	}
	return slices.Concat(duration.metric(), first.metric(), gap.metric(), tokens.metric())
}

// serverMetrics are what the server's own page said.
func (e *export) serverMetrics() []metricdata.Metrics {
	g := e.group()
	attrs := attribute.NewSet(e.server()...)
	var opening *capture.PageSample
	pages := slices.DeleteFunc(slices.Clone(e.c.Pages), func(p capture.PageSample) bool { return p.Error != "" })
	for _, i := range thinned(len(pages)) {
		p := &pages[i]
		if opening == nil {
			opening = p
		}
		g.gauge("rooftop.server.requests.running", "{request}", p.At, attrs, p.Running)
		g.gauge("rooftop.server.requests.waiting", "{request}", p.At, attrs, p.Waiting)
		g.gauge("rooftop.server.kv_cache.utilization", "1", p.At, attrs, p.KVUsage)
		g.growth("rooftop.server.tokens.generated", "{token}", opening.At, p.At, attrs, opening.GenerationTokens, p.GenerationTokens)
		g.growth("rooftop.server.tokens.prompt", "{token}", opening.At, p.At, attrs, opening.PromptTokens, p.PromptTokens)
	}
	if len(pages) < 2 {
		return g.metrics()
	}
	return slices.Concat(e.serverTTFT(&pages[0], &pages[len(pages)-1]), g.metrics())
}

// serverTTFT is the server's own time to first token over the run: its sum and
// count, of which no buckets are known, over all that it answered meanwhile.
func (e *export) serverTTFT(from, to *capture.PageSample) []metricdata.Metrics {
	n, sum := minus(to.TTFTCount, from.TTFTCount), minus(to.TTFTSum, from.TTFTSum)
	if !n.OK || !sum.OK || n.V < 1 {
		return nil
	}
	p := metricdata.HistogramDataPoint[float64]{
		Attributes: attribute.NewSet(e.genAI()...), StartTime: e.moment(from.At), Time: e.moment(to.At),
		Count: uint64(n.V), Sum: sum.V,
	}
	return []metricdata.Metrics{{
		Name: "gen_ai.server.time_to_first_token", Unit: "s", Description: "Time to first token by the server's own clock",
		Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.HistogramDataPoint[float64]{p}},
	}}
}

// minus is the growth of a counter, absent where it shrank: the server began anew.
func minus(to, from stat.Opt) stat.Opt {
	if !to.OK || !from.OK || !(to.V >= from.V) {
		return stat.None
	}
	return stat.Some(to.V - from.V)
}

// runMetrics are the figures of the run as gauges at its end.
func (e *export) runMetrics() []metricdata.Metrics {
	g := e.group()
	at := e.c.End
	put := func(name, unit string, v stat.Opt, attrs ...attribute.KeyValue) {
		g.gauge("rooftop.run."+name, unit, at, attribute.NewSet(append(e.server(), attrs...)...), v)
	}
	put("duration", "s", stat.Some(e.c.Span().Seconds()))
	if e.s == nil {
		return g.metrics()
	}
	if r := e.s.Requests; r != nil {
		put("requests.sent", "{request}", stat.Some(float64(r.Sent)))
		put("requests.whole", "{request}", stat.Some(float64(r.Whole)))
		put("output.rate", "{token}/s", r.OutputPerSecond)
		put("request.rate", "{token}/s", r.RequestPerSecond)
		put("decode.rate", "{token}/s", r.DecodePerSecond)
		for _, d := range []struct {
			name string
			d    capture.Distribution
		}{{"time_to_first_token", r.TTFT}, {"inter_token_latency", r.ITL}, {"time_per_output_token", r.TPOT}, {"request_duration", r.E2E}} {
			if d.d.Count == 0 {
				continue
			}
			for _, q := range []struct {
				name string
				v    time.Duration
			}{{"mean", d.d.Mean}, {"p50", d.d.P50}, {"p95", d.d.P95}, {"p99", d.d.P99}, {"max", d.d.Max}} {
				put(d.name, "s", stat.Some(q.v.Seconds()), attribute.String("rooftop.statistic", q.name))
			}
		}
	}
	put("energy", "J", e.s.Energy.Joules, attribute.String("rooftop.energy.from", e.s.Energy.How))
	for _, d := range e.s.Derived {
		put("derived."+d.Name, d.Unit, d.Value, attribute.String("rooftop.source", string(d.Source)))
	}
	return g.metrics()
}
