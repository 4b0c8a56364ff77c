//go:build linux && cgo

package gpu

import (
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/engine"
)

// gpmMetric is a GPM metric that rooftop asks for.
type gpmMetric uint8

const (
	gpmDRAM gpmMetric = iota
	gpmTensor
	gpmSM
	gpmPCIeTx
	gpmPCIeRx
	gpmNVLinkTx
	gpmNVLinkRx
	numGPM
)

// gpmMetrics says what each metric is called and how many of its units make one
// of the field's: NVML gives percent and MiB/s (nvml.h, nvmlGpmMetricId_t).
func gpmMetrics() [numGPM]struct {
	id    nvml.GpmMetricId
	field engine.GPUField
	unit  float64
} {
	const percent, mib = 100, 1.0 / (1 << 20)
	return [numGPM]struct {
		id    nvml.GpmMetricId
		field engine.GPUField
		unit  float64
	}{
		gpmDRAM:     {nvml.GPM_METRIC_DRAM_BW_UTIL, engine.GPUDRAMActive, percent},
		gpmTensor:   {nvml.GPM_METRIC_ANY_TENSOR_UTIL, engine.GPUTensorUtil, percent},
		gpmSM:       {nvml.GPM_METRIC_SM_UTIL, engine.GPUSMActive, percent},
		gpmPCIeTx:   {nvml.GPM_METRIC_PCIE_TX_PER_SEC, engine.GPUPCIeTxBps, mib},
		gpmPCIeRx:   {nvml.GPM_METRIC_PCIE_RX_PER_SEC, engine.GPUPCIeRxBps, mib},
		gpmNVLinkTx: {nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, engine.GPUNVLinkTxBps, mib},
		gpmNVLinkRx: {nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, engine.GPUNVLinkRxBps, mib},
	}
}

const (
	// The hardware's counters are refreshed every 100 ms (nvml.h): closer
	// samples say nothing.
	gpmMinGap = 100 * time.Millisecond
	// A pair further apart than this describes an earlier time than its reading.
	gpmMaxGap = 2 * time.Second
)

// gpmSamples holds the samples of the last two reads: a metric is the mean
// between them.
type gpmSamples struct {
	buffers [2]nvml.GpmSample // the older one is overwritten
	at      time.Duration     // of buffers[0]
	taken   bool              // buffers[0] holds a sample
	lacks   [numGPM]bool      // the last pair did not give this metric: other questions stand in
	request nvml.GpmMetricsGetType
}

// fail drops the pair: no metric comes from GPM until one is complete again.
func (g *gpmSamples) fail() {
	g.taken = false
	for i := range g.lacks {
		g.lacks[i] = true
	}
}

// open checks the device and takes the two buffers.
func (g *gpmSamples) open(u *unit) nvml.Return {
	support, ret := u.whole.GpmQueryDeviceSupport()
	if ret != nvml.SUCCESS {
		return ret
	}
	if support.IsSupportedDevice == 0 {
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

// askGPM takes a sample and evaluates it against the one before. Reading the
// counters is a measurement; what would switch their streaming on is a setter,
// and is not called.
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
	metrics := gpmMetrics()
	g.request.NumMetrics = uint32(numGPM)
	g.request.Sample1, g.request.Sample2 = g.buffers[1], g.buffers[0]
	for i, m := range metrics {
		g.request.Metrics[i].MetricId = uint32(m.id)
	}
	if ret := u.lib.GpmMetricsGet(&g.request); ret != nvml.SUCCESS {
		return ret
	}
	for i, m := range metrics {
		got := &g.request.Metrics[i]
		ret := nvml.Return(got.NvmlReturn)
		if ret == nvml.SUCCESS && (math.IsNaN(got.Value) || math.IsInf(got.Value, 0) || got.Value < 0) {
			ret = nvml.ERROR_NO_DATA
		}
		u.why[m.field] = reasonText(ret)
		g.lacks[i] = ret != nvml.SUCCESS
		if ret == nvml.SUCCESS {
			out.set(m.field, got.Value/m.unit)
		}
	}
	return nvml.SUCCESS
}
