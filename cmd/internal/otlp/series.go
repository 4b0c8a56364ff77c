package otlp

import (
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxSamples is how many points a series has at most, the first and the last among
// them: an hour of samples at 50 ms is more than a collector wants, and an export
// has ten seconds. What lies between is left out, not averaged.
const maxSamples = 240

// thinned picks from n samples in order.
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

// group gathers the points of metrics, in the order in which these come up.
type group struct {
	e     *export
	order []string
	byKey map[string]*metric
}

type metric struct {
	name, unit string
	kind       sumKind
	points     []metricdata.DataPoint[float64]
}

// sumKind says what a metric's points add up to.
type sumKind uint8

const (
	gauge   sumKind = iota // nothing
	upDown                 // a whole, over what the attributes tell apart
	counter                // the same, and it only grows
)

func (e *export) group() *group { return &group{e: e, byKey: map[string]*metric{}} }

func (g *group) add(kind sumKind, name, unit string, start time.Time, at time.Duration, attrs attribute.Set, v stat.Opt) {
	if !v.OK || math.IsNaN(v.V) || math.IsInf(v.V, 0) {
		return
	}
	m := g.byKey[name]
	if m == nil {
		m = &metric{name: name, unit: unit, kind: kind}
		g.byKey[name] = m
		g.order = append(g.order, name)
	}
	m.points = append(m.points, metricdata.DataPoint[float64]{Attributes: attrs, StartTime: start, Time: g.e.moment(at), Value: v.V})
}

func (g *group) gauge(name, unit string, at time.Duration, attrs attribute.Set, v stat.Opt) {
	g.add(gauge, name, unit, time.Time{}, at, attrs, v)
}

func (g *group) level(name, unit string, at time.Duration, attrs attribute.Set, v stat.Opt) {
	g.add(upDown, name, unit, time.Time{}, at, attrs, v)
}

// growth is what a counter grew by since it was first read.
func (g *group) growth(name, unit string, from, at time.Duration, attrs attribute.Set, first, v stat.Opt) {
	g.add(counter, name, unit, g.e.moment(from), at, attrs, minus(v, first))
}

func (g *group) metrics() []metricdata.Metrics {
	var list []metricdata.Metrics
	for _, name := range g.order {
		m := g.byKey[name]
		out := metricdata.Metrics{Name: m.name, Unit: m.unit, Data: metricdata.Gauge[float64]{DataPoints: m.points}}
		if m.kind != gauge {
			out.Data = metricdata.Sum[float64]{DataPoints: m.points, Temporality: metricdata.CumulativeTemporality, IsMonotonic: m.kind == counter}
		}
		list = append(list, out)
	}
	return list
}

// processMetrics are those of each process of the tree. The conventions put what
// identifies a process into the resource; here it stands beside the points, because
// the sender is rooftop.
func (e *export) processMetrics() []metricdata.Metrics {
	g := e.group()
	t := &e.c.Tree
	type first struct {
		at time.Duration
		s  *capture.ProcessSample
	}
	opening := map[int]first{}
	for i := range t.Samples {
		for j := range t.Samples[i].Processes {
			if s := &t.Samples[i].Processes[j]; opening[s.Process].s == nil {
				opening[s.Process] = first{t.Samples[i].At, s}
			}
		}
	}
	for _, i := range thinned(len(t.Samples)) {
		for j := range t.Samples[i].Processes {
			s := &t.Samples[i].Processes[j]
			if s.Process < len(t.Processes) {
				from := opening[s.Process]
				g.process(&t.Processes[s.Process], from.at, from.s, t.Samples[i].At, s)
			}
		}
	}
	return g.metrics()
}

// process adds what one process used by one look.
func (g *group) process(p *capture.Process, from time.Duration, first *capture.ProcessSample, at time.Duration, s *capture.ProcessSample) {
	base := []attribute.KeyValue{attribute.Int("process.pid", p.PID), attribute.String("process.executable.name", p.Comm)}
	for _, a := range [...][2]string{{"process.title", p.Title}, {"rooftop.process.role", p.Role}} {
		if a[1] != "" {
			base = append(base, attribute.String(a[0], a[1]))
		}
	}
	set := func(more ...attribute.KeyValue) attribute.Set {
		return attribute.NewSet(append(base[:len(base):len(base)], more...)...)
	}
	// Without cpu.mode: user and system time are one number in a capture.
	g.growth("process.cpu.time", "s", from, at, set(), stat.Some(first.CPU.Seconds()), stat.Some(s.CPU.Seconds()))
	g.level("process.memory.usage", "By", at, set(), stat.Some(float64(s.RSSBytes)))
	g.level("process.thread.count", "{thread}", at, set(), stat.Some(float64(s.Threads)))
	for _, c := range []struct {
		name, unit, key, word string
		first, v              stat.Opt
	}{
		{"process.paging.faults", "{fault}", "system.paging.fault.type", "minor", first.MinorFaults, s.MinorFaults},
		{"process.paging.faults", "{fault}", "system.paging.fault.type", "major", first.MajorFaults, s.MajorFaults},
		{"process.context_switches", "{context_switch}", "process.context_switch.type", "voluntary", first.VoluntarySwitches, s.VoluntarySwitches},
		{"process.context_switches", "{context_switch}", "process.context_switch.type", "involuntary", first.InvoluntarySwitches, s.InvoluntarySwitches},
		{"process.disk.io", "By", "disk.io.direction", "read", first.ReadBytes, s.ReadBytes},
		{"process.disk.io", "By", "disk.io.direction", "write", first.WrittenBytes, s.WrittenBytes},
	} {
		g.growth(c.name, c.unit, from, at, set(attribute.String(c.key, c.word)), c.first, c.v)
	}
	g.level("rooftop.process.memory.proportional", "By", at, set(), s.PSSBytes)
}

// gpuNames are the metrics of a GPU's fields.
var gpuNames = []struct {
	field      engine.GPUField
	kind       sumKind
	name, unit string
}{
	{engine.GPUUtil, gauge, "hw.gpu.utilization", "1"},
	{engine.GPUVRAMUsed, upDown, "hw.gpu.memory.usage", "By"},
	{engine.GPUVRAMTotal, upDown, "hw.gpu.memory.limit", "By"},
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

// gpuMetrics are those of each device.
func (e *export) gpuMetrics() []metricdata.Metrics {
	g := e.group()
	readings := e.c.GPUs.Readings
	type first struct {
		at time.Duration
		v  stat.Opt
	}
	opening := map[string]first{} // of the energy counter
	for _, i := range thinned(len(readings)) {
		at := readings[i].T
		for j := range readings[i].Devices {
			d := &readings[i].Devices[j]
			id := d.UUID
			if id == "" {
				id = strconv.Itoa(d.Index)
			}
			attrs := attribute.NewSet(attribute.String("hw.id", id), attribute.String("hw.type", "gpu"),
				attribute.String("hw.name", d.Name), attribute.Int("rooftop.gpu.index", d.Index))
			if _, seen := opening[id]; !seen && d.Fields[engine.GPUEnergyJ].OK {
				opening[id] = first{at, d.Fields[engine.GPUEnergyJ]}
			}
			for _, f := range gpuNames {
				if f.kind == counter {
					g.growth(f.name, f.unit, opening[id].at, at, attrs, opening[id].v, d.Fields[f.field])
				} else {
					g.add(f.kind, f.name, f.unit, time.Time{}, at, attrs, d.Fields[f.field])
				}
			}
		}
	}
	return g.metrics()
}
