package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
		"gpus": s.TensorParallel * s.DataParallel, "argv": s.Argv, "notes": s.Notes, "seed": s.Seed,
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

// faultKinds are the faults that can be injected.
var faultKinds = []string{"stall", "slow", "die", "reset", "network"}

// fault answers POST /sim/fault with {"kind", "for", "factor", "rank",
// "delay"}: for and delay are durations such as "30s", of simulated time; rank
// is a data-parallel rank, all of them without one.
func (f *life) fault(w http.ResponseWriter, r *http.Request) {
	body, refused := readFields(w, r)
	if refused == nil {
		var fault settings.Fault
		if fault, refused = readFault(body); refused == nil {
			if err := f.do(r.Context(), func(now time.Duration) {
				f.m.Inject(now, fault)
				f.log.add(now, "fault", f.started, entry{Fault: fault.Kind})
			}); err != nil {
				return
			}
			writeJSON(w, http.StatusOK, []byte(`{"injected":"`+fault.Kind+`"}`))
			return
		}
	}
	refused.write(w)
}

func readFault(f fields) (settings.Fault, *refusal) {
	fault := settings.Fault{Rank: -1, Factor: 1}
	var refused *refusal
	keep := func(r *refusal) {
		if refused == nil {
			refused = r
		}
	}
	var r *refusal
	fault.Kind, r = f.text("kind")
	keep(r)
	if !slices.Contains(faultKinds, fault.Kind) {
		keep(badRequest("kind", fmt.Sprintf("kind is %s, not %q", strings.Join(faultKinds, ", "), fault.Kind)))
	}
	fault.Factor, r = f.number("factor", 1)
	keep(r)
	if fault.Kind == "slow" && !(fault.Factor > 0) {
		keep(badRequest("factor", fmt.Sprintf("factor multiplies the step time: give a number above 0, not %v", fault.Factor)))
	}
	fault.Rank, r = f.integer("rank", -1)
	keep(r)
	fault.For, r = f.duration("for")
	keep(r)
	fault.Delay, r = f.duration("delay")
	keep(r)
	for name := range f {
		if !slices.Contains([]string{"kind", "for", "factor", "rank", "delay"}, name) {
			keep(badRequest(name, fmt.Sprintf("a fault has no %q: give kind, for, factor, rank and delay", name)))
		}
	}
	return fault, refused
}

// duration returns a member such as "1m30s", 0 where absent.
func (f fields) duration(name string) (time.Duration, *refusal) {
	text, refused := f.text(name)
	if refused != nil || text == "" {
		return 0, refused
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, badRequest(name, fmt.Sprintf("%s is a duration such as \"30s\", not %q", name, text))
	}
	return d, nil
}

// maxScale bounds how fast simulated time may run: beyond it the loop's own time
// would show in what clients measure.
const maxScale = 1000

// scale answers POST /sim/scale with {"scale": simulated seconds per second}.
func (f *life) scale(w http.ResponseWriter, r *http.Request) {
	body, refused := readFields(w, r)
	if refused != nil {
		refused.write(w)
		return
	}
	v, refused := body.number("scale", 0)
	if refused == nil && !(v > 0 && v <= maxScale) {
		refused = badRequest("scale", fmt.Sprintf("scale is simulated seconds per second, above 0 and at most %d, not %v", maxScale, v))
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
