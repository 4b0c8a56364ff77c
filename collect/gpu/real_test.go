//go:build gpu && linux && cgo

package gpu

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// TestRealGPU compares NVML with nvidia-smi on a machine with an NVIDIA GPU:
//
//	go test -tags gpu -run TestRealGPU -v ./collect/gpu
//
// It passes idle and under load; under load the limits on power and clocks are
// what the GPU itself moves by between two readings.
func TestRealGPU(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	clock := sinceStart()
	nv, err := openLocalNVML(ctx, clock)
	if err != nil {
		t.Fatalf("open NVML: %v", err)
	}
	defer func() {
		if err := nv.Close(); err != nil {
			t.Error(err)
		}
	}()
	smi, err := openLocalSMI(ctx, Options{Clock: clock})
	if err != nil {
		t.Fatalf("open nvidia-smi: %v", err)
	}
	defer func() {
		if err := smi.Close(); err != nil {
			t.Error(err)
		}
	}()
	compareDevices(t, nv.Devices(), smi.Devices())

	// Two seconds, as a window has them: means are compared, since the two
	// sources read at different moments.
	const polls = 9
	beat := time.NewTicker(smiPeriod)
	defer beat.Stop()
	a, b := newMeans(len(nv.Devices())), newMeans(len(smi.Devices()))
	for range polls {
		<-beat.C
		a.read(t, ctx, nv)
		b.read(t, ctx, smi)
	}
	for i, d := range nv.Devices() {
		if d.MIG() {
			t.Logf("%s: nvidia-smi cannot read a slice", label(d))
			continue
		}
		j := slices.IndexFunc(smi.Devices(), func(o Device) bool { return o.UUID == d.UUID })
		if j < 0 {
			continue
		}
		compareReadings(t, label(d), a.of(i), b.of(j))
	}
	t.Logf("NVML: slowest read %v", a.slowest)
	t.Logf("NVML misses %+v", nv.Missing())
	t.Logf("NVML notes %q", nv.Notes())
	held, err := nv.Processes(ctx)
	t.Logf("processes %v, %v", held, err)
	if a.slowest > smiPeriod {
		t.Errorf("a read took %v: slower than the polls", a.slowest)
	}
}

func compareDevices(t *testing.T, nv, smi []Device) {
	t.Helper()
	for _, d := range nv {
		t.Logf("%s: %s %s, bus %s, minor %d, driver %s, %.0f MiB", label(d), d.Name, d.UUID, d.BusID, d.Minor, d.Driver, d.VRAMBytes.V/(1<<20))
		i := slices.IndexFunc(smi, func(o Device) bool { return o.UUID == d.UUID || o.UUID == d.Parent })
		if i < 0 {
			t.Errorf("nvidia-smi does not list %s", d.UUID)
			continue
		}
		o := smi[i]
		if d.MIG() {
			continue
		}
		// The file under /proc may be hidden in a container.
		if o.Minor < 0 {
			o.Minor = d.Minor
		}
		if d.Index != o.Index || d.Name != o.Name || d.BusID != o.BusID || d.Driver != o.Driver || d.Minor != o.Minor {
			t.Errorf("NVML says %+v, nvidia-smi %+v", d, o)
		}
	}
}

// means adds up readings by device and field.
type means struct {
	sum     [][engine.NumGPUFields]float64
	n       [][engine.NumGPUFields]int
	slowest time.Duration
}

func newMeans(devices int) *means {
	return &means{sum: make([][engine.NumGPUFields]float64, devices), n: make([][engine.NumGPUFields]int, devices)}
}

func (m *means) read(t *testing.T, ctx context.Context, s Source) {
	t.Helper()
	r, err := s.Read(ctx)
	if err != nil {
		t.Fatalf("%s: %v", s.Name(), err)
	}
	m.slowest = max(m.slowest, r.Took)
	for i, d := range r.Devices {
		for f, v := range d.Fields {
			if v.OK {
				m.sum[i][f] += v.V
				m.n[i][f]++
			}
		}
	}
}

func (m *means) of(i int) [engine.NumGPUFields]float64 {
	var mean [engine.NumGPUFields]float64
	for f := range mean {
		mean[f] = m.sum[i][f] / float64(m.n[i][f]) // NaN where absent
	}
	return mean
}

