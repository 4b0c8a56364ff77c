//go:build e2e && linux

package main_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// The main task on a real vLLM, as CI runs it: rooftop finds that the slots are full, restarts the server with more,
// proves the gain and keeps it.
func TestE2EKept(t *testing.T) {
	program := built(t)
	at, dir := programtest.Address(t), installation(t)
	s := &vllm{at: at, args: []string{"--max-num-seqs", "4"}, log: filepath.Join(t.TempDir(), "vllm.log"), gone: make(chan struct{})}
	// Other work on this machine must not decide the verdict: rooftop gives none if the share of time in which the
	// server waits for a CPU core differs.
	cmd := exec.Command("nice", slices.Concat([]string{"-n", "-20", filepath.Join(dir, "venv", "bin", "python")}, s.command(dir))...)
	cmd.Env = serverEnvironment()
	s.start(t, cmd)
	t.Cleanup(s.stop)
	endServing(t, at) // what rooftop starts
	load := realTime(t.Context(), program, "load", "--url", s.url(), "--duration", "0", "--clients", "32", "--prompt-tokens", "100", "--output-tokens", "64")
	must(t, load.Start())
	t.Cleanup(func() { _ = load.Wait() })
	s.settle(t, 0)

	env := []string{"XDG_STATE_HOME=" + t.TempDir()}
	list := beginWith(t, env, "tune", "--auto", "--json", "--no-report", "--restart-in-place", "--max-restarts", "2", "--url", s.url())().ended(t, 0)
	attached, verdicts, kept := ofType(list, "attached"), ofType(list, "verdict"), ofType(list, "kept")
	if len(attached) == 0 || len(verdicts) != 1 || verdicts[0].Direction != "better" || len(kept) != 1 || kept[0].Flag != "--max-num-seqs" {
		t.Fatalf("attached %+v, verdicts %+v, kept %+v, want better with more --max-num-seqs", attached, verdicts, kept)
	}
	if last := list[len(list)-1]; last.Gain == nil || *last.Gain < 0.2 {
		t.Errorf("gain %v, want at least 20 %%: 32 clients wait for 4 slots", last.Gain)
	}
	if got := slotsOf(t, at); got != kept[0].To {
		t.Errorf("the server runs with %s slots, kept were %s", got, kept[0].To)
	}
	left := beginWith(t, env, "recover")()
	if left.code != 0 || !strings.Contains(string(left.stdout), "Nothing is left") {
		t.Errorf("recover: exit code %d: %s%s", left.code, left.stdout, left.stderr)
	}
	if journals, _ := filepath.Glob(filepath.Join(strings.TrimPrefix(env[0], "XDG_STATE_HOME="), "rooftop", "servers", "*", "journal.jsonl")); len(journals) != 1 {
		t.Errorf("journals %v, want one", journals)
	}
}
