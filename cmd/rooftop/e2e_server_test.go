//go:build e2e && linux

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 5 * time.Minute
	stopTimeout  = 15 * time.Second
	// cleanupTime is reserved before the test's deadline, so that the test stops its servers and a panic of the test
	// binary does not orphan them.
	cleanupTime = 45 * time.Second
)

// vllm is a real server, vLLM by default, in its own process group.
type vllm struct {
	at   netip.AddrPort
	args []string
	log  string // file with its output
	pid  int    // of the process that leads the group; it listens, unless a shell started it
	gone chan struct{}
	took time.Duration // until it was healthy

	stopped bool // its process group is gone, and the number may be another's
}

// installation returns the directory that .ci/install-vllm printed.
func installation(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ROOFTOP_E2E_VLLM")
	if dir == "" {
		t.Fatal("ROOFTOP_E2E_VLLM is not set: run .ci/install-vllm and give its last line")
	}
	return dir
}

// testContext ends before the test's deadline, early enough to clean up.
func testContext(t *testing.T) context.Context {
	t.Helper()
	deadline, ok := t.Deadline()
	if !ok {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline.Add(-cleanupTime))
	t.Cleanup(cancel)
	return ctx
}

// startServer starts vLLM with the given flags, waits until it is healthy and
// stops it at the end of the test.
func startServer(t *testing.T, at netip.AddrPort, args ...string) *vllm {
	t.Helper()
	s := launch(t, at, nil, args...)
	t.Cleanup(s.stop)
	return s
}

// launch starts vLLM and leaves stopping it to the caller. Variables of the
// form NAME=value are added to its environment.
func launch(t *testing.T, at netip.AddrPort, env []string, args ...string) *vllm {
	t.Helper()
	dir := installation(t)
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	s := &vllm{at: at, args: args, log: filepath.Join(t.TempDir(), "vllm.log"), gone: make(chan struct{})}
	cmd := exec.Command(filepath.Join(dir, "venv", "bin", "python"), s.command(dir)...)
	cmd.Env = append(serverEnvironment(), env...)
	s.start(t, cmd)
	t.Logf("vLLM %s: healthy after %.0f s (pid %d)", strings.Join(args, " "), s.took.Seconds(), s.pid)
	return s
}

// command returns Python's arguments to serve a model.
func (s *vllm) command(dir string) []string {
	return slices.Concat([]string{
		"-m", "vllm.entrypoints.openai.api_server",
		"--model", filepath.Join(dir, "..", "model"), "--load-format", "dummy", "--enforce-eager",
	}, listensAt(s.at), quickType(), s.args)
}

// listensAt returns the flags of a server that listens at an address.
func listensAt(at netip.AddrPort) []string {
	return []string{"--host", at.Addr().String(), "--port", strconv.Itoa(int(at.Port()))}
}

// quickType returns the flag for the type in which this CPU computes quickly. Without AVX-512 it
// emulates the model's own bf16: a prompt of 1,300 tokens took 8.0 s on an EPYC 7763, 1.9 s in float32.
var quickType = sync.OnceValue(func() []string {
	if cpu, err := os.ReadFile("/proc/cpuinfo"); err == nil && !bytes.Contains(cpu, []byte("avx512")) {
		return []string{"--dtype", "float32"}
	}
	return nil
})

// start runs a command in its own process group until it is healthy. Its output goes to the log.
func (s *vllm) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	output, err := os.Create(s.log)
	must(t, err)
	cmd.Stdout, cmd.Stderr = output, output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGTERM
	started := make(chan error)
	go func() {
		// The death signal comes when the starting thread ends, so the thread must live as long as the server.
		runtime.LockOSThread()
		defer close(s.gone)
		defer output.Close()
		err := cmd.Start()
		if err == nil {
			s.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	begin := time.Now()
	if why := s.awaitHealth(testContext(t)); why != "" {
		s.stop()
		t.Fatalf("%s %s:\n%s", filepath.Base(cmd.Path), why, s.tail())
	}
	s.took = time.Since(begin)
}

// serverEnvironment is that of docs/vllm.md section 7.1, without variables of this process that rooftop or vLLM would
// take as settings.
func serverEnvironment() []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return slices.ContainsFunc([]string{"VLLM_", "ROOFTOP_", "HF_", "PYTHONDONTWRITEBYTECODE="}, func(p string) bool { return strings.HasPrefix(v, p) })
	})
	return append(own, "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "VLLM_CPU_KVCACHE_SPACE=1")
}

func (s *vllm) url() string { return url(s.at) }

// awaitHealth returns "" once the server answers, or the reason why it never will.
func (s *vllm) awaitHealth(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !s.answers(ctx, "/health") {
		select {
		case <-s.gone:
			return "ended while starting"
		case <-ctx.Done():
			return "is not healthy after " + startTimeout.String()
		case <-time.After(250 * time.Millisecond):
		}
	}
	return ""
}

