package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// seatsRaised is a run before and after more seats.
func seatsRaised() (before, after *engine.Diagnosis) {
	before, after = states()["seats"](), states()["seats"]()
	scale := map[string]float64{"generation_tokens_per_s": 1.8, "ttft_p99_s": 0.2, "ttft_mean_s": 0.2, "itl_mean_s": 1.3, "running_mean": 2, "waiting_mean": 0}
	for i := range after.Measured {
		q := &after.Measured[i]
		if f, ok := scale[q.Name]; ok {
			q.Value = q.Value.Times(f)
		}
	}
	return before, after
}

// tell runs every event once.
func tell(e *Events) {
	before, after := seatsRaised()
	change := Change{Flag: "--max-num-seqs", From: "128", To: "256", Command: "vllm serve m --max-num-seqs 256"}
	delta := engine.Compare(before, after)
	e.ServerUp("vllm serve m --max-num-seqs 128", 3*time.Second)
	e.Attached(before.Target)
	e.Settling(5 * time.Second)
	e.Window(&engine.Window{Duration: 2 * time.Second, Evaluable: true, Running: stat.Some(3)})
	e.Measured(0, before)
	e.Diagnosis(0, before)
	e.Recommendation(1, before.Recommendation)
	e.Applying(1, change)
	e.ServerDown("restart with the change")
	e.Measured(1, after)
	e.Verdict(1, &delta, before.Recommendation.Predicted)
	e.Kept(1, change)
	e.Reverted(1, change)
	e.Recommendation(2, nil)
	e.Error(errors.New("no answer"))
	e.Finished(Finish{Reason: "nothing left", Command: change.Command, Gain: delta.Throughput, Restarts: 1})
}

func TestEventsMatchSchema(t *testing.T) {
	var b bytes.Buffer
	now := time.Duration(0)
	e := NewEvents(&b, func() time.Duration { now += time.Second; return now })
	tell(e)
	if e.Err() != nil {
		t.Fatal(e.Err())
	}
	s := schema(t, "event.v1.schema.json")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 16 {
		t.Fatalf("%d lines, want one an event: 16", len(lines))
	}
	for i, l := range lines {
		if err := s.Validate(decoded(t, []byte(l))); err != nil {
			t.Errorf("%s\n%v", l, err)
		}
		if want := fmt.Sprintf(`"seq":%d,"t":%d,`, i+1, i+1); !strings.Contains(l, want) {
			t.Errorf("line %d lacks %s: %s", i+1, want, l)
		}
	}
}

func TestEventSchemaRejects(t *testing.T) {
	s := schema(t, "event.v1.schema.json")
	for _, line := range []string{
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"type":"settling","duration_s":1}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"guess"}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"verdict","iteration":1}`,
		`{"schema":"rooftop.event/v1","seq":0,"t":0,"simulated":true,"type":"settling","duration_s":1}`,
		`{"schema":"rooftop.event/v1","seq":1,"t":0,"simulated":true,"type":"applying","iteration":1,"flag":"max_num_seqs","from":"","to":"1","command":""}`,
	} {
		if s.Validate(decoded(t, []byte(line))) == nil {
			t.Errorf("accepted %s", line)
		}
	}
}

func TestEventsKeepTheFirstError(t *testing.T) {
	e := NewEvents(brokenPipe{}, func() time.Duration { return 0 })
	tell(e)
	if e.Err() == nil {
		t.Error("a write error was lost")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestDeltaPlain(t *testing.T) {
	before, after := seatsRaised()
	d := engine.Compare(before, after)
	worse := engine.Compare(after, before)
	for _, c := range []struct {
		name        string
		d           *engine.Delta
		predictions []engine.Prediction
		o           Options
	}{
		{"delta-80", &d, before.Recommendation.Predicted, Options{Width: 80}},
		{"delta-60-ascii", &worse, nil, Options{Width: 60, ASCII: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := WriteDelta(&b, c.d, c.predictions, c.o); err != nil {
				t.Fatal(err)
			}
			golden(t, c.name+".txt", b.Bytes())
			for _, l := range strings.Split(b.String(), "\n") {
				if n := len([]rune(l)); n > c.o.Width {
					t.Errorf("%d cells: %s", n, l)
				}
			}
		})
	}
}
