package mcpserver_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// The loop of an agent: measure, change, measure, judge. A better change is kept, and stays when the agent leaves.
func TestAProvenChangeIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, crowded)
		r.mayChange()
		r.connect()
		if got, want := r.names(), append([]string{"apply"}, append(slices.Clone(reading[:7]), "revert", "verdict")...); !slices.Equal(got, want) {
			t.Errorf("tools %q, want %q", got, want)
		}
		wants(t, r.call("apply", arguments{"flag": "--max-num-seqs", "to": "64"}).text, "was not measured in this session")
		wants(t, r.call("revert", nil).text, "nothing to revert")
		r.must("measure", arguments{"server": serverURL})
		a := r.must("apply", arguments{"flag": "--max-num-seqs", "to": "64"})
		wants(t, a.text, "changed", "--max-num-seqs 16 → 64", "verdict of m1")
		wants(t, r.host.Command(), "--max-num-seqs 64")
		wants(t, r.call("apply", arguments{"flag": "--max-num-seqs", "to": "128"}).text, "in place and not kept")
		r.must("measure", arguments{"server": "http://localhost:8000/metrics"})
		v := r.must("verdict", arguments{"before": "m1", "after": "m2"})
		wants(t, v.text, "BETTER", "95 % interval", "The change is kept.", "--max-num-seqs 16 → 64", "predicted")
		if v.doc["kept"] != true || v.direction() != "better" {
			t.Errorf("direction %v, kept %v", v.direction(), v.doc["kept"])
		}
		if want := []loop.EventKind{loop.EventApplying, loop.EventVerdict, loop.EventKept}; !slices.Equal(r.journal, want) {
			t.Errorf("the journal has %v, want %v", r.journal, want)
		}
		wants(t, r.call("revert", nil).text, "nothing to revert")
		r.close()
		if r.reverts != 0 || !strings.Contains(r.host.Command(), "--max-num-seqs 64") {
			t.Errorf("%d reverts; the server runs %s", r.reverts, r.host.Command())
		}
	})
}

// An unproven change does not stay, whether the agent reverts it or leaves.
func TestAnUnprovenChangeIsReverted(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"by the agent": func(r *rig) {
			a := r.must("revert", nil)
			wants(r.t, a.text, "reverted", "--max-num-seqs 24 → 16")
			r.close()
		},
		"when the agent goes": func(r *rig) { r.close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, crowded)
				r.mayChange()
				r.connect()
				r.must("measure", arguments{"server": serverURL, "duration_s": 10})
				r.must("apply", arguments{"flag": "--max-num-seqs", "to": "24"})
				r.must("measure", arguments{"server": serverURL, "duration_s": 10})
				v := r.must("verdict", arguments{"before": "m1", "after": "m2"})
				wants(t, v.text, "not kept")
				if v.direction() == "better" || v.doc["kept"] != false {
					t.Fatalf("ten seconds of either side: %v, kept %v", v.direction(), v.doc["kept"])
				}
				end(r)
				if r.reverts != 1 || !strings.Contains(r.host.Command(), "--max-num-seqs 16") {
					t.Errorf("%d reverts; the server runs %s", r.reverts, r.host.Command())
				}
			})
		})
	}
}

// A server that does not start with a change runs as before.
func TestAChangeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, crowded)
		r.mayChange()
		r.connect()
		defer r.close()
		r.must("measure", arguments{"server": serverURL, "duration_s": 10})
		a := r.call("apply", arguments{"flag": "--gpu-memory-utilization", "to": "0.06"})
		wants(t, a.text, "was not made", "the server runs as before")
		if !a.failed || strings.Contains(r.host.Command(), "0.06") {
			t.Errorf("the server runs %s", r.host.Command())
		}
		wants(t, r.call("revert", nil).text, "nothing to revert")
	})
}

