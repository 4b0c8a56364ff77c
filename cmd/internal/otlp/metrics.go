package otlp

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

// maxSamples is the maximum number of points of a series, including the first and the last: an hour
// of samples at 50 ms is more than a collector needs, and an export has ten seconds. Samples in
// between are left out, not averaged.
const maxSamples = 240

// thinned returns the indices of the selected samples among n, in order.
func thinned(n int) []int {
	k := min(n, maxSamples)
	picked := make([]int, k)
	for i := range picked {
		if k > 1 {
			picked[i] = i * (n - 1) / (k - 1)
		}
	}
	return picked
}

// metricKind is how the points of a metric add up.
type metricKind uint8

const (
	gauge   metricKind = iota // they do not
	level                     // they add up over the attributes
	counter                   // like level, and the value only grows
)

// metricSet collects the metrics of a capture in order of appearance.
type metricSet struct {
	e      *export
	list   []*metricspb.Metric
	byName map[string]*[]*metricspb.NumberDataPoint
}

// metrics returns every metric of the capture.
func (e *export) metrics() []*metricspb.Metric {
	s := &metricSet{e: e, byName: map[string]*[]*metricspb.NumberDataPoint{}}
	s.addRequests()
	s.addServer()
	s.addProcesses()
	s.addGPUs()
	s.addRun()
	return s.list
}

// add adds a point. start is nil for a metric without a start time.
func (s *metricSet) add(kind metricKind, name, unit string, start *time.Duration, at time.Duration, attrs attributes, v stat.Opt) {
	if !v.Finite().OK {
		return
	}
	points := s.byName[name]
	if points == nil {
		m := &metricspb.Metric{Name: name, Unit: unit}
		if kind == gauge {
			data := &metricspb.Gauge{}
			m.Data, points = &metricspb.Metric_Gauge{Gauge: data}, &data.DataPoints
		} else {
			data := &metricspb.Sum{AggregationTemporality: cumulative, IsMonotonic: kind == counter}
			m.Data, points = &metricspb.Metric_Sum{Sum: data}, &data.DataPoints
		}
		s.byName[name], s.list = points, append(s.list, m)
	}
	point := &metricspb.NumberDataPoint{
		Attributes: attrs, TimeUnixNano: s.e.moment(at), Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: v.V},
	}
	if start != nil {
		point.StartTimeUnixNano = s.e.moment(*start)
	}
	*points = append(*points, point)
}

// addGrowth adds the growth of a counter since its first reading.
func (s *metricSet) addGrowth(name, unit string, from, at time.Duration, attrs attributes, first, v stat.Opt) {
	s.add(counter, name, unit, &from, at, attrs, growth(v, first))
}

// growth returns None if a counter shrank, because the server was restarted.
func growth(to, from stat.Opt) stat.Opt {
	if !to.OK || !from.OK || !(to.V >= from.V) {
		return stat.None
	}
	return stat.Some(to.V - from.V)
}

