package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jsondoc "github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// users returns a closed loop of n clients that request ten tokens each.
func users(n int) *scenarios.Stream {
	return &scenarios.Stream{
		Phases: []scenarios.Phase{{Users: n}},
		Prompt: scenarios.Lengths{Least: 5, Most: 5}, Output: scenarios.Lengths{Least: 10, Most: 10},
	}
}

func TestClientsSurviveARestart(t *testing.T) {
	for name, stream := range map[string]*scenarios.Stream{
		"closed loop": users(4),
		"open loop": {
			Phases: []scenarios.Phase{{Rate: 4}},
			Prompt: scenarios.Lengths{Least: 5, Most: 5}, Output: scenarios.Lengths{Least: 10, Most: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*fake
			w := fakeWorld(&servers)
			if err := w.Launch(&settings.Settings{}); err != nil {
				t.Fatal(err)
			}
			if err := w.Offer(stream, Offering{Origin: time.Second, Seed: 1, To: time.Minute}); err != nil {
				t.Fatal(err)
			}
			w.At(10*time.Second+50*time.Millisecond, func() {
				if err := w.Restart(&settings.Settings{}); err != nil {
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
			if tally.Failed == 0 {
				t.Error("the restart broke no request")
			}
			if tally.Finished > before+4 {
				t.Errorf("%d requests ended while no server listened", tally.Finished-before)
			}
			w.Until(30 * time.Second)
			if len(servers) != 2 || tally.Finished < 2*before {
				t.Errorf("after the restart: %d servers, %d requests finished in all, %d of them before", len(servers), tally.Finished, before)
			}
			if tally.Retried == 0 && name == "open loop" {
				t.Error("nothing that failed was sent again")
			}
		})
	}
}

// A latency counts from the time a request was meant to be sent, so that a server
// that is away is in it.
func TestLatencyCountsFromTheIntendedTime(t *testing.T) {
	var servers []*fake
	w := fakeWorld(&servers)
	if err := w.Launch(&settings.Settings{}); err != nil {
		t.Fatal(err)
	}
	stream := &scenarios.Stream{
		Phases: []scenarios.Phase{{For: 2 * time.Second, Rate: 20}, {Rate: 0}},
		Prompt: scenarios.Lengths{Least: 5, Most: 5}, Output: scenarios.Lengths{Least: 1, Most: 1},
	}
	// The load begins a second before the server listens.
	if err := w.Offer(stream, Offering{Seed: 1, To: time.Minute}); err != nil {
		t.Fatal(err)
	}
	w.Until(20 * time.Second)
	m := w.metrics(0, time.Minute)
	if got := m["ttft_max_s"]; got < 1 {
		t.Errorf("ttft_max_s is %.2f although requests came a second before the server", got)
	}
	if got := m["ttft_p50_s"]; got > 1.5 {
		t.Errorf("ttft_p50_s is %.2f", got)
	}
}

func TestClientsLeave(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(s *scenarios.Stream)
		left   bool
	}{
		"deadline passed": {func(s *scenarios.Stream) { s.Deadline = 450 * time.Millisecond }, true},
		"deadline far":    {func(s *scenarios.Stream) { s.Deadline = time.Minute }, false},
		"cancelled":       {func(s *scenarios.Stream) { s.Cancel = 1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*fake
			w := fakeWorld(&servers)
			if err := w.Launch(&settings.Settings{}); err != nil {
				t.Fatal(err)
			}
			s := users(2)
			tt.change(s)
			if err := w.Offer(s, Offering{Origin: time.Second, Seed: 1, To: time.Minute}); err != nil {
				t.Fatal(err)
			}
			w.Until(20 * time.Second)
			tally := w.clients[0].tally
			if got := tally.Left > 0; got != tt.left {
				t.Errorf("%d clients left", tally.Left)
			}
			if tally.Left != servers[0].cancels {
				t.Errorf("%d clients left, the server was told of %d", tally.Left, servers[0].cancels)
			}
			if tally.Sent-tally.Left-tally.Finished > 2 {
				t.Errorf("%d sent, %d left, %d finished: the loop does not go on", tally.Sent, tally.Left, tally.Finished)
			}
		})
	}
}

func TestRefusedRequestsFail(t *testing.T) {
	var servers []*fake
	w := fakeWorld(&servers)
	if err := w.Launch(&settings.Settings{}); err != nil {
		t.Fatal(err)
	}
	servers[0].refuse = errRefusal
	if err := w.Offer(users(1), Offering{Origin: time.Second, Seed: 1, To: time.Minute}); err != nil {
		t.Fatal(err)
	}
	w.Until(30 * time.Second)
	tally := w.clients[0].tally
	if tally.Failed == 0 || tally.Finished != 0 || tally.Failed > 60 {
		t.Errorf("%d failed, %d finished: a client whose request is refused backs off", tally.Failed, tally.Finished)
	}
}

// TestDeterminism checks that two runs of a scenario give the same diagnosis, pages and events, byte for
// byte, and that another seed gives different ones.
func TestDeterminism(t *testing.T) {
	for _, name := range []string{"slot-capped/8b-a100", "restart/70b-h100"} {
		t.Run(name, func(t *testing.T) {
			sc := find(t, name)
			sc.Measure = scenarios.Measure{After: 4 * time.Second, For: 12 * time.Second}
			if len(sc.Restarts) > 0 {
				sc.Restarts = []time.Duration{8 * time.Second}
			}
			type bytesOf struct{ diagnosis, pages, events string }
			run := func(seed uint64) bytesOf {
				var pages, events, diagnosis bytes.Buffer
				out, err := Run(sc, nil, Options{Seed: seed, Log: &events, Pages: func(_ time.Duration, body []byte) { pages.Write(body) }})
				if err != nil {
					t.Fatal(err)
				}
				if err := jsondoc.WriteDiagnosis(&diagnosis, &out.Diagnosis); err != nil {
					t.Fatal(err)
				}
				return bytesOf{diagnosis.String(), pages.String(), events.String()}
			}
			first, again, other := run(7), run(7), run(8)
			if first != again {
				t.Error("the same seed gave other bytes")
			}
			if first.events == other.events || first.pages == other.pages {
				t.Error("another seed gave the same bytes")
			}
			for _, kind := range []string{`"start"`, `"healthy"`, `"send"`, `"first"`, `"end"`} {
				if !strings.Contains(first.events, `"kind":`+kind) {
					t.Errorf("no event of kind %s", kind)
				}
			}
			if strings.Count(first.pages, "vllm:num_requests_running{") < 10 {
				t.Error("hardly any page was read")
			}
		})
	}
}

// TestRestartWithOtherFlags closes the loop in one world: the diagnosed change is
// made on the running server, with the time that its start takes, and the same
// clients find it better.
func TestRestartWithOtherFlags(t *testing.T) {
	sc := find(t, "slot-capped/8b-a100")
	r, err := prepare(sc, nil, Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld(nil)
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
		o, err := w.observe(header(r.settings, r.command, w.Now()), 20*time.Second, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.Until(w.Now() + 20*time.Second)
		d := o.diagnose()
		if rec := d.Recommendation; rec != nil && rec.Launch != "" {
			change, untried := recommended(sc, &d)
			if change == nil {
				t.Fatalf("the recommended launch %q is no change: %s", rec.Launch, untried)
			}
			if r, err = prepare(sc, change, Options{Seed: 3}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]scenarios.Flag{{Name: "max-num-seqs", Value: rec.To}}, change.Set); diff != "" {
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

func find(t *testing.T, name string) *scenarios.Scenario {
	t.Helper()
	list, err := scenarios.Select(name)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %d scenarios, %v", name, len(list), err)
	}
	return &list[0]
}
