package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Options are the options of a run.
type Options struct {
	Seed uint64
	// For is the length of the measurement; 0 means that of the scenario.
	For time.Duration
	// Every is the time between polls as a Prometheus server makes them, which read the page alone; 0 is
	// engine.PollInterval, with the GPUs and the health.
	Every time.Duration
	// Objectives bound the headroom of the diagnosis.
	Objectives []verdict.Objective
	// Pages is called with every polled metrics page, which is valid during the call; may be nil.
	Pages func(at time.Duration, body []byte)
}

// Outcome is the result of one run.
type Outcome struct {
	Command string // of the server
	// Refused is why the server did not start; no other field is set then.
	Refused   error
	Diagnosis engine.Diagnosis
	// Metrics are what clients measured in the window (tokens_per_s, ttft_p99_s, …), by stream if
	// there are several (chat.ttft_p99_s), and with the prefix "page." what the diagnosis measured.
	// A metric that was not measured is absent.
	Metrics map[string]float64
	Virtual time.Duration
}

// refused reports whether the server did not start.
func (o *Outcome) refused() bool { return o.Refused != nil }

// Run runs a scenario with a change, nil for none. A server that refuses to start is an outcome, not
// an error.
func Run(sc *settings.Scenario, change *settings.Change, o Options) (*Outcome, error) {
	r, err := prepare(sc, change, o)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %s: %w", sc.File, sc.Line, sc.Name, err)
	}
	return r.happen()
}

// run is a prepared run.
type run struct {
	Options
	sc       *settings.Scenario
	command  *launch.Config
	settings *settings.Settings
	load     []settings.Stream
	faults   []settings.Fault
	restarts []time.Duration
	measure  settings.Measure
	refused  error
}

func prepare(sc *settings.Scenario, change *settings.Change, o Options) (*run, error) {
	command, err := launch.Parse(strings.Fields(sc.Server), nil, nil)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, sc: sc, load: sc.Load, faults: sc.Faults, restarts: sc.Restarts, measure: sc.Measure}
	if change != nil {
		for _, name := range change.Drop {
			command = command.Without(name)
		}
		for _, f := range change.Set {
			command = command.With(f.Name, f.Value)
		}
		if len(change.Load) > 0 {
			r.load = change.Load
		}
		if change.Mend {
			r.faults, r.restarts = nil, nil
		}
	}
	if o.For > 0 {
		r.measure.For = o.For
	}
	r.command = command
	r.settings, r.refused = Settings(command, sc, o.Seed)
	if r.refused != nil && change == nil {
		return nil, r.refused
	}
	return r, nil
}

func (r *run) happen() (*Outcome, error) {
	out := &Outcome{Command: r.command.Shell(), Refused: r.refused}
	if out.refused() {
		return out, nil
	}
	w := NewWorld()
	s := *r.settings
	s.Faults = r.faults
	if out.Refused = w.Launch(&s); out.refused() {
		return out, nil
	}
	healthy, _ := w.Healthy()
	began := healthy + r.measure.After
	end := began + r.measure.For
	for i := range r.load {
		if err := w.Offer(&r.load[i], Offering{
			Origin: healthy, Seed: r.Seed*31 + uint64(i), From: began, To: end,
		}); err != nil {
			return nil, err
		}
	}
	for _, at := range r.restarts {
		again := s
		again.Faults = nil
		w.At(healthy+at, func() { out.Refused = w.Restart(&again) })
	}
	w.Until(began)
	h := w.Header(r.command)
	h.Objectives = r.Objectives
	o, err := w.observe(h, r.measure.For, r.Every)
	if err != nil {
		return nil, err
	}
	o.pages = r.Pages
	w.Until(end)
	out.Diagnosis = o.diagnose()
	out.Metrics = w.metrics(began, end)
	for _, q := range out.Diagnosis.Measured {
		if q.Value.OK {
			out.Metrics["page."+q.Name] = q.Value.V
		}
	}
	out.Virtual = w.Now() - healthy
	return out, nil
}
