package vllmsim

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// state answers GET /sim/state with a description of the simulation.
func (f *incarnation) state(w http.ResponseWriter, _ *http.Request) *refusal {
	s := f.settings
	return writeJSON(w, map[string]any{
		"simulated": true, "version": f.version, "model": s.ModelName, "gpu": s.GPU.Name,
		"gpus": s.TensorParallel * s.DataParallel, "free_gpus": s.FreeGPUs(), "command": f.command, "notes": s.Notes,
		"seed": s.Seed, "scale": s.Scale, "started": f.started.UTC(),
	})
}

// fault answers POST /sim/fault with {"fault": "slow@0s+30sx1.3"}, in the syntax of --sim-fault; times count
// from now.
func (f *incarnation) fault(w http.ResponseWriter, r *http.Request) *refusal {
	body, refused := readBody(w, r)
	if refused != nil {
		return refused
	}
	var text string
	_ = json.Unmarshal(body.members["fault"], &text) // "" is no fault
	fault, err := settings.ParseFault(text)
	if err != nil {
		return badRequest("fault", "fault: %q: %v", text, err)
	}
	var cannot error
	if !f.reached(r.Context(), func(now time.Duration) { cannot = f.m.Inject(now, fault) }) {
		return nil
	}
	if cannot != nil {
		return badRequest("fault", "%v", cannot)
	}
	return writeJSON(w, map[string]string{"injected": text})
}
