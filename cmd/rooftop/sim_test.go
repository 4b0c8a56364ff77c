package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// simulation is a `rooftop sim` that runs beside a test.
type simulation struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // once done is closed

	mu    sync.Mutex
	text  bytes.Buffer // of stderr
	wrote chan struct{}
}

// startSim starts a simulated server with a command line.
func startSim(args ...string) *simulation {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &simulation{cancel: cancel, done: make(chan struct{}), wrote: make(chan struct{}, 1)}
	go func() {
		defer close(s.done)
		words, _, err := withScenario(args)
		if err != nil {
			s.err = err
			return
		}
		s.err = sim(ctx, &cli.World{Stderr: s, Stdout: s, Env: func(string) (string, bool) { return "", false }}, words)
	}()
	return s
}

// Write implements io.Writer for the server's output.
func (s *simulation) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *simulation) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// ready waits until the server prints its address.
func (s *simulation) ready() (url string, err error) {
	for {
		if _, after, ok := strings.Cut(s.told(), "ready on "); ok {
			return strings.TrimSpace(after), nil
		}
		select {
		case <-s.wrote:
		case <-s.done:
			return "", fmt.Errorf("rooftop sim ended: %w", s.err)
		}
	}
}

// stop ends the server like SIGTERM and returns its exit code.
func (s *simulation) stop() cli.ExitCode {
	s.cancel(&cli.SignalError{Signal: syscall.SIGTERM})
	<-s.done
	var coded *cli.CodedError
	if errors.As(s.err, &coded) {
		return coded.Code
	}
	return cli.ExitDone
}

func TestSimEndsByASignal(t *testing.T) {
	s := startSim("Qwen/Qwen3-8B", "--max-model-len", "4096", "--port", "0", "--sim-startup-time", "1h")
	select {
	case <-s.wrote: // it was described, and starts
	case <-s.done:
		t.Fatal(s.err)
	}
	if code := s.stop(); code != 128+cli.ExitCode(syscall.SIGTERM) {
		t.Errorf("exit code %d of a server that was starting", code)
	}
	s = startSim("Qwen/Qwen3-8B", "--max-model-len", "4096", "--port", "0", "--sim-startup-time", "0")
	url, err := s.ready()
	if err != nil {
		t.Fatal(err)
	}
	if code := s.stop(); code != 128+cli.ExitCode(syscall.SIGTERM) || !strings.Contains(s.told(), "a second signal ends them") {
		t.Errorf("exit code %d, told:\n%s", code, s.told())
	}
	if w, err := http.Get(url + "/health"); err == nil {
		w.Body.Close()
		t.Error("a server that was stopped answers")
	}
}

// A scenario is replaced by its command line, which the process then shows.
func TestSimOfAScenario(t *testing.T) {
	list, err := settings.All()
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	for _, sc := range list {
		args, named, err := withScenario([]string{"--port", "0", "--sim_scenario=" + sc.Name, "--sim-seed", "3"})
		if err != nil || !named {
			t.Errorf("%s: %v", sc.Name, err)
			continue
		}
		s, err := settings.Parse(args, nil)
		if err != nil {
			t.Errorf("%s: %v: %v", sc.Name, args, err)
			continue
		}
		if s.Seed != 3 || s.Port != 0 || s.StartupTime != sc.Startup && sc.Startup >= 0 {
			t.Errorf("%s: %v is read as seed %d, port %d, start-up %v", sc.Name, args, s.Seed, s.Port, s.StartupTime)
		}
		faults += len(s.Faults)
		if diff := cmp.Diff(sc.Faults, s.Faults, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s", sc.Name, diff)
		}
		if slices.Contains(args, scenarioFlag) {
			t.Errorf("%s: %v still names the scenario", sc.Name, args)
		}
	}
	if faults == 0 {
		t.Error("no scenario has a fault: nothing was compared")
	}
}

func TestSimOnATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, stderr, code := call(t, nil, "sim", "Qwen/Qwen3-8B", "--port", port)
	want := fmt.Sprintf("rooftop: address already in use: %s; stop what listens there, or give another --port\n", l.Addr())
	if code != cli.ExitError || stderr != want {
		t.Errorf("exit code %d, %q; want %d, %q", code, stderr, cli.ExitError, want)
	}
}

// Facts of a simulated server are marked wherever its GPUs are, and nothing of this machine is used
// as its hardware.
func TestAttachToASimulatedServer(t *testing.T) {
	s := startSim("Qwen/Qwen3-8B", "--sim-gpu", "H100 SXM", "-tp", "2", "--max-num-seqs", "12", "--max-model-len", "4096", "--port", "0", "--sim-startup-time", "0")
	defer s.stop()
	url, err := s.ready()
	if err != nil {
		t.Fatal(err)
	}
	o := attach.Options{Env: func(string) (string, bool) { return "", false }}
	g := cli.GroupFlags(&cobra.Command{})
	o.RegisterServer(g)
	o.RegisterUnread(g)
	g.Done()
	o.URL = url
	a, err := attach.Open(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var recorded bytes.Buffer
	rec := session.NewRecorder(&recorded)
	d, err := a.Measure(t.Context(), time.Millisecond, rec, nil)
	if err == nil {
		err = rec.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	checkSimulated(t, "measured", &d)
	for _, m := range d.Missing {
		if strings.Contains(m.What, "GPU") || strings.Contains(m.What, "config.json") {
			t.Errorf("missing %+v", m)
		}
	}
	opened, err := session.OpenRecording(&recorded)
	if err != nil {
		t.Fatal(err)
	}
	again, err := session.Replay(opened, "test")
	if err != nil {
		t.Fatal(err)
	}
	checkSimulated(t, "replayed", &again)
}

func checkSimulated(t *testing.T, how string, d *engine.Diagnosis) {
	t.Helper()
	var page bytes.Buffer
	if err := document.WriteDiagnosis(&page, d); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Target struct {
			Simulated bool   `json:"simulated"`
			Version   string `json:"engine_version"`
		} `json:"target"`
		GPUs []struct {
			Name string `json:"name"`
		} `json:"gpus"`
	}
	if err := json.Unmarshal(page.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	f := &d.Facts
	switch {
	case !doc.Target.Simulated:
		t.Errorf("%s: the document does not say that the server is simulated", how)
	case f.GPUName.Value != "NVIDIA H100 80GB HBM3" || f.GPUCount.Value != 2:
		t.Errorf("%s: %d × %q, want two H100", how, f.GPUCount.Value, f.GPUName.Value)
	case f.ModelSpec.ID != "Qwen/Qwen3-8B" || f.WeightDType.Value != "bf16" || f.MaxModelLen.Value != 4096:
		t.Errorf("%s: model %q, weights %q, length %d", how, f.ModelSpec.ID, f.WeightDType.Value, f.MaxModelLen.Value)
	case f.Device.Value == "cpu":
		t.Errorf("%s: taken for a CPU", how)
	}
	page.Reset()
	if err := render.Text(&page, tuning.Diagnosis(d, tuning.Options{}), render.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SIMULATED server:", "HBM3 (simulated)"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s: the report lacks %q:\n%s", how, want, page.String())
		}
	}
}
