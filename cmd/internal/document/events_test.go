package document_test

import (
	"errors"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
)

// slotsRaised is a run before and after more slots.
func slotsRaised() (before, after *engine.Diagnosis) {
	before, after = states()["slots"](), states()["slots"]()
	scale := map[string]float64{"generation_tokens_per_s": 1.8, "ttft_p99_s": 0.2, "ttft_mean_s": 0.2, "itl_mean_s": 1.3, "running_mean": 2, "waiting_mean": 0}
	for i := range after.Measured {
		q := &after.Measured[i]
		if f, ok := scale[q.Name]; ok {
			q.Value = q.Value.Times(f)
		}
	}
	return before, after
}

func TestEventSchemaRejects(t *testing.T) {
	s := schema(t, "event.v1.schema.json")
	for _, line := range []string{
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"type":"settling","duration_s":1}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"guess"}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"verdict","iteration":1}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"paused","reason":""}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"settling","duration_s":1,"opened":{"noticed":"magic","changes":[],"text":"x"}}`,
		`{"schema":"rooftop.event/v1","seq":0,"t":0,"simulated":true,"type":"settling","duration_s":1}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"applying","iteration":1,"from":"","to":"1","command":""}`,
	} {
		if s.Validate(decoded(t, []byte(line))) == nil {
			t.Errorf("accepted %s", line)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
