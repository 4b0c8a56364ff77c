package perf_test

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
)

// metered runs steps of a batch for a while, of each the given share busy, and
// returns the meter with its time.
func metered(t *testing.T, argv string, b core.Batch, long time.Duration, share, slow float64) (*perf.Meter, time.Duration) {
	t.Helper()
	m, _ := machine(t, argv)
	z, err := m.Size()
	if err != nil {
		t.Fatal(err)
	}
	meter := m.NewMeter(2, z)
	d := m.Step(&b)
	step := time.Duration(d.Total * slow * 1e9)
	now := time.Duration(0)
	for now < long {
		meter.Step(now, now+step, d, slow)
		now += time.Duration(float64(step) / share)
	}
	return meter, now
}

const meteredServer = "meta-llama/Llama-3.3-70B-Instruct --sim-gpu H100-SXM5-80GB -tp 4"

func TestMeterMeanings(t *testing.T) {
	tests := []struct {
		name        string
		b           core.Batch
		share, slow float64
		check       func(r perf.Reading) bool
		want        string
	}{
		{"decoding reads memory", batch(32, 1000), 1, 1, func(r perf.Reading) bool {
			return r.Util > 0.9 && r.DRAMActive > 0.6 && r.TensorActive < 0.2 && r.PowerW > 0.4*r.LimitW && r.PowerW < 0.8*r.LimitW && r.Throttle == 0 && r.SMClockMHz == 1980
		}, "busy, memory high, tensor units low, below the power limit"},
		{"prompts compute, at the power limit", prompt(8192, 0), 1, 1, func(r perf.Reading) bool {
			return r.Util > 0.9 && r.TensorActive > 0.45 && r.DRAMActive < 0.3 && r.PowerW > 0.7*r.LimitW
		}, "busy, tensor units high, memory low"},
		{"one third of the time", batch(32, 1000), 1.0 / 3, 1, func(r perf.Reading) bool {
			return math.Abs(r.Util-0.33) < 0.06 && r.NVLinkTx > 0
		}, "utilization of a third"},
		{"a slowed clock", batch(32, 1000), 1, 1.4, func(r perf.Reading) bool {
			return r.Throttle == catalog.SWThermal && math.Abs(r.SMClockMHz-1980/1.4) < 2 && r.Util > 0.9 && r.TemperatureC > 80
		}, "the thermal reason, the clock lowered by the same factor, hot"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			meter, now := metered(t, meteredServer, tt.b, 3*time.Minute, tt.share, tt.slow)
			all := meter.Read(now)
			if len(all) != 4 || all[0].Index != 2 || all[3].Index != 5 || all[0].UUID == all[1].UUID {
				t.Fatalf("4 GPUs from index 2 on are %+v", all)
			}
			if r := all[0]; !tt.check(r) {
				t.Errorf("want %s; got %+v", tt.want, r)
			}
		})
	}
}

// TestMeterWithinALongStep: a reading in the middle of a step sees it run, and
// reading often changes nothing.
func TestMeterWithinALongStep(t *testing.T) {
	m, _ := machine(t, meteredServer)
	z, _ := m.Size()
	b := prompt(8192, 0)
	d := m.Step(&b)
	often, once := m.NewMeter(0, z), m.NewMeter(0, z)
	for _, meter := range []*perf.Meter{often, once} {
		meter.Step(0, 2*time.Second, d, 1)
	}
	for at := time.Duration(0); at < time.Second; at += 7 * time.Millisecond {
		often.Read(at)
	}
	a, c := often.Read(time.Second)[0], once.Read(time.Second)[0]
	if a != c || a.Util == 0 {
		t.Errorf("read often: %+v; once: %+v", a, c)
	}
}

// TestMeterRecordsLateSteps checks that a step that is recorded at its end, after readings, loses no busy time.
func TestMeterRecordsLateSteps(t *testing.T) {
	m, _ := machine(t, meteredServer)
	z, _ := m.Size()
	b := batch(64, 1000)
	d := m.Step(&b)
	step := time.Duration(d.Total * 1e9)
	meter := m.NewMeter(0, z)
	for now := time.Duration(0); now < 5*time.Second; now += step {
		meter.Read(now + step/2)
		meter.Step(now, now+step, d, 1)
	}
	if r := meter.Read(5 * time.Second)[0]; r.Util < 0.85 {
		t.Errorf("a GPU that always works reads %.2f busy", r.Util)
	}
}
