package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

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
