package perf

import (
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
)

// Reading is the state of one simulated GPU at an instant, with values as defined by NVML.
type Reading struct {
	Index            int
	Name, UUID       string
	Util, MemUtil    float64 // 0..1
	DRAMActive       float64 // 0..1
	TensorActive     float64 // 0..1
	SMActive         float64 // 0..1
	PowerW, LimitW   float64
	VRAMTotal, VRAM  float64 // bytes
	TemperatureC     float64
	TemperatureLimit float64 // °C from which the clock falls
	SMClockMHz       float64
	SMClockMaxMHz    float64
	MemClockMHz      float64
	EnergyJ          float64 // since the start of the machine
	Throttle         uint64  // NVML's mask of clock-event reasons
	NVLinkTx, PCIeTx float64 // bytes per second
}

// period is the sampling period of utilization: nvml.h states 1/6 s to 1 s, depending on the product.
const period = time.Second / 6

// Meter accumulates steps into readings of the GPUs of one rank, which are all equal. Times must not decrease.
type Meter struct {
	m     *Machine
	first int
	vram  float64
	chip  chip

	at      time.Duration // time up to which everything is accounted for
	window  uses          // of the period that contains at
	shown   shown         // of the last full period
	now     activity      // of the current or last step
	until   time.Duration // end of that step
	tempC   float64
	energyJ float64
}

// activity is the use of a GPU during a step, as shares of its peaks.
type activity struct {
	busy, memory, tensor, slow, clock, link float64
}

// uses holds time integrals over a part of a period, in seconds and bytes.
type uses struct {
	busy, memory, tensor, active, slow, capped, clock, link float64
}

// shown holds the values that NVML reports until the end of the next period.
type shown struct {
	busy, memory, tensor, active, clock, link, powerW float64
	throttle                                          uint64
}

// NewMeter returns the meter of the GPUs of one rank; first is the index of its
// first GPU.
func (m *Machine) NewMeter(first int, z Sizing) *Meter {
	t := &Meter{m: m, first: first, chip: chipOf(m.s.GPU), tempC: ambientC}
	t.vram = min(z.WeightBytes+z.ActivationBytes+z.OtherBytes+z.GraphBytes+z.KVBytes+m.c.contextBytes, m.s.GPU.VRAMGiB*gib)
	t.shown = shown{clock: 1, powerW: m.power(0, 0, 0), throttle: catalog.Idle}
	return t
}

// Step records that a step runs from began to ended; slow is the factor by which a
// fault lengthened it (1 without one). It is best called as the step begins:
// if it is called after a later Read, the time before that Read counts as spent just
// after it.
func (t *Meter) Step(began, ended time.Duration, b Breakdown, slow float64) {
	seconds := (ended - began).Seconds()
	if seconds <= 0 {
		return
	}
	t.advance(began)
	late := max(t.at-began, 0)
	a := activity{
		busy:   min(b.Busy*slow/seconds, 1),
		memory: min(b.Bytes/(t.m.bandwidth*seconds), 1),
		tensor: min(b.FLOPs/(t.m.lowPeak*seconds), 1),
		link:   b.LinkBytes / seconds,
		slow:   max(slow, 1),
		clock:  b.Clock / max(slow, 1),
	}
	if late > 0 {
		t.window.add(&a, min(late, ended-began).Seconds())
	}
	t.now, t.until = a, ended
}

// advance accounts for the time up to now.
func (t *Meter) advance(now time.Duration) {
	for t.at < now {
		end := min(now, t.at-t.at%period+period)
		if t.at < t.until {
			end = min(end, t.until)
			t.window.add(&t.now, (end - t.at).Seconds())
		}
		if t.at = end; end%period == 0 {
			t.close()
		}
	}
}

func (u *uses) add(a *activity, seconds float64) {
	u.active += seconds
	u.busy += a.busy * seconds
	u.memory += a.memory * seconds
	u.tensor += a.tensor * seconds
	u.link += a.link * seconds
	u.clock += a.clock * seconds
	if a.slow > 1 {
		u.slow += seconds
	}
	if a.clock*a.slow < 1 {
		u.capped += seconds
	}
}

// Thermal figures of an air-cooled server GPU, assumed: steady state at full
// power 75 C, time constant of the heat sink 30 s.
const (
	ambientC      = 30
	riseC         = 45
	heatSeconds   = 30
	thermalLimitC = 87 // shown while a fault slows the clock
)

// close ends a period: its values are reported until the next one ends.
func (t *Meter) close() {
	u, p := &t.window, period.Seconds()
	s := shown{
		busy: min(u.busy/p, 1), memory: min(u.memory/p, 1), tensor: min(u.tensor/p, 1),
		active: min(u.busy/p, 1), link: u.link / p, clock: 1,
	}
	if u.active > 0 {
		s.clock = u.clock / u.active
	}
	wants := t.m.power(s.busy, s.memory, s.tensor)
	s.powerW = min(wants, t.m.limitW)
	switch {
	case u.slow > 0:
		s.throttle = catalog.SWThermal
	case u.capped > 0 || wants > t.m.limitW:
		s.throttle = catalog.PowerCap
	case u.busy == 0:
		s.throttle = catalog.Idle
	}
	t.energyJ += s.powerW * p
	target := ambientC + riseC*s.powerW/t.m.powerW
	if u.slow > 0 {
		target = thermalLimitC
	}
	t.tempC += (target - t.tempC) * p / (heatSeconds + p)
	t.shown, t.window = s, uses{}
}

// Read returns the readings that NVML would report at time now; utilization is that of the last full period of
// 1/6 s.
func (t *Meter) Read(now time.Duration) []Reading {
	// At most to the end of the last full period, so that a read does not change later results.
	t.advance(now - now%period)
	g, s := t.m.s.GPU, &t.shown
	out := make([]Reading, t.m.s.TensorParallel)
	for i := range out {
		r := &out[i]
		*r = Reading{
			Index: t.first + i, Name: g.Name, UUID: uuid(t.first + i),
			Util: s.busy, MemUtil: min(s.busy, s.memory*1.1), DRAMActive: s.memory, TensorActive: s.tensor,
			SMActive: 0.95 * s.busy, PowerW: s.powerW, LimitW: t.m.limitW,
			VRAMTotal: g.VRAMGiB * gib, VRAM: t.vram, TemperatureC: math.Round(t.tempC), TemperatureLimit: thermalLimitC,
			SMClockMHz: math.Round(t.chip.smMHz * s.clock), SMClockMaxMHz: t.chip.smMHz, MemClockMHz: t.chip.memoryMHz,
			EnergyJ:  t.energyJ,
			Throttle: s.throttle,
		}
		if g.NVLinkGBs != nil && *g.NVLinkGBs > 0 {
			r.NVLinkTx = s.link
		} else {
			r.PCIeTx = s.link
		}
		if s.throttle == catalog.Idle {
			r.SMClockMHz = t.chip.idleMHz
		}
	}
	return out
}

// uuid returns a UUID in NVML's format that no real GPU has.
func uuid(index int) string { return fmt.Sprintf("GPU-51a00000-0000-4000-8000-%012x", index) }
