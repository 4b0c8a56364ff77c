package simbench

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	metricsURL = "http://127.0.0.1:8000/metrics"
	// scrapeTook is what fetching a page takes over loopback, as seen by the one
	// who asks.
	scrapeTook = 3 * time.Millisecond
	// version is the rooftop that a bench's diagnoses name.
	version = "bench"
	// serverPID stands for the server's process, which a bench has none of.
	serverPID = 4242
)

// header is what attaching to the server would find out: its launch from the
// command line, and what its endpoints tell of it.
func header(s *settings.Settings, command *launch.Config, began time.Duration) session.Header {
	model, _, _ := command.Model()
	return session.Header{
		Schema: session.RecordingSchema, Version: version, Started: epoch.Add(began),
		Target: engine.Target{URL: metricsURL, Simulated: true},
		Inputs: engine.Inputs{
			Launch: session.Settings(command), LaunchModel: model, LaunchText: command.String(),
			Local: true, PID: serverPID,
			Server: engine.ServerFacts{
				Version: s.Release + ".0+sim", Model: s.Served[0], Root: s.ModelName, MaxModelLen: s.MaxModelLen,
			},
		},
	}
}

// observer polls the world's server and diagnoses it.
type observer struct {
	world    *World
	analysis *session.Analysis
	began    time.Duration
	until    time.Duration
	body     []byte
	pages    func(at time.Duration, body []byte) // sees every page; nil is nobody
}

// observe begins to poll now, for a time.
func (w *World) observe(h session.Header, length time.Duration) (*observer, error) {
	a, err := session.NewAnalysis(h)
	if err != nil {
		return nil, err
	}
	o := &observer{world: w, analysis: a, began: w.now, until: w.now + length}
	o.poll()
	return o, nil
}

func (o *observer) poll() {
	w := o.world
	tick := w.now - o.began
	p := &session.Poll{T: tick, PageT: tick + scrapeTook, Took: scrapeTook}
	body, err := w.Page(o.body[:0])
	if err != nil {
		p.PageErr = err.Error()
	} else {
		o.body = body
		p.Body = string(body)
		if o.pages != nil {
			o.pages(w.now, body)
		}
	}
	if w.server != nil {
		p.GPU = reading(w.server.GPUs(w.now), tick)
	}
	o.analysis.Add(p)
	if next := w.now + engine.PollInterval; next <= o.until {
		w.At(next, o.poll)
	}
}

// diagnose ends the measurement.
func (o *observer) diagnose() engine.Diagnosis {
	return o.analysis.Diagnose(session.End{Duration: o.until - o.began}, version)
}

// reading turns simulated devices into a reading as NVML gives one.
func reading(devices []perf.Reading, t time.Duration) *engine.GPUReading {
	if len(devices) == 0 {
		return nil
	}
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
