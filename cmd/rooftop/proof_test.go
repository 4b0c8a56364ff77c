//go:build e2e && linux

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// This program compares `rooftop tune --auto` on a real server with an exhaustive grid. It records
// the changes of rooftop from a bad start, and repeatedly starts the best settings of both in turn.
// It takes hours and is not part of CI:
//
//	ROOFTOP_E2E_VLLM=… ROOFTOP_PROOF=DIR go test -tags e2e -run Proof -v -timeout 6h ./cmd/rooftop
//
// Results are stored in DIR, one JSON file each; existing ones are not measured again.
// ROOFTOP_PROOF_ONLY names workloads, separated by commas, and ROOFTOP_PROOF_STARTS is how often
// each result is started.

const (
	proofMeasure = 20 * time.Second // of one start; longer on a slow host (slowed)
	proofSettle  = 5 * time.Second
)

// proofDir returns the directory of the results.
func proofDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ROOFTOP_PROOF")
	if dir == "" {
		t.Fatal("ROOFTOP_PROOF names no directory for the results")
	}
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

// keptResult reads a result of an earlier run, or measures and stores it.
func keptResult[T any](t *testing.T, name string, measure func() T) T {
	t.Helper()
	path := filepath.Join(proofDir(t), name+".json")
	var v T
	if text, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return v
	}
	v = measure()
	text, err := json.MarshalIndent(v, "", "  ")
	must(t, err)
	must(t, os.WriteFile(path, text, 0o600))
	return v
}

// started is one start of one setting.
type started struct {
	Flags  []string
	Tokens float64 // output tokens per second
	Err    string  // why it did not start
}

// try starts a setting under a load and measures it.
func (w *workload) try(t *testing.T, flags []string) (s started) {
	s.Flags = flags
	ok := t.Run(strings.Join(append([]string{w.name}, flags...), " "), func(t *testing.T) {
		server := startServer(t, programtest.Address(t), flags...)
		warmUp(t, server.url(), "", w.load)
		g := offer(t, server.url(), "", w.load)
		server.settle(t, proofSettle)
		s.Tokens = server.observe(t, proofMeasure).generated
		g.end(t)
	})
	if !ok {
		s.Err = "did not start or could not be measured"
	}
	return s
}

// changes has the changes that rooftop made.
type changes struct {
	Flags    []string // of the server that it left running
	Code     int
	Restarts int
	Downtime float64 // seconds
	Took     float64 // seconds
	Events   []json.RawMessage
}

