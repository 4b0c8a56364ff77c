package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// state answers GET /sim/state: what is simulated and how it stands.
func (f *life) state(w http.ResponseWriter, r *http.Request) {
	var now time.Duration
	var isDead bool
	var totals page.Totals
	if err := f.do(r.Context(), func(at time.Duration) { now, isDead, totals = at, f.m.Dead(), f.m.Totals() }); err != nil {
		return
	}
	s := f.settings
	body, err := json.Marshal(map[string]any{
		"simulated": true, "version": f.version, "model": s.ModelName, "gpu": s.GPU.Name,
		"gpus": s.TensorParallel * s.DataParallel, "command": f.command, "notes": s.Notes, "seed": s.Seed,
		"scale": f.clock.rate(), "now_s": now.Seconds(), "up_s": (now - f.m.Healthy()).Seconds(),
		"started": f.started.UTC(), "dead": isDead, "draining": f.draining.Load(), "in_flight": f.inFlight.Load(),
		"totals": totals,
	})
	if err != nil {
		httpError(http.StatusInternalServerError, err.Error()).write(w)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// showLog answers GET /sim/log: one JSON object a line, the oldest first.
func (f *life) showLog(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = w.Write(f.log.appendTo(nil))
}

// fault answers POST /sim/fault with {"fault": "slow@0s+30sx1.3"}, spelled as
// --sim-fault is; its time counts from now.
func (f *life) fault(w http.ResponseWriter, r *http.Request) {
	body, refused := readFields(w, r)
	if refused != nil {
		refused.write(w)
		return
	}
	text, refused := body.text("fault")
	if refused != nil {
		refused.write(w)
		return
	}
	fault, err := settings.ParseFault(text)
	if err != nil {
		badRequest("fault", fmt.Sprintf("fault: %q: %v", text, err)).write(w)
		return
	}
	var cannot error
	if err := f.do(r.Context(), func(now time.Duration) {
		if cannot = f.m.Inject(now, fault); cannot == nil {
			f.log.add(now, "fault", f.started, entry{Fault: text})
		}
	}); err != nil {
		return
	}
	if cannot != nil {
		badRequest("fault", cannot.Error()).write(w)
		return
	}
	writeJSON(w, http.StatusOK, append(appendJSON([]byte(`{"injected":`), text), '}'))
}

// maxScale bounds how fast simulated time may run: beyond it the loop's own time
// would show in what clients measure.
const maxScale = 1000

// minScale keeps durations on the wall within what a clock can count.
const minScale = 0.001

// scale answers POST /sim/scale with {"scale": simulated seconds per second}.
func (f *life) scale(w http.ResponseWriter, r *http.Request) {
	body, refused := readFields(w, r)
	if refused != nil {
		refused.write(w)
		return
	}
	v, refused := body.number("scale", 0)
	if refused == nil && !(v >= minScale && v <= maxScale) {
		refused = badRequest("scale", fmt.Sprintf("scale is simulated seconds per second, from %v to %d, not %v", minScale, maxScale, v))
	}
	if refused != nil {
		refused.write(w)
		return
	}
	if err := f.do(r.Context(), func(now time.Duration) {
		f.clock.rescale(v)
		f.log.add(now, "scale", f.started, entry{Scale: v})
	}); err != nil {
		return
	}
	writeJSON(w, http.StatusOK, fmt.Appendf(nil, `{"scale":%v}`, v))
}
