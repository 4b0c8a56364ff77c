//go:build e2e && linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// llamaServer starts Debian's llama-server on a small model with one thread, and stops it at the end of the test.
func llamaServer(t *testing.T, args ...string) *vllm {
	t.Helper()
	program, ggml := os.Getenv("ROOFTOP_E2E_LLAMA_SERVER"), os.Getenv("ROOFTOP_E2E_GGML")
	if program == "" || ggml == "" {
		t.Fatal("ROOFTOP_E2E_LLAMA_SERVER and ROOFTOP_E2E_GGML are not set: run .ci/install-ggml and .ci/install-llama-server and give their last lines")
	}
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	s := &vllm{at: programtest.Address(t), log: filepath.Join(t.TempDir(), "llama-server.log"), gone: make(chan struct{})}
	cmd := exec.Command(program, slices.Concat([]string{"-m", filepath.Join(ggml, "models", "tiny.gguf")}, listensAt(s.at), []string{"--metrics", "--threads", "1"}, args)...)
	cmd.Env = serverEnvironment()
	s.start(t, cmd)
	t.Cleanup(s.stop)
	return s
}

// loadProcess offers load in a separate process until the test ends, including restarts of the server.
func loadProcess(t *testing.T, s *vllm, args ...string) {
	t.Helper()
	path := built(t)
	cmd := exec.Command(path, append([]string{"load", "--url", s.url(), "--prompt-style", "characters", "--duration", "10m"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	time.Sleep(3 * time.Second) // every slot has a request
}

// diagnoseLlama measures for 20 s, and checks that no text is about vLLM.
func diagnoseLlama(t *testing.T, s *vllm, want int) diagnosis {
	t.Helper()
	a := rooftop(t, "diagnose", "--url", s.url(), "--duration", "20s", "--json")
	if a.code != want {
		t.Errorf("exit code %d, want %d: %s", a.code, want, a.stderr)
	}
	if strings.Contains(string(a.stdout), "vLLM") {
		t.Errorf("a sentence about vLLM in the diagnosis of llama.cpp: %s", around(string(a.stdout), "vLLM"))
	}
	d := parse(t, a)
	if d.Target.Engine != "llamacpp" || !strings.HasPrefix(d.Target.Version, "b") {
		t.Errorf("target %+v, want a build of llamacpp", d.Target)
	}
	return d
}

// around returns the text around the first occurrence of a word.
func around(text, word string) string {
	i := strings.Index(text, word)
	return text[max(0, i-200):min(len(text), i+200)]
}

// TestE2ELlamaServer diagnoses a real llama-server with too few slots, and one that is stopped meanwhile. Recordings
// of llama.cpp cover its other states.
func TestE2ELlamaServer(t *testing.T) {
	t.Run("slots too few", func(t *testing.T) {
		s := llamaServer(t, "--parallel", "2", "--ctx-size", "8192")
		loadProcess(t, s, "--clients", "8", "--prompt-tokens", "60", "--output-tokens", "500")
		d := diagnoseLlama(t, s, 3)
		r := d.recommends(t, "concurrency-saturation", "flag", "--parallel")
		if len(r.Also) != 1 || r.Also[0].Flag != "--ctx-size" || r.Also[0].From != "8192" {
			t.Errorf("also %+v, want --ctx-size raised with the slots that it is divided among", r.Also)
		}
		d.fact(t, "max_num_seqs", 2.0, "cmdline")
		d.between(t, "running_mean", 1.8, 2)
		d.between(t, "waiting_mean", 4, 6.5)
	})
	t.Run("stopped", func(t *testing.T) {
		s := llamaServer(t, "--parallel", "8", "--ctx-size", "16384")
		loadProcess(t, s, "--clients", "6", "--prompt-tokens", "60", "--output-tokens", "800")
		wait := begin(t, "diagnose", "--url", s.url(), "--duration", "30s", "--json")
		time.Sleep(6 * time.Second)
		must(t, syscall.Kill(s.pid, syscall.SIGSTOP))
		a := wait()
		_ = syscall.Kill(s.pid, syscall.SIGCONT)
		if a.code != 5 && a.code != 6 {
			t.Errorf("stopped in the middle: exit code %d, want 5 or 6: %s", a.code, a.stderr)
		}
	})
}

// tuneInPlace has rooftop change a server in place, at most once, and revert it. At the end the server must run with
// the flags before, or with those after if the first change made it faster; both are regular expressions.
func tuneInPlace(t *testing.T, s *vllm, before, after string) (kept bool) {
	t.Helper()
	a := beginWith(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "tune", "--auto", "--restart-in-place", "--json", "--url", s.url(),
		"--duration", "10s", "--countdown", "1s", "--max-restarts", "2")()
	events := eventsOf(t, a.stdout)
	defer func() {
		if t.Failed() {
			t.Logf("exit code %d\n%s%s", a.code, told(events), a.stderr)
		}
	}()
	verdicts := ofType(events, "verdict")
	if len(ofType(events, "applying")) == 0 || len(verdicts) == 0 {
		t.Fatalf("%d changes applied, %d verdicts: want one of each at least", len(ofType(events, "applying")), len(verdicts))
	}
	listed, err := exec.Command("pgrep", "-f", "--", strings.Join(listensAt(s.at), " ")+" ").Output()
	if err != nil {
		t.Fatalf("no server runs at the end: %v", err)
	}
	pids := strings.Fields(string(listed))
	t.Cleanup(func() {
		for _, pid := range pids {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGTERM)
			}
		}
	})
	line := readFile(t, "/proc/"+pids[0]+"/cmdline")
	runs := strings.ReplaceAll(string(line), "\x00", " ")
	want := before
	if kept = verdicts[0].Direction == "better"; kept {
		want = after
	}
	if !regexp.MustCompile(want).MatchString(runs) {
		t.Errorf("verdict %s, and the server runs with %s, want %s", verdicts[0].Direction, runs, want)
	}
	t.Logf("%s after %.0f s; the server runs with %s", verdicts[0].Text, verdicts[0].T, want)
	return kept
}
