//go:build e2e && linux

package main_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/collect/proc"
)

// signalEngine sends a signal to the process that schedules, which is not the one that answers requests.
func (s *vllm) signalEngine(t *testing.T, signal syscall.Signal) {
	t.Helper()
	i := -1
	server := serving(t, s.at)
	if server != nil {
		i = slices.IndexFunc(server.Tree, func(p proc.Process) bool { return p.Role == proc.EngineCore })
	}
	if i < 0 {
		t.Fatalf("no engine is found behind %v: %+v", s.at, server)
	}
	if err := syscall.Kill(server.Tree[i].PID, signal); err != nil {
		t.Fatalf("%v to the engine: %v", signal, err)
	}
}

// fallsIll measures a server whose engine gets a signal after 6 s.
func (s *vllm) fallsIll(t *testing.T, signal syscall.Signal, long time.Duration, state string) {
	t.Helper()
	wait := begin(t, "diagnose", "--url", s.url()+"/metrics", "--duration", long.String(), "--json")
	time.Sleep(6 * time.Second)
	s.signalEngine(t, signal)
	a := wait()
	d := parse(t, a)
	if d.Condition == nil || d.Condition.State != state || d.Outcome != "unhealthy" || a.code != 6 {
		t.Errorf("%v to the engine: condition %+v, outcome %s, exit code %d, want %s and 6", signal, d.Condition, d.Outcome, a.code, state)
	}
	if d.Recommendation != nil {
		t.Errorf("a server whose engine got a %v is advised: %+v", signal, d.Recommendation)
	}
}

// TestE2EIllEngine watches an engine that hangs, recovers and dies, in a run that ends by itself two minutes later.
func TestE2EIllEngine(t *testing.T) {
	load := chat(11)
	s := launch(t, programtest.Address(t), []string{"VLLM_KEEP_ALIVE_ON_ENGINE_DEATH=1"}, "--max-num-seqs", "3")
	t.Cleanup(s.stop)
	warmUp(t, s.url(), "", load)
	g := offer(t, s.url(), "", load)
	s.settle(t, time.Second)
	watches := beginWith(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "tune", "--auto", "--json", "--no-report", "--url", s.url())
	s.fallsIll(t, syscall.SIGSTOP, 32*time.Second, "hung")
	s.signalEngine(t, syscall.SIGCONT)
	s.settle(t, 5*time.Second)
	s.fallsIll(t, syscall.SIGKILL, 14*time.Second, "dead")
	g.end(t)

	list := watches().ended(t, 6)
	var story []string
	advised := false
	for _, e := range list {
		switch e.Type {
		case "unhealthy":
			advised = false
			if e.Condition.State != "failing" { // a dead engine's requests may fail before its death is certain
				story = append(story, e.Type+" "+e.Condition.State)
			}
		case "recovered", "finished":
			if advised {
				t.Errorf("advice before %s at %.0f s, while the engine is ill", e.Type, e.T)
			}
			story = append(story, e.Type)
		case "recommendation":
			advised = true
		}
	}
	if want := []string{"unhealthy hung", "recovered", "unhealthy dead", "finished"}; !slices.Equal(story, want) {
		t.Errorf("the run tells %q, want %q", story, want)
	}
}
