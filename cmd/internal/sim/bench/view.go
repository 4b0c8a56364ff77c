package bench

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	metricsURL = "http://127.0.0.1:8000/metrics"
	// version is rooftop's version in the diagnoses of a bench.
	version = "bench"
	// serverPID represents the server's process, which does not exist in a bench.
	serverPID = 4242
)

// Header returns what attaching to the current server would find now: its launch, given the command that it was
// started with, and the facts from its endpoints. There must be a server.
func (w *World) Header(command *launch.Config) session.Header {
	s := w.live
	model, _, _ := command.Model()
	free := s.FreeGPUs()
	return session.Header{
		Schema: session.RecordingSchema, Version: version, Started: epoch.Add(w.now),
		Target: engine.Target{URL: metricsURL, Simulated: true},
		Inputs: facts.Inputs{
			Launch: facts.FromLaunch(command), LaunchModel: model, LaunchText: command.String(),
			Local: true, PID: serverPID, FreeGPUs: &free,
			Server: facts.ServerAnswers{
				Version: s.Release + ".0+sim", Model: s.Served[0], Root: s.ModelName, MaxModelLen: s.MaxModelLen,
			},
		},
	}
}

// GPUs returns a reading of the devices now, as NVML gives it, with t as its time; nil without a server.
func (w *World) GPUs(t time.Duration) *engine.GPUReading {
	if w.server == nil {
		return nil
	}
	devices := w.server.GPUs(w.now)
	r := &engine.GPUReading{T: t, Took: time.Millisecond, Devices: make([]engine.GPU, len(devices))}
	for i := range devices {
		d, g := &devices[i], &r.Devices[i]
		g.Index, g.Name, g.UUID = d.Index, d.Name, d.UUID
		g.Throttle, g.ThrottleOK = d.Throttle, true
		for field, v := range map[engine.GPUField]float64{
			engine.GPUUtil: d.Util, engine.GPUMemUtil: d.MemUtil, engine.GPUDRAMActive: d.DRAMActive,
			engine.GPUTensorUtil: d.TensorActive, engine.GPUSMActive: d.SMActive,
			engine.GPUPowerW: d.PowerW, engine.GPUPowerLimitW: d.LimitW,
			engine.GPUVRAMTotal: d.VRAMTotal, engine.GPUVRAMUsed: d.VRAM, engine.GPUTemperatureC: d.TemperatureC,
			engine.GPUSMClockMHz: d.SMClockMHz, engine.GPUMemClockMHz: d.MemClockMHz, engine.GPUEnergyJ: d.EnergyJ,
			engine.GPUNVLinkTxBps: d.NVLinkTx, engine.GPUPCIeTxBps: d.PCIeTx,
		} {
			g.Fields[field] = stat.Some(v)
		}
	}
	return r
}