// Without the flag nothing can be changed, and with it only harmless settings.
func TestNothingElseCanBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, crowded)
		r.connect()
		r.must("measure", arguments{"server": serverURL, "duration_s": 10})
		before := r.host.Command()
		for _, name := range []string{"apply", "revert"} {
			if _, err := r.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments{"flag": "--max-num-seqs", "to": "64"}}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("%s without the flag: %v", name, err)
			}
		}
		r.close()
		if r.host.Command() != before {
			t.Errorf("the server runs %s", r.host.Command())
		}
		r = newRig(t, crowded)
		r.mayChange()
		r.connect()
		defer r.close()
		r.must("measure", arguments{"server": serverURL, "duration_s": 10})
		for _, c := range [][3]string{
			{"--worker-cls", "evil.Worker", "none of the settings"}, {"--model", "evil/model", "none of the settings"}, {"--otlp-traces-endpoint", "http://evil", "none of the settings"},
			{"--max-num-seqs", "64 --trust-remote-code", "takes a number"}, {"--max-num-seqs", "NaN", "takes a number"}, {"--max-num-seqs", "1e300", "takes a number"},
			{"--max-num-seqs", "-1", "takes a number"}, {"--max-num-seqs", "1.5", "takes a number"}, {"--gpu-memory-utilization", "Inf", "takes a number"},
			{"--enforce-eager", "$(reboot)", "takes on or off"}, {"--kv-cache-dtype", "fp8", "cannot be changed here"}, {"--max-num-seqs", "16", "is 16 already"},
		} {
			if a := r.call("apply", arguments{"flag": c[0], "to": c[1]}); !a.failed || !strings.Contains(a.text, c[2]) {
				t.Errorf("%s %s: %s", c[0], c[1], a.text)
			}
		}
		if r.host.Command() != before {
			t.Errorf("the server runs %s", r.host.Command())
		}
	})
}

// An agent cannot reach a verdict by asking until noise says yes: all measurements count, and each look gets a smaller
// share of the error rate.
func TestAVerdictTakesInAllMeasurements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, crowded)
		r.mayChange()
		r.connect()
		defer r.close()
		for range 3 {
			r.must("measure", arguments{"server": serverURL, "duration_s": 20})
		}
		same := r.must("verdict", arguments{"before": "m1", "after": "m3"})
		wants(t, same.text, "no setting of the launch", "Judged by m1 before and m3 after.")
		if same.direction() == "better" || same.direction() == "worse" {
			t.Errorf("one start of one configuration: %v", same.direction())
		}
		r.must("apply", arguments{"flag": "--max-num-seqs", "to": "64"})
		r.must("measure", arguments{"server": serverURL, "duration_s": 60})
		wants(t, r.must("verdict", arguments{"before": "m2", "after": "m4"}).text, "Judged by m1, m2, m3 before and m4 after.")
		wants(t, r.call("verdict", arguments{"before": "m2", "after": "m2"}).text, "the same measurement")
		wants(t, r.call("verdict", arguments{"before": "m2", "after": "m9"}).text, `no measurement is called "m9"; kept are m1, m2, m3, m4`)
		wants(t, r.must("compare", arguments{"before": "m1", "after": "m4"}).text, "BETTER", "95 % interval")
	})
}

// Polling stops at once if the agent cancels its call or disconnects.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, crowded)
		r.connect()
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() {
			_, err := r.agent.CallTool(ctx, &mcp.CallToolParams{Name: "measure", Arguments: arguments{"server": serverURL, "duration_s": 3600}})
			over <- err
		}()
		time.Sleep(10 * time.Second)
		wants(t, r.call("measure", arguments{"server": serverURL}).text, "being measured or changed by another call")
		cancel()
		if err := <-over; err == nil {
			t.Error("a canceled call succeeded")
		}
		synctest.Wait()
		polls := r.polls
		time.Sleep(10 * time.Second)
		if polls < 35 || r.polls != polls {
			t.Errorf("%d polls, then %d more", polls, r.polls-polls)
		}
		wants(t, r.call("verdict", arguments{"before": "m1", "after": "m2"}).text, "nothing has been measured")
		go func() {
			_, err := r.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "measure", Arguments: arguments{"server": serverURL, "duration_s": 3600}})
			over <- err
		}()
		time.Sleep(10 * time.Second)
		began := time.Now()
		_ = r.pipe.Close()
		if err := <-r.served; err != nil {
			t.Error(err)
		}
		<-over
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("rooftop ended after %v", took)
		}
	})
}
