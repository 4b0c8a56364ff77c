package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jsondoc "github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// stream returns clients that request ten tokens each, in the phases given.
func stream(phases ...settings.Phase) *settings.Stream {
	return &settings.Stream{
		Phases: phases, Prompt: settings.Lengths{Least: 50, Most: 50}, Output: settings.Lengths{Least: 100, Most: 100},
	}
}

// offered is a world with a small server, which listens after a second, and a stream of clients from a time on.
func offered(t *testing.T, origin time.Duration, s *settings.Stream) (*World, *settings.Settings) {
	t.Helper()
	config, err := settings.Parse(strings.Fields("Qwen/Qwen3-8B --sim-gpu L40S --max-model-len 256 --sim-startup-time 1s"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld()
	if err := w.Launch(config); err != nil {
		t.Fatal(err)
	}
	if err := w.Offer(s, Offering{Origin: origin, Seed: 1, To: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return w, config
}

func TestClientsSurviveARestart(t *testing.T) {
	for name, phase := range map[string]settings.Phase{"closed loop": {Users: 4}, "open loop": {Rate: 4}} {
		t.Run(name, func(t *testing.T) {
			w, config := offered(t, time.Second, stream(phase))
			w.At(10*time.Second+50*time.Millisecond, func() {
				if err := w.Restart(config); err != nil {
					t.Error(err)
				}
			})
			w.Until(10 * time.Second)
			tally := w.clients[0].tally
			before := tally.Finished
			if before == 0 || tally.Failed != 0 {
				t.Fatalf("before the restart: %d finished, %d failed", before, tally.Failed)
			}
			w.Until(11 * time.Second)
			if tally.Failed == 0 || tally.Finished > before+4 {
				t.Errorf("the restart broke %d requests, and %d ended while no server listened", tally.Failed, tally.Finished-before)
			}
			w.Until(30 * time.Second)
			if tally.Finished < 2*before {
				t.Errorf("%d requests finished in all, %d of them before the restart", tally.Finished, before)
			}
			if tally.Retried == 0 && name == "open loop" {
				t.Error("nothing that failed was sent again")
			}
		})
	}
}

// A latency counts from the intended send time, so it includes the time during which the server is down: this load
// begins a second before the server listens.
func TestLatencyCountsFromTheIntendedTime(t *testing.T) {
	w, _ := offered(t, 0, stream(settings.Phase{For: 2 * time.Second, Rate: 20}, settings.Phase{Rate: 0}))
	w.Until(20 * time.Second)
	m := w.metrics(0, time.Minute)
	if m["ttft_max_s"] < 1 || m["ttft_p50_s"] > 1.5 {
		t.Errorf("ttft_max_s %.2f, ttft_p50_s %.2f", m["ttft_max_s"], m["ttft_p50_s"])
	}
}

func TestClientsLeave(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(s *settings.Stream)
		left   bool
	}{
		"deadline passed": {func(s *settings.Stream) { s.Deadline = 450 * time.Millisecond }, true},
		"deadline far":    {func(s *settings.Stream) { s.Deadline = time.Minute }, false},
		"cancelled":       {func(s *settings.Stream) { s.Cancel = 1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := stream(settings.Phase{Users: 2})
			tt.change(s)
			w, _ := offered(t, time.Second, s)
			w.Until(20 * time.Second)
			tally := w.clients[0].tally
			if got := tally.Left > 0; got != tt.left {
				t.Errorf("%d clients left", tally.Left)
			}
			if tally.Sent-tally.Left-tally.Finished > 2 {
				t.Errorf("%d sent, %d left, %d finished: the loop does not continue", tally.Sent, tally.Left, tally.Finished)
			}
		})
	}
}

func TestRefusedRequestsFail(t *testing.T) {
	s := stream(settings.Phase{Users: 1})
	s.Prompt = settings.Lengths{Least: 500, Most: 500} // longer than the model's length
	w, _ := offered(t, time.Second, s)
	w.Until(30 * time.Second)
	tally := w.clients[0].tally
	if tally.Failed == 0 || tally.Finished != 0 || tally.Failed > 60 {
		t.Errorf("%d failed, %d finished: a client whose request is refused backs off", tally.Failed, tally.Finished)
	}
}

// TestDeterminism checks that two runs of a scenario give the same diagnosis and pages, byte for byte, and that
// another seed gives different ones.
func TestDeterminism(t *testing.T) {
	for _, name := range []string{"slot-capped/8b-a100", "restart/70b-h100"} {
		t.Run(name, func(t *testing.T) {
			sc := scenarioNamed(t, name)
			sc.Measure = settings.Measure{After: 4 * time.Second, For: 12 * time.Second}
			if len(sc.Restarts) > 0 {
				sc.Restarts = []time.Duration{8 * time.Second}
			}
			run := func(seed uint64) (diagnosis, pages string) {
				var p, d bytes.Buffer
				out, err := Run(&sc, nil, Options{Seed: seed, Pages: func(_ time.Duration, body []byte) { p.Write(body) }})
				if err != nil {
					t.Fatal(err)
				}
				if err := jsondoc.WriteDiagnosis(&d, &out.Diagnosis); err != nil {
					t.Fatal(err)
				}
				return d.String(), p.String()
			}
			firstD, firstP := run(7)
			againD, againP := run(7)
			_, otherP := run(8)
			if firstD != againD || firstP != againP {
				t.Error("the same seed gave other bytes")
			}
			if firstP == otherP || strings.Count(firstP, "vllm:num_requests_running{") < 10 {
				t.Error("another seed gave the same pages, or hardly any page was read")
			}
		})
	}
}

// TestRestartWithOtherFlags closes the loop in one world: the diagnosed change is made on the running server, with
// the time that its start takes, and the same clients find it better.
func TestRestartWithOtherFlags(t *testing.T) {
	sc := scenarioNamed(t, "slot-capped/8b-a100")
	r, err := prepare(&sc, nil, Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld()
	if err := w.Launch(r.settings); err != nil {
		t.Fatal(err)
	}
	healthy, _ := w.Healthy()
	if err := w.Offer(&sc.Load[0], Offering{Origin: healthy, Seed: 3, To: time.Hour}); err != nil {
		t.Fatal(err)
	}
	measure := func(r *run) float64 {
		t.Helper()
		up, _ := w.Healthy()
		w.Until(up + 30*time.Second)
		o, err := w.observe(w.Header(r.command), 20*time.Second, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.Until(w.Now() + 20*time.Second)
		d := o.diagnose()
		if rec := d.Recommendation; rec != nil && rec.Launch != "" {
			change, untried := recommended(&sc, &d)
			if change == nil {
				t.Fatalf("the recommended launch %q is not a change: %s", rec.Launch, untried)
			}
			if r, err = prepare(&sc, change, Options{Seed: 3}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(settings.Flags{{Name: "max-num-seqs", Value: rec.To}}, change.Set); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
			if err := w.Restart(r.settings); err != nil {
				t.Fatal(err)
			}
			if w.Listening() {
				t.Error("the restarted server listens at once")
			}
		}
		return d.Quantity("generation_tokens_per_s").Value.V
	}
	before := measure(r)
	after := measure(r)
	if after < 1.5*before {
		t.Errorf("%.0f tokens per second before the change, %.0f after", before, after)
	}
}
