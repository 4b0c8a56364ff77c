//go:build linux && cgo

package gpu

import (
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/engine"
)

// gpmMetrics are the GPM metrics that rooftop reads. unit is the number of GPM's units in
// one of the field's: NVML gives percent and MiB/s (nvml.h, nvmlGpmMetricId_t).
var gpmMetrics = [...]struct {
	id    nvml.GpmMetricId
	field engine.GPUField
	unit  float64
}{
	{nvml.GPM_METRIC_DRAM_BW_UTIL, engine.GPUDRAMActive, percent},
	{nvml.GPM_METRIC_ANY_TENSOR_UTIL, engine.GPUTensorUtil, percent},
	{nvml.GPM_METRIC_SM_UTIL, engine.GPUSMActive, percent},
	{nvml.GPM_METRIC_PCIE_TX_PER_SEC, engine.GPUPCIeTxBps, perMiB},
	{nvml.GPM_METRIC_PCIE_RX_PER_SEC, engine.GPUPCIeRxBps, perMiB},
	{nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, engine.GPUNVLinkTxBps, perMiB},
	{nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, engine.GPUNVLinkRxBps, perMiB},
}

const (
	// gpmMinGap is the shortest time between two samples. The hardware refreshes its
	// counters every 100 ms (nvml.h).
	gpmMinGap = 100 * time.Millisecond
	// gpmMaxGap is the longest time between two samples of a pair. The mean of a longer one
	// says too little about the time of the reading.
	gpmMaxGap = 2 * time.Second
)

// gpmSamples holds the samples of the last two reads. A metric is the mean between them.
type gpmSamples struct {
	buffers [2]nvml.GpmSample // buffers[1] is overwritten next
	at      time.Duration     // time of buffers[0]
	taken   bool              // buffers[0] holds a sample
	request nvml.GpmMetricsGetType
}

// gpmFields are the fields of GPM's metrics.
func gpmFields() []engine.GPUField {
	var fields []engine.GPUField
	for _, m := range gpmMetrics {
		fields = append(fields, m.field)
	}
	return fields
}

// hopper is the first compute capability with GPM (nvml.h, nvmlGpmSampleGet). go-nvml 0.12.9 and
// 0.13.0 ask the driver itself with a version that it refuses (NVIDIA/go-nvml issue 168).
const hopper = 9

// open allocates the two buffers.
func (g *gpmSamples) open(u *unit) (ret nvml.Return) {
	if u.noGPM {
		return nvml.ERROR_NOT_SUPPORTED
	}
	for i := range g.buffers {
		if g.buffers[i] != nil {
			continue
		}
		if g.buffers[i], ret = u.lib.GpmSampleAlloc(); ret != nvml.SUCCESS {
			g.buffers[i] = nil
			return ret
		}
	}
	return nvml.SUCCESS
}

func (g *gpmSamples) free() {
	for i, b := range g.buffers {
		if b != nil {
			b.Free()
			g.buffers[i] = nil
		}
	}
}

// askGPM takes a sample and evaluates it against the previous one. It only reads the
// counters and never calls the setter that enables their streaming.
func (u *unit) askGPM(out *outcome) nvml.Return {
	g := &u.gpm
	if g.buffers[1] == nil {
		if ret := g.open(u); ret != nvml.SUCCESS {
			return ret
		}
	}
	now := u.clock()
	gap := now - g.at
	if g.taken && gap < gpmMinGap {
		return nvml.SUCCESS
	}
	if ret := u.sampleGPM(g.buffers[1]); ret != nvml.SUCCESS {
		return ret
	}
	paired := g.taken && gap <= gpmMaxGap
	g.buffers[0], g.buffers[1] = g.buffers[1], g.buffers[0]
	g.at, g.taken = now, true
	if !paired {
		return nvml.SUCCESS
	}
	return u.evaluateGPM(out)
}

func (u *unit) sampleGPM(into nvml.GpmSample) nvml.Return {
	if u.gi >= 0 {
		return u.whole.GpmMigSampleGet(u.gi, into)
	}
	return u.whole.GpmSampleGet(into)
}

func (u *unit) evaluateGPM(out *outcome) nvml.Return {
	g := &u.gpm
	g.request.NumMetrics = uint32(len(gpmMetrics))
	g.request.Sample1, g.request.Sample2 = g.buffers[1], g.buffers[0]
	for i, m := range gpmMetrics {
		g.request.Metrics[i].MetricId = uint32(m.id)
	}
	if ret := u.lib.GpmMetricsGet(&g.request); ret != nvml.SUCCESS {
		return ret
	}
	for i, m := range gpmMetrics {
		got := &g.request.Metrics[i]
		ret := nvml.Return(got.NvmlReturn)
		if ret == nvml.SUCCESS && (math.IsNaN(got.Value) || math.IsInf(got.Value, 0) || got.Value < 0) {
			ret = nvml.ERROR_NO_DATA
		}
		u.why[m.field] = reasonText(ret)
		if ret == nvml.SUCCESS {
			out.set(m.field, got.Value/m.unit)
		}
	}
	return nvml.SUCCESS
}