// compareReadings holds the two sources against each other: a field may differ
// by a share of its value or by an amount, whichever is more.
func compareReadings(t *testing.T, device string, nv, smi [engine.NumGPUFields]float64) {
	t.Helper()
	for _, limit := range []struct {
		name          string
		field         engine.GPUField
		share, amount float64
	}{
		{"utilization", engine.GPUUtil, 0, 0.15},
		{"memory utilization", engine.GPUMemUtil, 0, 0.15},
		{"power, W", engine.GPUPowerW, 0.15, 10},
		{"power limit, W", engine.GPUPowerLimitW, 0, 0.01},
		{"VRAM total, bytes", engine.GPUVRAMTotal, 0, 1 << 20},
		{"VRAM used, bytes", engine.GPUVRAMUsed, 0.01, 64 << 20},
		{"temperature, °C", engine.GPUTemperatureC, 0, 3},
		{"SM clock, MHz", engine.GPUSMClockMHz, 0.15, 60},
		{"memory clock, MHz", engine.GPUMemClockMHz, 0.02, 5},
	} {
		a, b := nv[limit.field], smi[limit.field]
		t.Logf("%s: %s: NVML %.4g, nvidia-smi %.4g", device, limit.name, a, b)
		if math.IsNaN(a) != math.IsNaN(b) {
			t.Errorf("%s: %s: one source has it, the other has not", device, limit.name)
			continue
		}
		if math.Abs(a-b) > max(limit.share*b, limit.amount) {
			t.Errorf("%s: %s: NVML %.4g, nvidia-smi %.4g", device, limit.name, a, b)
		}
	}
	for _, only := range []struct {
		name  string
		field engine.GPUField
	}{
		{"highest SM clock, MHz", engine.GPUSMClockMaxMHz}, {"temperature limit, °C", engine.GPUTemperatureLimitC},
		{"energy, J", engine.GPUEnergyJ}, {"DRAM use", engine.GPUDRAMActive}, {"tensor use", engine.GPUTensorUtil}, {"SM use", engine.GPUSMActive},
		{"PCIe tx, B/s", engine.GPUPCIeTxBps}, {"PCIe rx, B/s", engine.GPUPCIeRxBps},
		{"NVLink tx, B/s", engine.GPUNVLinkTxBps}, {"NVLink rx, B/s", engine.GPUNVLinkRxBps},
	} {
		t.Logf("%s: %s: NVML %.4g (NaN is absent)", device, only.name, nv[only.field])
		for _, ratio := range []engine.GPUField{engine.GPUDRAMActive, engine.GPUTensorUtil, engine.GPUSMActive} {
			if only.field == ratio && nv[ratio] > 1 {
				t.Errorf("%s: %s is %v, more than 1", device, only.name, nv[ratio])
			}
		}
	}
}

// TestRealEnergy holds the energy counter against integrated power over a
// minute at the cadence of a probe, and both against nvidia-smi's own power:
//
//	go test -tags gpu -run TestRealEnergy -v ./collect/gpu
//
// The three agree within 3 % where the load is steady; power is averaged over a
// second, so a load that changes at the minute's ends moves it by as much.
func TestRealEnergy(t *testing.T) {
	const length, period, limit = time.Minute, 50 * time.Millisecond, 0.03
	ctx, cancel := context.WithTimeout(t.Context(), 2*length)
	defer cancel()
	clock := sinceStart()
	nv, err := openLocalNVML(ctx, clock)
	if err != nil {
		t.Fatalf("open NVML: %v", err)
	}
	defer func() { _ = nv.Close() }()
	smi, err := openLocalSMI(ctx, Options{Clock: clock})
	if err != nil {
		t.Fatalf("open nvidia-smi: %v", err)
	}
	defer func() { _ = smi.Close() }()

	var readings, rows []engine.GPUReading
	var longest time.Duration
	beat := time.NewTicker(period)
	defer beat.Stop()
	for end := clock() + length; clock() < end; {
		<-beat.C
		r, err := nv.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		readings = append(readings, r)
		longest = max(longest, r.Took)
		if row, err := smi.Read(ctx); err == nil {
			rows = append(rows, row)
		}
	}
	t.Logf("%d reads, the longest took %v; averaging %+v", len(readings), longest, AveragingOf(nv))
	if longest > period {
		t.Errorf("a read took %v: longer than the period of %v", longest, period)
	}
	for i, d := range nv.Devices() {
		if d.MIG() {
			continue
		}
		j := slices.IndexFunc(smi.Devices(), func(o Device) bool { return o.UUID == d.UUID })
		counter := growth(readings, i)
		power, other := trapezoid(readings, i), trapezoid(rows, j)
		steps, longestStep := updates(readings, i)
		t.Logf("%s: counter %.1f J, NVML power %.1f J, nvidia-smi power %.1f J; the counter moved %d times, at most %v apart", label(d), counter, power, other, steps, longestStep)
		for name, v := range map[string]float64{"NVML's power": power, "nvidia-smi's power": other} {
			if math.IsNaN(v) || math.Abs(v-counter) > limit*counter {
				t.Errorf("%s: counter %.1f J, %s %.1f J: more than %.0f %% apart", label(d), counter, name, v, 100*limit)
			}
		}
	}
}

// growth is what the energy counter grew by between the first and last reading.
func growth(readings []engine.GPUReading, device int) float64 {
	first, last := readings[0].Devices[device].Fields[engine.GPUEnergyJ], readings[len(readings)-1].Devices[device].Fields[engine.GPUEnergyJ]
	if !first.OK || !last.OK {
		return math.NaN()
	}
	return last.V - first.V
}

// trapezoid integrates power over the readings, in joules.
func trapezoid(readings []engine.GPUReading, device int) float64 {
	if device < 0 || len(readings) < 2 {
		return math.NaN()
	}
	sum := 0.0
	for i := range len(readings) - 1 {
		a, b := readings[i].Devices[device].Fields[engine.GPUPowerW], readings[i+1].Devices[device].Fields[engine.GPUPowerW]
		sum += (a.V + b.V) / 2 * (readings[i+1].T - readings[i].T).Seconds()
	}
	return sum
}

// updates counts how often the energy counter was found moved, and the longest
// time between two of these readings.
func updates(readings []engine.GPUReading, device int) (n int, longest time.Duration) {
	at := readings[0].T
	for i := 1; i < len(readings); i++ {
		if readings[i].Devices[device].Fields[engine.GPUEnergyJ] != readings[i-1].Devices[device].Fields[engine.GPUEnergyJ] {
			n++
			longest = max(longest, readings[i].T-at)
			at = readings[i].T
		}
	}
	return n, longest
}
