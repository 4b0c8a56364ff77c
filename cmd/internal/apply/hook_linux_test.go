package apply

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// hooked is a hook whose program is a script, on a fake server that runs all the
// while and pretends to have been restarted where the script ends with 0, and the file that the script notes its calls in.
func hooked(t *testing.T, script string) (h *Managed, n *notebook, calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	starts := filepath.Join(dir, "starts")
	must(t, os.WriteFile(starts, nil, 0o600))
	server := usual(t)
	server.Env = append(server.Env, "FAKE_STARTS="+starts)
	at := begun(t, server).at
	program := filepath.Join(dir, "restart")
	if err := programtest.Write(program, []byte("#!/bin/sh\nCALLS='"+calls+"' STARTS='"+starts+"'\ncat >>\"$CALLS\"\ntrap '[ $? -ne 0 ] || printf x >>\"$STARTS\"' EXIT # restarted\n"+script)); err != nil {
		t.Fatal(err)
	}
	n = newNotebook(t)
	plan := testPlan(n)
	plan.Ready.URL = "http://" + at.String()
	c, err := launch.ParseCommand("vllm serve m --max-num-seqs 4 --no-enable-prefix-caching --api-key sk-abcdefghijklmnopqrstuvwxyz", nil, nil)
	must(t, err)
	plan.Launch = c
	if h, err = NewHook(program, plan); err != nil {
		t.Fatal(err)
	}
	return h, n, calls
}

// told are the changes that a program was called with.
func told(t *testing.T, path string) []manager.Change {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	if strings.Contains(string(text), "sk-abc") {
		t.Errorf("the program got a secret: %s", text)
	}
	var list []manager.Change
	for line := range strings.Lines(string(text)) {
		var c manager.Change
		must(t, json.Unmarshal([]byte(line), &c))
		if c.Schema != manager.ChangeSchema || !strings.HasPrefix(c.URL, "http://127.") {
			t.Errorf("change %+v", c)
		}
		list = append(list, c)
	}
	return list
}

func TestHookMakesChanges(t *testing.T) {
	t.Parallel()
	h, n, calls := hooked(t, `
[ "$ROOFTOP_REVERT" = 0 ] || exit 0
case "$ROOFTOP_LAUNCH" in *sk-abc*) echo "a secret"; exit 1;; esac
[ "$ROOFTOP_CHANGE_FLAG $ROOFTOP_CHANGE_FROM $ROOFTOP_CHANGE_TO" = "--max-num-seqs 4 8" ] && exit 0
[ -z "$ROOFTOP_CHANGE_FLAG" ] && [ -n "$ROOFTOP_CHANGES" ] && exit 0
echo "unexpected"; exit 1
`)
	next := loop.Apply{Iteration: 2, Changes: []engine.Change{{Flag: "--enable-prefix-caching", From: "off", To: "on"}}}
	for _, a := range []loop.Apply{slots(4, 8), next, {Iteration: 2, Revert: true, Changes: []engine.Change{{Flag: "--enable-prefix-caching", From: "on", To: "off"}}}} {
		mustApply(t, h, a)
	}
	list := told(t, calls)
	if len(list) != 3 {
		t.Fatalf("%d calls, want 3", len(list))
	}
	// The revert of the first change is folded into the second.
	want := []engine.Change{{Flag: "--enable-prefix-caching", From: "off", To: "on"}, {Flag: "--max-num-seqs", From: "8", To: "4"}}
	if diff := cmp.Diff(want, list[1].Changes); diff != "" {
		t.Errorf("second change (-want +got):\n%s", diff)
	}
	if !list[2].Revert || list[2].Command.After != "vllm serve m --max-num-seqs 4 --no-enable-prefix-caching --api-key [redacted]" {
		t.Errorf("revert %+v", list[2])
	}
	kinds := []string{"begin 0", "intent", "ready", "intent", "ready", "intent", "back 0"}
	if diff := cmp.Diff(kinds, n.kinds()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if s := journal.Reduce(n.records); !s.Settled() {
		t.Errorf("the journal leaves %v", s.Stage)
	}
}

// TestTheLogOfTheProgramIsBounded to its end, and to one run.
func TestTheLogOfTheProgramIsBounded(t *testing.T) {
	t.Parallel()
	h, n, _ := hooked(t, `head -c 40000000 /dev/zero | tr '\0' '\n'; sleep 0.5; echo "the last line"`)
	path := filepath.Join(n.dir, hookLog)
	must(t, os.WriteFile(path, []byte("of an earlier run\n"), 0o600))
	mustApply(t, h, slots(4, 8))
	log, err := os.ReadFile(path)
	must(t, err)
	if len(log) > maxHookLog || !strings.Contains(string(log), "rooftop dropped what came before") || !strings.HasSuffix(string(log), "the last line\n") {
		t.Errorf("%d bytes from %.80q", len(log), log)
	}
	h, _, _ = hooked(t, `echo "$ROOFTOP_REVERT"`)
	path = filepath.Join(h.plan.Journal.Dir(), hookLog)
	must(t, os.WriteFile(path, []byte("of an earlier run\n"), 0o600))
	mustApply(t, h, slots(4, 8))
	mustApply(t, h, back())
	if log, err := os.ReadFile(path); err != nil || string(log) != "0\n1\n" {
		t.Errorf("%q, %v, want what this run wrote", log, err)
	}
}

// TestTheProgramHasNoTerminal: in a group of rooftop's session, one that asks for a password is stopped by the kernel,
// and SIGTERM does not end it either.
func TestTheProgramHasNoTerminal(t *testing.T) {
	t.Parallel()
	h, _, _ := hooked(t, `read -r pid name state parent group session rest </proc/self/stat
[ "$session" = $$ ] || { echo "session $session, process $$"; exit 1; }`)
	if got := h.Apply(t.Context(), slots(4, 8)); got.Err != "" {
		t.Error(got.Err)
	}
}

// TestHookSaysWhatWasDone where the result of a change cannot be recorded.
func TestHookSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	for kind, a := range map[journal.Kind]loop.Apply{journal.Ready: slots(4, 8), journal.Reverted: back(), journal.Intent: slots(4, 8)} {
		h, n, _ := hooked(t, "exit 0")
		n.full = kind
		full := "the journal cannot be written in " + n.dir + ": no space left on device"
		want := map[journal.Kind]string{
			journal.Ready:    "the change was made, and then " + full + "; the server runs as before",
			journal.Reverted: "the change was reverted, and then " + full + "; the server runs as before",
			journal.Intent:   full + "; nothing was touched",
		}[kind]
		if got := h.Apply(t.Context(), a); got.Err != want || !got.Back {
			t.Errorf("%s: %+v, want %q", kind, got, want)
		}
	}
}

func TestHookFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script string
		calls  int // -1 if it may end before it notes the first
		back   bool
		want   string
	}{
		{"exit 1", `[ "$ROOFTOP_REVERT" = 1 ] || { echo "ValueError: no such deployment"; exit 1; }`, 2, true,
			"it ended with exit status 1: ValueError: no such deployment; the server runs as before"},
		{"nothing touched", `exit 64`, 1, true, "exit status 64; nothing was touched"},
		{"the revert fails too", `exit 3`, 2, false, "and it could not be reverted"},
		{"too long", `[ "$ROOFTOP_REVERT" = 1 ] || sleep 1000`, -1, true, "it did not end within 500ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, n, calls := hooked(t, c.script)
			if by := h.by.(*userProgram); c.name == "too long" {
				by.within = 500 * time.Millisecond // by which it may have noted its call; the revert may take longer
				h.plan.Progress = func(step string) {
					if strings.HasPrefix(step, "putting the server back") {
						by.within = hang
					}
				}
			}
			got := h.Apply(t.Context(), slots(4, 8))
			if got.Back != c.back || !strings.Contains(got.Err, c.want) {
				t.Errorf("answer %+v, want back %v and %q", got, c.back, c.want)
			}
			list := told(t, calls)
			if len(list) != c.calls && c.calls >= 0 {
				t.Fatalf("%d calls, want %d", len(list), c.calls)
			}
			if last := list[len(list)-1]; c.calls != 1 && (!last.Revert || last.Changes[0] != engine.Change{Flag: "--max-num-seqs", From: "8", To: "4"}) {
				t.Errorf("the revert was reported as %+v", last)
			}
			if s := journal.Reduce(n.records); s.Settled() != c.back {
				t.Errorf("the journal says settled %v, want %v: %v", s.Settled(), c.back, n.kinds())
			}
		})
	}
}

// A program may take longer than the server may be down: the former one may be up until
// the new one is.
func TestHookMayTakeItsTimeWhileTheServerAnswers(t *testing.T) {
	t.Parallel()
	h, _, calls := hooked(t, "sleep 1")
	a := slots(4, 8)
	a.Within = 500 * time.Millisecond
	if got := h.Apply(t.Context(), a); got.Err != "" || got.Late || len(told(t, calls)) != 1 {
		t.Errorf("answer %+v", got)
	}
}

// A hook that says yes while the server does not come up is taken back.
func TestHookWithoutAServer(t *testing.T) {
	t.Parallel()
	h, _, calls := hooked(t, "")
	h.plan.Ready.URL = "http://" + programtest.Address(t).String()
	h.plan.Ready.Within = 300 * time.Millisecond
	got := h.Apply(t.Context(), slots(4, 8))
	if got.Back || !strings.Contains(got.Err, "/health did not answer within 300ms") || len(told(t, calls)) != 2 {
		t.Errorf("answer %+v", got)
	}
}

