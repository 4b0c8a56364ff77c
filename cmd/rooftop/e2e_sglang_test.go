//go:build e2e && linux

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// startSGLang starts a real SGLang with the given flags and ends it at the end of the test.
func startSGLang(t *testing.T, args ...string) *vllm {
	t.Helper()
	dir := os.Getenv("ROOFTOP_E2E_SGLANG")
	if dir == "" {
		t.Fatal("ROOFTOP_E2E_SGLANG is not set: run .ci/install-sglang and give its last line")
	}
	serve, err := filepath.Abs(filepath.Join("..", "..", ".ci", "serve-sglang"))
	must(t, err)
	s := &vllm{at: programtest.Address(t), args: args, log: filepath.Join(t.TempDir(), "sglang.log"), gone: make(chan struct{})}
	cmd := exec.Command(serve, slices.Concat([]string{dir, strconv.Itoa(int(s.at.Port()))}, listensAt(s.at), args)...)
	cmd.Env = serverEnvironment()
	s.start(t, cmd)
	t.Logf("SGLang %s: healthy after %.0f s (pid %d)", strings.Join(args, " "), s.took.Seconds(), s.pid)
	t.Cleanup(s.stop)
	return s
}

// speaksSGLang checks that a report names SGLang's flags and nothing of vLLM's.
func speaksSGLang(t *testing.T, report []byte, flag string) {
	t.Helper()
	for _, foreign := range []string{"vLLM", "vllm", "--max-num-seqs", "max_num_seqs", "--num-gpu-blocks", "preempt"} {
		if bytes.Contains(report, []byte(foreign)) {
			t.Errorf("the report of an SGLang says %q:\n%s", foreign, report)
		}
	}
	if !bytes.Contains(report, []byte(flag)) {
		t.Errorf("the report does not name %s:\n%s", flag, report)
	}
}

// TestE2ESGLang diagnoses a real SGLang: idle, and with too few slots under load, which rooftop then raises in place.
func TestE2ESGLang(t *testing.T) {
	s := startSGLang(t, "--max-running-requests", "4", "--max-total-tokens", "16384")
	idle := rooftop(t, "diagnose", "--url", s.url()+"/metrics", "--duration", "10s", "--json")
	if idle.code != 4 {
		t.Errorf("idle: exit code %d, want 4: %s", idle.code, idle.stdout)
	}

	load := chat(24)
	load.Chat = false
	warmUp(t, s.url(), "", load)
	g := offer(t, s.url(), "", load)
	time.Sleep(s.slowed(8 * time.Second))
	record := filepath.Join(t.TempDir(), "sglang.rooftop")
	a := rooftop(t, "diagnose", "--url", s.url()+"/metrics", "--duration", "25s", "--json", "--record", record)
	d := parse(t, a)
	d.fact(t, "max_num_seqs", 4.0, "cmdline")
	d.fact(t, "kv_capacity_tokens", 16384.0, "metrics")
	d.fired(t, "concurrency-saturation")
	r := d.recommends(t, "concurrency-saturation", "flag", "--max-running-requests")
	if to := number(t, r.To); r.From != "4" || to < 20 || to > 40 {
		t.Errorf("recommended slots %s -> %s, want 4 -> about 24: those that run and those that wait", r.From, r.To)
	}
	if again := rooftop(t, "replay", record, "--json"); !bytes.Equal(again.stdout, a.stdout) {
		t.Errorf("the recording gives another document:\n%s", cmp.Diff(string(a.stdout), string(again.stdout)))
	}
	speaksSGLang(t, rooftop(t, "replay", record).stdout, "--max-running-requests")
	g.end(t)

	loadProcess(t, s, "--clients", "24", "--prompt-tokens", "100", "--output-tokens", "32")
	time.Sleep(s.slowed(15 * time.Second))
	if !tuneInPlace(t, s, "--max-running-requests 4 ", `--max-running-requests (2|3)\d `) {
		t.Error("more slots were not kept")
	}
}