// Bucket bounds required by the conventions.
var (
	secondBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBounds  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// addHistogram adds the values of the run. key is the attribute that distinguishes the series in
// values; "" is no attribute.
func (s *metricSet) addHistogram(name, unit, description string, bounds []float64, key string, values map[string][]float64) {
	var data []*metricspb.HistogramDataPoint
	for _, word := range slices.Sorted(maps.Keys(values)) {
		attrs := s.e.genAI().text(key, word)
		list := values[word]
		low, high, sum := slices.Min(list), slices.Max(list), 0.0
		counts := make([]uint64, len(bounds)+1)
		for _, v := range list {
			bucket, _ := slices.BinarySearch(bounds, v) // a bucket includes its upper bound
			counts[bucket]++
			sum += v
		}
		data = append(data, &metricspb.HistogramDataPoint{
			Attributes: attrs, StartTimeUnixNano: s.e.moment(s.e.c.Begin), TimeUnixNano: s.e.moment(s.e.c.End),
			Count: uint64(len(list)), Sum: &sum, Min: &low, Max: &high, ExplicitBounds: bounds, BucketCounts: counts,
		})
	}
	s.addHistogramPoints(name, unit, description, data)
}

func (s *metricSet) addHistogramPoints(name, unit, description string, data []*metricspb.HistogramDataPoint) {
	if len(data) > 0 {
		s.list = append(s.list, &metricspb.Metric{Name: name, Unit: unit, Description: description, Data: &metricspb.Metric_Histogram{
			Histogram: &metricspb.Histogram{AggregationTemporality: cumulative, DataPoints: data},
		}})
	}
}

// addRequests adds the metrics that the conventions define for clients.
func (s *metricSet) addRequests() {
	duration, tokens := map[string][]float64{}, map[string][]float64{}
	first, gaps := map[string][]float64{}, map[string][]float64{}
	add := func(values map[string][]float64, word string, v stat.Opt) {
		if v.Finite().OK {
			values[word] = append(values[word], v.V)
		}
	}
	for i := range s.e.c.Requests {
		r := &s.e.c.Requests[i]
		add(duration, errorType(r), stat.Some((r.End - r.Sent).Seconds()))
		for n := range r.Chunks {
			if n == 0 {
				add(first, "", stat.Some((r.Chunks[0].At - r.Sent).Seconds()))
			} else {
				add(gaps, "", stat.Some((r.Chunks[n].At - r.Chunks[n-1].At).Seconds()))
			}
		}
		add(tokens, "input", r.PromptTokens)
		add(tokens, "output", r.OutputTokens)
	}
	s.addHistogram("gen_ai.client.operation.duration", "s", "Time from the send of a request to the end of its answer", secondBounds, "error.type", duration)
	s.addHistogram("gen_ai.client.operation.time_to_first_chunk", "s", "Time from the send of a request to its first chunk", secondBounds, "", first)
	s.addHistogram("gen_ai.client.operation.time_per_output_chunk", "s", "Time between neighbouring chunks", secondBounds, "", gaps)
	s.addHistogram("gen_ai.client.token.usage", "{token}", "Tokens of a request by the server's usage report", tokenBounds, "gen_ai.token.type", tokens)
}

// addServer adds the server's own metrics.
func (s *metricSet) addServer() {
	attrs := s.e.server()
	pages := slices.DeleteFunc(slices.Clone(s.e.c.Pages), func(p capture.PageSample) bool { return p.Error != "" })
	if len(pages) >= 2 {
		s.addServerTTFT(&pages[0], &pages[len(pages)-1])
	}
	for _, i := range thinned(len(pages)) {
		first, p := &pages[0], &pages[i]
		s.add(gauge, "rooftop.server.requests.running", "{request}", nil, p.At, attrs, p.Running)
		s.add(gauge, "rooftop.server.requests.waiting", "{request}", nil, p.At, attrs, p.Waiting)
		s.add(gauge, "rooftop.server.kv_cache.utilization", "1", nil, p.At, attrs, p.KVUsage)
		s.addGrowth("rooftop.server.tokens.generated", "{token}", first.At, p.At, attrs, first.GenerationTokens, p.GenerationTokens)
		s.addGrowth("rooftop.server.tokens.prompt", "{token}", first.At, p.At, attrs, first.PromptTokens, p.PromptTokens)
	}
}

// addServerTTFT adds the server's own time to first token during the run: its sum and count,
// without buckets, over all requests that it answered.
func (s *metricSet) addServerTTFT(from, to *capture.PageSample) {
	n, sum := growth(to.TTFTCount, from.TTFTCount), growth(to.TTFTSum, from.TTFTSum)
	if !n.OK || !sum.OK || n.V < 1 {
		return
	}
	s.addHistogramPoints("gen_ai.server.time_to_first_token", "s", "Time to first token by the server's own clock", []*metricspb.HistogramDataPoint{{
		Attributes: s.e.genAI(), StartTimeUnixNano: s.e.moment(from.At), TimeUnixNano: s.e.moment(to.At), Count: uint64(n.V), Sum: &sum.V,
	}})
}

// addProcesses adds the metrics of each process of the tree. The conventions put the identity of a
// process into the resource; here it is in the attributes of the points, because rooftop is the
// sender.
func (s *metricSet) addProcesses() {
	t := &s.e.c.Tree
	type sample struct {
		at time.Duration
		s  *capture.ProcessSample
	}
	first := map[int]sample{}
	for i := range t.Samples {
		for j := range t.Samples[i].Processes {
			if p := &t.Samples[i].Processes[j]; first[p.Process].s == nil {
				first[p.Process] = sample{t.Samples[i].At, p}
			}
		}
	}
	for _, i := range thinned(len(t.Samples)) {
		for j := range t.Samples[i].Processes {
			p := &t.Samples[i].Processes[j]
			if p.Process < len(t.Processes) {
				s.addProcess(&t.Processes[p.Process], first[p.Process].at, first[p.Process].s, t.Samples[i].At, p)
			}
		}
	}
}

// addProcess adds the usage of one process at one sample.
func (s *metricSet) addProcess(p *capture.Process, from time.Duration, first *capture.ProcessSample, at time.Duration, now *capture.ProcessSample) {
	base := attributes(nil).int("process.pid", p.PID).with("process.executable.name", textValue(p.Comm)).
		text("process.title", p.Title).text("rooftop.process.role", p.Role)
	// There is no cpu.mode: a capture has only the sum of user and system time.
	s.addGrowth("process.cpu.time", "s", from, at, base, stat.Some(first.CPU.Seconds()), stat.Some(now.CPU.Seconds()))
	s.add(level, "process.memory.usage", "By", nil, at, base, stat.Some(float64(now.RSSBytes)))
	s.add(level, "process.thread.count", "{thread}", nil, at, base, stat.Some(float64(now.Threads)))
	for _, c := range []struct {
		name, unit, key, word string
		first, now            stat.Opt
	}{
		{"process.paging.faults", "{fault}", "system.paging.fault.type", "minor", first.MinorFaults, now.MinorFaults},
		{"process.paging.faults", "{fault}", "system.paging.fault.type", "major", first.MajorFaults, now.MajorFaults},
		{"process.context_switches", "{context_switch}", "process.context_switch.type", "voluntary", first.VoluntarySwitches, now.VoluntarySwitches},
		{"process.context_switches", "{context_switch}", "process.context_switch.type", "involuntary", first.InvoluntarySwitches, now.InvoluntarySwitches},
		{"process.disk.io", "By", "disk.io.direction", "read", first.ReadBytes, now.ReadBytes},
		{"process.disk.io", "By", "disk.io.direction", "write", first.WrittenBytes, now.WrittenBytes},
	} {
		s.addGrowth(c.name, c.unit, from, at, base.text(c.key, c.word), c.first, c.now)
	}
	s.add(level, "rooftop.process.memory.proportional", "By", nil, at, base, now.PSSBytes)
}

// gpuMetrics maps the fields of a GPU to metrics.
var gpuMetrics = []struct {
	field      engine.GPUField
	kind       metricKind
	name, unit string
}{
	{engine.GPUUtil, gauge, "hw.gpu.utilization", "1"},
	{engine.GPUVRAMUsed, level, "hw.gpu.memory.usage", "By"},
	{engine.GPUVRAMTotal, level, "hw.gpu.memory.limit", "By"},
	{engine.GPUPowerW, gauge, "hw.power", "W"},
	{engine.GPUTemperatureC, gauge, "hw.temperature", "Cel"},
	{engine.GPUEnergyJ, counter, "hw.energy", "J"},
	{engine.GPUPowerLimitW, gauge, "rooftop.gpu.power.limit", "W"},
	{engine.GPUMemUtil, gauge, "rooftop.gpu.memory_controller.utilization", "1"},
	{engine.GPUSMClockMHz, gauge, "rooftop.gpu.clock.sm", "MHz"},
	{engine.GPUMemClockMHz, gauge, "rooftop.gpu.clock.memory", "MHz"},
	{engine.GPUDRAMActive, gauge, "rooftop.gpu.dram.utilization", "1"},
	{engine.GPUTensorUtil, gauge, "rooftop.gpu.tensor.utilization", "1"},
	{engine.GPUSMActive, gauge, "rooftop.gpu.sm.utilization", "1"},
	{engine.GPUPCIeTxBps, gauge, "rooftop.gpu.pcie.transmit.rate", "By/s"},
	{engine.GPUPCIeRxBps, gauge, "rooftop.gpu.pcie.receive.rate", "By/s"},
	{engine.GPUNVLinkTxBps, gauge, "rooftop.gpu.nvlink.transmit.rate", "By/s"},
	{engine.GPUNVLinkRxBps, gauge, "rooftop.gpu.nvlink.receive.rate", "By/s"},
}

// addGPUs adds the metrics of each device.
func (s *metricSet) addGPUs() {
	readings := s.e.c.GPUs.Readings
	type reading struct {
		at time.Duration
		v  stat.Opt
	}
	first := map[string]reading{} // of the energy counter
	for _, i := range thinned(len(readings)) {
		at := readings[i].T
		for j := range readings[i].Devices {
			d := &readings[i].Devices[j]
			id := cmp.Or(d.UUID, strconv.Itoa(d.Index))
			attrs := attributes(nil).text("hw.id", id).text("hw.type", "gpu").with("hw.name", textValue(d.Name)).int("rooftop.gpu.index", d.Index)
			if _, seen := first[id]; !seen && d.Fields[engine.GPUEnergyJ].OK {
				first[id] = reading{at, d.Fields[engine.GPUEnergyJ]}
			}
			for _, f := range gpuMetrics {
				if f.kind == counter {
					s.addGrowth(f.name, f.unit, first[id].at, at, attrs, first[id].v, d.Fields[f.field])
				} else {
					s.add(f.kind, f.name, f.unit, nil, at, attrs, d.Fields[f.field])
				}
			}
		}
	}
}

// addRun adds the figures of the run as gauges at its end.
func (s *metricSet) addRun() {
	base := s.e.server()
	add := func(attrs attributes, name, unit string, v stat.Opt) {
		s.add(gauge, "rooftop.run."+name, unit, nil, s.e.c.End, attrs, v)
	}
	add(base, "duration", "s", stat.Some(s.e.c.Span().Seconds()))
	figures := s.e.s
	if figures == nil {
		return
	}
	if r := figures.Requests; r != nil {
		add(base, "requests.sent", "{request}", stat.Some(float64(r.Sent)))
		add(base, "requests.whole", "{request}", stat.Some(float64(r.Whole)))
		add(base, "output.rate", "{token}/s", r.OutputPerSecond)
		add(base, "request.rate", "{token}/s", r.RequestPerSecond)
		add(base, "decode.rate", "{token}/s", r.DecodePerSecond)
		for _, d := range []struct {
			name string
			d    capture.Distribution
		}{{"time_to_first_token", r.TTFT}, {"inter_token_latency", r.ITL}, {"time_per_output_token", r.TPOT}, {"request_duration", r.E2E}} {
			for i, v := range [...]time.Duration{d.d.Mean, d.d.P50, d.d.P95, d.d.P99, d.d.Max} {
				if d.d.Count > 0 {
					statistic := [...]string{"mean", "p50", "p95", "p99", "max"}[i]
					add(base.text("rooftop.statistic", statistic), d.name, "s", stat.Some(v.Seconds()))
				}
			}
		}
	}
	add(base.with("rooftop.energy.from", textValue(figures.Energy.How)), "energy", "J", figures.Energy.Joules)
	for _, d := range figures.Derived {
		add(base.text("rooftop.source", string(d.Source)), "derived."+d.Name, d.Unit, d.Value)
	}
}