func TestHookKept(t *testing.T) {
	t.Parallel()
	h, n, calls := hooked(t, "")
	mustApply(t, h, slots(4, 8))
	must(t, h.Kept())
	mustApply(t, h, slots(8, 16))
	list := told(t, calls)
	if got := list[1]; len(got.Changes) != 1 || got.Changes[0].From != "8" || !strings.Contains(got.Command.Before, "--max-num-seqs 8") {
		t.Errorf("the change after one that was kept: %+v", got)
	}
	if s := journal.Reduce(n.records); s.Stage != journal.StageTrial || len(s.Kept.Changes) != 1 {
		t.Errorf("state %+v", s)
	}
}

// Another start with what is on trial narrows the interval of a measurement.
func TestHookStartsOnceMore(t *testing.T) {
	t.Parallel()
	h, _, calls := hooked(t, "")
	for range 2 {
		mustApply(t, h, slots(4, 8))
	}
	for i, c := range told(t, calls) {
		if got := engine.JoinChanges(c.Changes); got != "--max-num-seqs 4 → 8" {
			t.Errorf("call %d is of %s", i+1, got)
		}
	}
}

// Where the launch cannot be read, a revert leads to what was kept, and not to what
// the user said when the run began: that of the run, and that of recover.
func TestHookGoesBackToWhatItKept(t *testing.T) {
	t.Parallel()
	h, n, calls := hooked(t, `[ "$ROOFTOP_CHANGE_TO" != 1024 ] || exit 1`)
	h.kept = nil
	budget := []engine.Change{{Flag: "--max-num-batched-tokens", To: "1024"}}
	for i, a := range []loop.Apply{
		slots(4, 8), slots(4, 16), // what is kept is 8 by then
		{Revert: true, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: "4"}}},
		{Iteration: 3, Changes: budget}, // fails
		slots(4, 8), slots(4, 32),
	} {
		got := h.Apply(t.Context(), a)
		if fails := i == 3 || i == 4; fails != (got.Err != "") {
			t.Fatalf("change %d: %+v", i, got)
		}
		if i == 0 {
			must(t, h.Kept())
		}
	}
	var lines []string
	for _, c := range told(t, calls) {
		lines = append(lines, engine.JoinChanges(c.Changes))
	}
	want := []string{
		"--max-num-seqs 4 → 8", "--max-num-seqs 8 → 16", "--max-num-seqs 16 → 8",
		"--max-num-batched-tokens unset → 1024", "--max-num-batched-tokens 1024 left out", "--max-num-seqs 8 → 32",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	left := Left{State: journal.Reduce(n.records)}
	if got := engine.JoinChanges(engine.InverseChanges(left.State.Unkept)); got != "--max-num-seqs 32 → 8" {
		t.Errorf("recover takes back %s", got)
	}
}

func TestNewHookRefuses(t *testing.T) {
	t.Parallel()
	if _, err := NewHook("/no/such/program", testPlan(newNotebook(t))); err == nil || !strings.Contains(err.Error(), "--apply-cmd") {
		t.Errorf("error %v", err)
	}
}

func TestCanaryOfAServer(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, _ := started(t, n, "--max-num-seqs", "4")
	for _, c := range []struct {
		slots int
		want  loop.AnswerCheck
	}{
		{8, loop.AnswerCheck{Prompts: len(comparedPrompts), Same: len(comparedPrompts)}},
		{slotsOther, loop.AnswerCheck{Prompts: len(comparedPrompts)}},
	} {
		a := slots(4, c.slots)
		a.Answers = true
		got := e.Apply(t.Context(), a)
		if got.Err != "" || got.AnswerCheck == nil {
			t.Fatalf("answer %+v", got)
		}
		if got.AnswerCheck.Prompts != c.want.Prompts || got.AnswerCheck.Same != c.want.Same || !got.AnswerCheck.Drift.OK {
			t.Errorf("%d slots: answers %+v, want %+v", c.slots, got.AnswerCheck, c.want)
		}
		if other := c.slots == slotsOther; (got.AnswerCheck.Drift.V == 0.25) != other {
			t.Errorf("%d slots: drift %v", c.slots, got.AnswerCheck.Drift)
		}
	}
}

// Recover waits for a program that is still at its change, and for nothing that only
// has its name on the command line.
func TestCallersAreThoseThatWereCalled(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "restart")
	must(t, programtest.Write(program, []byte("#!/bin/sh\nkill -STOP $$\n")))
	start := func(env []string, argv ...string) int {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), env...)
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd.Process.Pid
	}
	start(nil, "tail", "-f", program)
	called := start(variables(&manager.Change{Revert: true}), program)
	if got := callers(program); !slices.Equal(got, []int{called}) {
		t.Errorf("processes %v, want %d alone", got, called)
	}
}
