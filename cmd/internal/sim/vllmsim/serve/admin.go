package serve

import (
	"fmt"
	"net/http"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// state answers GET /sim/state: the configuration and the state of the simulation.
func (f *incarnation) state(w http.ResponseWriter, r *http.Request) *refusal {
	var now time.Duration
	var isDead bool
	var totals page.Totals
	if !f.reached(r.Context(), func(at time.Duration) { now, isDead, totals = at, f.m.Dead(), f.m.Totals() }) {
		return nil
	}
	s := f.settings
	return writeJSON(w, map[string]any{
		"simulated": true, "version": f.version, "model": s.ModelName, "gpu": s.GPU.Name,
		"gpus": s.TensorParallel * s.DataParallel, "free_gpus": s.FreeGPUs(), "command": f.command, "notes": s.Notes, "seed": s.Seed,
		"scale": f.clock.rate(), "now_s": now.Seconds(), "up_s": (now - f.m.Healthy()).Seconds(),
		"started": f.started.UTC(), "dead": isDead, "draining": f.draining.Load(), "in_flight": f.inFlight.Load(),
		"totals": totals,
	})
}

// showLog answers GET /sim/log: one JSON object per line, oldest first.
func (f *incarnation) showLog(w http.ResponseWriter, _ *http.Request) *refusal {
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = w.Write(f.log.appendTo(nil))
	return nil
}

// fault answers POST /sim/fault with {"fault": "slow@0s+30sx1.3"}, in the syntax of --sim-fault; times count
// from now.
func (f *incarnation) fault(w http.ResponseWriter, r *http.Request) *refusal {
	var text string
	if refused := readMember(w, r, "fault", &text); refused != nil {
		return refused
	}
	fault, err := settings.ParseFault(text)
	if err != nil {
		return badRequest("fault", fmt.Sprintf("fault: %q: %v", text, err))
	}
	var cannot error
	if !f.reached(r.Context(), func(now time.Duration) {
		if cannot = f.m.Inject(now, fault); cannot == nil {
			f.log.add(now, "fault", f.started, entry{Fault: text})
		}
	}) {
		return nil
	}
	if cannot != nil {
		return badRequest("fault", cannot.Error())
	}
	return writeJSON(w, map[string]string{"injected": text})
}

// scale answers POST /sim/scale with {"scale": simulated seconds per second}.
func (f *incarnation) scale(w http.ResponseWriter, r *http.Request) *refusal {
	var v float64
	if refused := readMember(w, r, "scale", &v); refused != nil {
		return refused
	}
	if !(v >= settings.MinScale && v <= settings.MaxScale) {
		return badRequest("scale", fmt.Sprintf("scale is simulated seconds per second, from %v to %d, not %v", settings.MinScale, settings.MaxScale, v))
	}
	if !f.reached(r.Context(), func(now time.Duration) {
		f.clock.rescale(v)
		f.log.add(now, "scale", f.started, entry{Scale: v})
	}) {
		return nil
	}
	return writeJSON(w, map[string]float64{"scale": v})
}

// readMember reads one member of a request's JSON object.
func readMember(w http.ResponseWriter, r *http.Request, name string, into any) *refusal {
	body, refused := readFields(w, r)
	if refused != nil {
		return refused
	}
	return body.read(name, into)
}
