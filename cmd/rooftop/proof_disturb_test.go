//go:build e2e && linux

package main_test

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	disturbBlocks = 60                     // of six windows each: two pairs with rooftop, one without; as a rule
	disturbGuard  = 100 * time.Millisecond // at the beginning of a window, in which rooftop wakes or falls asleep
	disturbWindow = 900 * time.Millisecond
	disturbMost   = 0.02 // of throughput, at the upper end of the interval
)

// disturbed reports in which windows of a block rooftop is running.
var disturbed = [6]bool{true, false, false, true, false, false}

// pairs are the windows of a block that are compared: rooftop is running in the first one, except
// in the last pair.
var pairs = [3][2]int{{0, 1}, {3, 2}, {4, 5}}

// TestProofProbeDisturbs measures what sampling every 50 ms costs the sampled server: one vLLM
// under a closed loop of eight clients, observed by one rooftop that is running (SIGCONT) or
// stopped (SIGSTOP) in alternating windows, with pairs of windows in which it is stopped as a
// control. Windows are short and adjacent, so that the host's drift cancels out. It takes seven
// minutes and needs the machine to itself. If the interval is too wide, set ROOFTOP_PROOF_BLOCKS to
// the number of blocks of 6 s; the width decreases with its root:
//
//	ROOFTOP_E2E_VLLM=… go test -tags e2e -run ProofProbeDisturbs -v -timeout 30m ./cmd/rooftop
func TestProofProbeDisturbs(t *testing.T) {
	blocks := disturbBlocks
	if text := os.Getenv("ROOFTOP_PROOF_BLOCKS"); text != "" {
		blocks = number(t, text)
	}
	if blocks < 10 {
		t.Fatalf("%d blocks, want ten at least: twenty pairs", blocks)
	}
	s := startServer(t, programtest.Address(t), "--max-num-seqs", "8")
	// Short prompts and long outputs of different lengths: prompts arrive in bursts, and one more
	// of them slows a window down by as much as the effect to measure.
	load := loadgen.Load{Clients: 8, PromptTokens: loadgen.Fixed(16), OutputTokens: loadgen.Between(400, 1200), Style: loadgen.Characters, Stagger: 5 * time.Second, Seed: 1}
	warmUp(t, s.url(), "", load)
	g := offer(t, s.url(), "", load)
	s.settle(t, 10*time.Second)
	o := observing(t, s)

	windows := make([][len(disturbed)]window, blocks)
	for i := range windows {
		for j := range windows[i] {
			// Every second block runs backwards, so that drift cancels out.
			if i%2 == 1 {
				j = len(disturbed) - 1 - j
			}
			windows[i][j] = o.pass(t, disturbed[j])
		}
	}
	c := o.end(t)
	if r := g.end(t); r.Errors > 0 {
		t.Errorf("%d requests failed", r.Errors)
	}
	awake := 2 * time.Duration(blocks) * (disturbGuard + disturbWindow)
	if want := int(awake / (50 * time.Millisecond)); c.samples < want*8/10 {
		t.Errorf("%d samples of processes in %v, want some %d: what was measured is not sampling every 50 ms", c.samples, awake, want)
	}

	// The loss of the first window of a pair relative to the second.
	var attached, control []float64
	came := g.arrived(t)
	for i := range windows {
		for n, pair := range pairs {
			first, second := windows[i][pair[0]], windows[i][pair[1]]
			lost := loss(came.rate(t, first.begin, first.end), came.rate(t, second.begin, second.end))
			if n == len(pairs)-1 {
				control = append(control, lost)
			} else {
				attached = append(attached, lost)
			}
		}
	}
	low, mean, high := interval(attached, 0.95)
	t.Logf("loss with rooftop awake: %+.2f %%, 95 %% interval %+.2f to %+.2f (%d pairs)", 100*mean, 100*low, 100*high, len(attached))
	if !(high < disturbMost) {
		t.Errorf("the loss may be %.2f %%, want less than %.0f %%", 100*high, 100*disturbMost)
	}
	low, mean, high = interval(control, 0.95)
	t.Logf("loss with rooftop stopped: %+.2f %%, 95 %% interval %+.2f to %+.2f (%d pairs)", 100*mean, 100*low, 100*high, len(control))
	// One in a thousand fails by chance. More than that is an error of the method.
	if low, _, high := interval(control, 0.999); low > 0 || high < 0 {
		t.Errorf("windows without rooftop differ: %+.2f to %+.2f %% at 99.9 %%", 100*low, 100*high)
	}
}

// loss returns the difference relative to the mean of both, so that noise does not bias it.
func loss(with, without float64) float64 { return 2 * (without - with) / (without + with) }

// window is a time range in which the load's throughput is measured.
type window struct{ begin, end time.Time }

// observer is a rooftop process that observes a server.
type observer struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
}

// observing starts an observer and stops it after its first sample.
func observing(t *testing.T, s *vllm) *observer {
	t.Helper()
	path := built(t)
	// At the normal priority of a user's process.
	o := &observer{cmd: exec.CommandContext(testContext(t), path, "observe", "-u", s.url(), "--pid", strconv.Itoa(s.pid), "--period", "50ms", "--duration", "1h", "--json")}
	o.cmd.Stdout = &o.stdout
	must(t, o.cmd.Start())
	time.Sleep(2 * time.Second)
	o.signal(t, syscall.SIGSTOP)
	return o
}

func (o *observer) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := o.cmd.Process.Signal(s); err != nil {
		t.Fatalf("rooftop observe: %v", err)
	}
}

// pass waits for a window, with rooftop running or stopped.
func (o *observer) pass(t *testing.T, awake bool) window {
	t.Helper()
	began := time.Now()
	if awake {
		o.signal(t, syscall.SIGCONT)
		defer o.signal(t, syscall.SIGSTOP)
	}
	time.Sleep(time.Until(began.Add(disturbGuard)))
	w := window{begin: time.Now()}
	time.Sleep(time.Until(began.Add(disturbGuard + disturbWindow)))
	w.end = time.Now()
	return w
}

// end makes rooftop finish, and returns what it recorded.
func (o *observer) end(t *testing.T) captured {
	t.Helper()
	o.signal(t, syscall.SIGCONT)
	o.signal(t, syscall.SIGINT)
	_ = o.cmd.Wait() // 128+n
	t.Logf("rooftop used %.1f s of CPU", (o.cmd.ProcessState.UserTime() + o.cmd.ProcessState.SystemTime()).Seconds())
	return capturedBy(t, answer{stdout: o.stdout.Bytes()})
}

// interval returns Student's confidence interval of a mean.
func interval(values []float64, confidence float64) (low, mean, high float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := stat.StudentQuantile(1-(1-confidence)/2, n-1) * math.Sqrt(squares/(n-1)/n)
	return mean - half, mean, mean + half
}