func (s *vllm) answers(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+path, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// stop ends the server and its children, by force if it does not respond.
func (s *vllm) stop() {
	if s.stopped {
		return
	}
	_ = syscall.Kill(-s.pid, syscall.SIGTERM)
	select {
	case <-s.gone:
	case <-time.After(stopTimeout):
	}
	s.kill()
}

// kill ends the whole process group at once and waits until nothing is left.
func (s *vllm) kill() {
	s.stopped = true
	deadline := time.Now().Add(stopTimeout)
	for syscall.Kill(-s.pid, syscall.SIGKILL) == nil && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	<-s.gone
}

// tail returns the end of the server's output.
func (s *vllm) tail() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// reading is the page as read by independent code, to compare with rooftop's output.
type reading struct {
	at                                       time.Time
	running, waiting                         float64
	generated, finished, preempted, prompted float64
}

func (s *vllm) read(t *testing.T) reading {
	t.Helper()
	response, err := http.Get(s.url() + "/metrics")
	if err != nil {
		t.Fatalf("read the page: %v", err)
	}
	defer response.Body.Close()
	r := reading{at: time.Now()}
	into := map[string]*float64{
		"vllm:num_requests_running":    &r.running,
		"vllm:num_requests_waiting":    &r.waiting,
		"vllm:generation_tokens_total": &r.generated,
		"vllm:request_success_total":   &r.finished,
		"vllm:num_preemptions_total":   &r.preempted,
		"vllm:prompt_tokens_total":     &r.prompted,
	}
	for lines := bufio.NewScanner(io.LimitReader(response.Body, 8<<20)); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ := strings.Cut(series, "{")
		if sum := into[name]; sum != nil {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatalf("page: %s: %v", lines.Text(), err)
			}
			*sum += v
		}
	}
	return r
}

// since returns rates per second between two readings.
func (r reading) since(first reading) (rates reading) {
	seconds := r.at.Sub(first.at).Seconds()
	return reading{
		generated: (r.generated - first.generated) / seconds,
		finished:  (r.finished - first.finished) / seconds,
		preempted: (r.preempted - first.preempted) / seconds,
		prompted:  (r.prompted - first.prompted) / seconds,
	}
}

// observe reads the page for a while and returns its rates, with the means of
// running and waiting.
func (s *vllm) observe(t *testing.T, d time.Duration) reading {
	t.Helper()
	first := s.read(t)
	last, polls, running, waiting := first, 0.0, 0.0, 0.0
	for last.at.Sub(first.at) < s.slowed(d) {
		time.Sleep(250 * time.Millisecond)
		last = s.read(t)
		polls++
		running += last.running
		waiting += last.waiting
	}
	r := last.since(first)
	r.running, r.waiting = running/polls, waiting/polls
	t.Logf("page: %.0f tok/s, %.2f req/s, %.2f preemptions/s, running %.1f, waiting %.1f", r.generated, r.finished, r.preempted, r.running, r.waiting)
	return r
}

const (
	usualStart = 30 * time.Second // how long vLLM starts for on a machine of two cores
	mostSlowed = 3
)

// slowed scales a wait of d on a usual machine to this one: shared hosts were up to five times as slow, and the load
// of a case took effect later there. The time of the server's start is the measure.
func (s *vllm) slowed(d time.Duration) time.Duration {
	return time.Duration(float64(d) * min(max(1, float64(s.took)/float64(usualStart)), mostSlowed))
}

// settle waits until the load has filled the server as far as it will: the first requests may compile kernels for
// seconds without progress.
func (s *vllm) settle(t *testing.T, d time.Duration) {
	t.Helper()
	first := s.read(t)
	for begin := time.Now(); s.read(t).generated < first.generated+50; time.Sleep(250 * time.Millisecond) {
		if time.Since(begin) > 3*time.Minute {
			t.Fatalf("no tokens within three minutes of load:\n%s", s.tail())
		}
	}
	time.Sleep(s.slowed(d))
}

// realTime returns a command under the round-robin scheduler if the machine allows it. vLLM's engine spins while it
// waits and starves other processes of normal priority on two cores (docs/vllm.md section 7.2), so only this way does
// a load generator or scraper beside it behave like one on another machine.
func realTime(ctx context.Context, program string, args ...string) *exec.Cmd {
	chrt, err := exec.LookPath("chrt")
	if err == nil && exec.Command(chrt, "-r", "2", "true").Run() == nil {
		return exec.CommandContext(ctx, chrt, append([]string{"-r", "2", program}, args...)...)
	}
	return exec.CommandContext(ctx, program, args...)
}