// tuned lets rooftop tune the server from the bad start.
func (w *workload) tuned(t *testing.T, more ...string) changes {
	t.Helper()
	at := programtest.Address(t)
	server := launch(t, at, nil, w.bad...)
	warmUp(t, server.url(), "", w.load)
	g := offer(t, server.url(), "", w.load)
	server.settle(t, proofSettle)
	// In place, because a server started by rooftop would inherit the real-time priority that
	// rooftop has here.
	args := append([]string{"tune", "--auto", "--json", "--no-report", "--restart-in-place", "--url", server.url()}, more...)
	path := built(t)
	cmd := realTime(testContext(t), path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(serverEnvironment(), "XDG_STATE_HOME="+t.TempDir())
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	p := changesOf(t, stdout.Bytes())
	p.Took, p.Code = took.Seconds(), cmd.ProcessState.ExitCode()
	pid, flags := listening(t, at)
	p.Flags = flags
	if pid > 0 {
		stopTree(t, pid)
	}
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	g.ended = true
	if err != nil && p.Code != 3 {
		t.Errorf("tune: exit %d: %v\n%s", p.Code, err, stderr.String())
	}
	return p
}

// changesOf parses the events of a run.
func changesOf(t *testing.T, stdout []byte) changes {
	t.Helper()
	var p changes
	lines := bufio.NewScanner(bytes.NewReader(stdout))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct {
			Type     string  `json:"type"`
			Restarts int     `json:"restarts"`
			Downtime float64 `json:"downtime_s"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("event %q: %v", lines.Text(), err)
		}
		switch e.Type {
		case "window", "diagnosis", "measured":
			continue
		case "finished":
			p.Restarts, p.Downtime = e.Restarts, e.Downtime
		}
		p.Events = append(p.Events, json.RawMessage(slices.Clone(lines.Bytes())))
	}
	return p
}

// listening returns the process that listens at an address, and the flags after that of the port.
func listening(t *testing.T, at netip.AddrPort) (pid int, flags []string) {
	t.Helper()
	fs, err := proc.Open("/proc")
	must(t, err)
	server, err := fs.Discover([]netip.Addr{at.Addr()}, nil, at.Port())
	if err != nil {
		t.Errorf("nothing listens at the end: %v", err)
		return 0, nil
	}
	argv := server.Launch.Argv()
	if i := slices.Index(argv, "--port"); i >= 0 {
		flags = slices.Clone(argv[i+2:])
	}
	return server.LaunchPID, flags
}

// stopTree ends a server that leads its process group.
func stopTree(t *testing.T, pid int) {
	t.Helper()
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	for range 100 {
		if syscall.Kill(-pid, 0) != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// gridComparison compares rooftop's result with the grid's best.
type gridComparison struct {
	Best, Result []started
	// Shortfall of the result, a ratio, with its 95 % interval (Welch's t on the
	// logarithms).
	Low, Mid, High float64
}

// proofStarts returns how often each end is started: ROOFTOP_PROOF_STARTS, or five times, unless
// starts differ too much for that.
func proofStarts(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ROOFTOP_PROOF_STARTS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		t.Fatalf("ROOFTOP_PROOF_STARTS is %q: give a number from 2 on", text)
	}
	return n
}

// compared starts both settings in turn: neighbouring starts differ least.
func (w *workload) compared(t *testing.T, best, result []string) gridComparison {
	t.Helper()
	var c gridComparison
	starts := proofStarts(t)
	for range starts {
		c.Best = append(c.Best, w.try(t, best))
		c.Result = append(c.Result, w.try(t, result))
	}
	logs := func(list []started) (mean, variance float64) {
		n := float64(len(list))
		for _, s := range list {
			mean += math.Log(s.Tokens) / n
		}
		for _, s := range list {
			d := math.Log(s.Tokens) - mean
			variance += d * d / (n - 1)
		}
		return mean, variance / n
	}
	b, vb := logs(c.Best)
	r, vr := logs(c.Result)
	se := math.Sqrt(vb + vr)
	n := float64(starts - 1)
	half := se * stat.StudentQuantile(0.975, (vb+vr)*(vb+vr)/(vb*vb/n+vr*vr/n))
	c.Low, c.Mid, c.High = 1-math.Exp(r-b+half), 1-math.Exp(r-b), 1-math.Exp(r-b-half)
	return c
}

func TestProof(t *testing.T) {
	proofDir(t)
	only := strings.FieldsFunc(os.Getenv("ROOFTOP_PROOF_ONLY"), func(r rune) bool { return r == ',' })
	for _, w := range workloads() {
		if len(only) > 0 && !slices.Contains(only, w.name) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			grid := keptResult(t, w.name+"-grid", func() (all []started) {
				for _, c := range append([]cell{w.bad}, w.cells()...) {
					all = append(all, w.try(t, c))
				}
				return all
			})
			best := slices.MaxFunc(grid, func(a, b started) int { return int(math.Copysign(1, a.Tokens-b.Tokens)) })
			for _, s := range grid {
				t.Logf("%-60s %6.0f tok/s %s", strings.Join(s.Flags, " "), s.Tokens, s.Err)
			}
			p := keptResult(t, w.name+"-path", func() changes { return w.tuned(t) })
			for _, e := range p.Events {
				t.Logf("%s", e)
			}
			t.Logf("rooftop: exit %d, %d restarts, down for %.0f s, took %.0f s: %s", p.Code, p.Restarts, p.Downtime, p.Took, strings.Join(p.Flags, " "))
			c := keptResult(t, w.name+"-compared", func() gridComparison { return w.compared(t, best.Flags, p.Flags) })
			t.Logf("best %v, result %v", speeds(c.Best), speeds(c.Result))
			t.Logf("shortfall %.1f %% (%.1f to %.1f %%)", 100*c.Mid, 100*c.Low, 100*c.High)
			if c.High > 0.08 {
				t.Errorf("up to %.1f %% below the best of the grid, want at most 8 %%", 100*c.High)
			}
			if p.Restarts > 5 {
				t.Errorf("%d restarts, want at most 5", p.Restarts)
			}
		})
	}
}

func speeds(list []started) (out []int) {
	for _, s := range list {
		out = append(out, int(s.Tokens+0.5))
	}
	return out
}
