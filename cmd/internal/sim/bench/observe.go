package bench

import (
	"cmp"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	metricsURL = "http://127.0.0.1:8000/metrics"
	// scrapeTook is how long fetching a page over loopback takes for the client.
	scrapeTook = 3 * time.Millisecond
	// version is rooftop's version in the diagnoses of a bench.
	version = "bench"
	// serverPID stands for the server's process, which does not exist in a bench.
	serverPID = 4242
)

// header returns what attaching to the server would find: its launch from the command line, and the
// facts from its endpoints.
func header(s *settings.Settings, command *launch.Config, began time.Duration) session.Header {
	model, _, _ := command.Model()
	free := s.FreeGPUs()
	return session.Header{
		Schema: session.RecordingSchema, Version: version, Started: epoch.Add(began),
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

// observer polls the world's server and diagnoses it.
type observer struct {
	world    *World
	analysis *session.Analysis
	began    time.Duration
	until    time.Duration
	every    time.Duration // between polls of pages alone; 0 is engine.PollInterval with everything else
	body     []byte
	pages    func(at time.Duration, body []byte) // called with every page; may be nil
}

// observe starts polling now, for the given length; every is as in [Options].
func (w *World) observe(h session.Header, length, every time.Duration) (*observer, error) {
	a, err := session.NewAnalysis(h)
	if err != nil {
		return nil, err
	}
	o := &observer{world: w, analysis: a, began: w.now, until: w.now + length, every: every}
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
	if err == nil && o.every == 0 && tick%engine.WindowLength == 0 {
		h := w.Health()
		h.T = p.PageT
		p.Health = &h
	}
	if w.server != nil && o.every == 0 {
		p.GPU = reading(w.server.GPUs(w.now), tick)
	}
	o.analysis.Add(p)
	if next := w.now + cmp.Or(o.every, engine.PollInterval); next <= o.until {
		w.At(next, o.poll)
	}
}

// diagnose ends the measurement and returns its diagnosis.
func (o *observer) diagnose() engine.Diagnosis {
	return o.analysis.Diagnose(session.End{Duration: o.until - o.began}, version)
}

// reading returns simulated devices as a reading of NVML.
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
