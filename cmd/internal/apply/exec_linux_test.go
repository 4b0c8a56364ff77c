package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// notebook is a journal in memory.
type notebook struct {
	dir      string
	records  []journal.Record
	launches map[string]*launcher.Launch
	// full is the kind that can no longer be written, "" none.
	full journal.Kind
}

func newNotebook(t *testing.T) *notebook {
	return &notebook{dir: t.TempDir(), launches: map[string]*launcher.Launch{}}
}

func (n *notebook) Write(r journal.Record) error {
	if r.Kind == n.full {
		return &serverdir.StateError{Dir: n.dir, Err: errors.New("no space left on device"), Underway: true}
	}
	n.records = append(n.records, r)
	return nil
}

func (n *notebook) Keep(l *launcher.Launch) (string, error) {
	name := fmt.Sprintf("launch-%d.json", len(n.launches))
	n.launches[name] = l
	return name, nil
}

func (n *notebook) KeepFound(f *launcher.File) (string, error) {
	found, err := f.Read()
	if err != nil {
		return "", err
	}
	path := filepath.Join(n.dir, "found")
	return path, os.WriteFile(path, found.Data, 0o600)
}

func (n *notebook) Dir() string { return n.dir }

// kinds are what was written down, in order, with the launch that each is about.
func (n *notebook) kinds() []string {
	var out []string
	for _, r := range n.records {
		out = append(out, strings.TrimSpace(string(r.Kind)+" "+strings.TrimSuffix(strings.TrimPrefix(r.Launch, "launch-"), ".json")))
	}
	return out
}

const testGrace = 500 * time.Millisecond

func testPlan(n *notebook) Plan {
	return Plan{Journal: n, Grace: testGrace, Ready: Readiness{Within: hang, Answer: hang}}
}

// impatient shortens the limits of a change, and not those of the revert, which has to succeed.
func impatient(p *Plan, within, answer time.Duration) {
	patient := p.Ready
	p.Ready.Within, p.Ready.Answer = within, answer
	p.Progress = func(step string) {
		if strings.HasPrefix(step, "putting the server back") {
			p.Ready = patient
		}
	}
}

// started is a fake server that rooftop started.
func started(t *testing.T, n *notebook, args ...string) (*Exec, netip.AddrPort) {
	t.Helper()
	return startedBy(t, n, program(t), args...)
}

// behaving is the program of a fake server that behaves in some ways.
func behaving(t *testing.T, how string) string {
	t.Helper()
	path := program(t)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(path), fakeFile), []byte(how), 0o600))
	return path
}

func startedBy(t *testing.T, n *notebook, program string, args ...string) (*Exec, netip.AddrPort) {
	t.Helper()
	at := programtest.Address(t)
	e, err := NewExec(command(program, at, args...), testPlan(n))
	must(t, err)
	must(t, e.Start(t.Context()))
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		_ = e.Close()
	})
	return e, at
}

func slots(from, to int) loop.Apply {
	return loop.Apply{Iteration: 1, Changes: []engine.Change{{Flag: "--max-num-seqs", From: strconv.Itoa(from), To: strconv.Itoa(to)}}}
}

func back() loop.Apply {
	return loop.Apply{Iteration: 1, Revert: true, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "4"}}}
}

// slotsOf is what a fake server was given.
func slotsOf(s fakeState) string {
	i := slices.Index(s.Args, "--max-num-seqs")
	if i < 0 {
		return ""
	}
	return s.Args[i+1]
}

func TestExecChangesAndGoesBack(t *testing.T) {
	t.Setenv("HF_TOKEN", "hf_secretsecretsecretsecret")
	n := newNotebook(t)
	e, at := started(t, n, "--max-num-seqs", "4")
	first := stateOf(t, at)
	mustApply(t, e, slots(4, 8))
	second := stateOf(t, at)
	if second.PID == first.PID || !gone(first.PID) || slotsOf(second) != "8" {
		t.Errorf("after the change: process %d (before %d, gone %v) with %s slots, want another with 8", second.PID, first.PID, gone(first.PID), slotsOf(second))
	}
	if diff := cmp.Diff(os.Environ(), unmarked(second.Env)); diff != "" {
		t.Errorf("environment (-rooftop's +server's):\n%s", diff)
	}
	if second.Group != second.PID || second.Std[0] != os.DevNull || second.Std[1] != e.Log() || second.Std[2] != e.Log() {
		t.Errorf("group %d of process %d, streams %v", second.Group, second.PID, second.Std)
	}
	mustApply(t, e, back())
	if third := stateOf(t, at); slotsOf(third) != "4" || !slices.Equal(third.Args, first.Args) {
		t.Errorf("after the revert: %q, want %q", third.Args, first.Args)
	}
	want := []string{"begin 0", "started 0", "ready 0", "intent 1", "stopped 0", "started 1", "ready 1", "intent 0", "stopped 1", "started 0", "back 0"}
	if diff := cmp.Diff(want, n.kinds()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(e.Log()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log %v, %v, want one that its owner alone reads", info.Mode(), err)
	}
	for _, r := range n.records {
		if strings.Contains(fmt.Sprint(r), "hf_secret") {
			t.Errorf("a record holds a secret: %v", r)
		}
	}
}

func TestExecPutsBackWhatDoesNotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		slots  int
		want   string
		limits Readiness // of the change
	}{
		{"out of memory", slotsOutOfMemory, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. token=[redacted] (it ended with exit status 1)", Readiness{Within: hang, Answer: hang}},
		{"refused flag", slotsRefused, "vllm serve: error: unrecognized arguments: --no-such-flag (it ended with exit status 2)", Readiness{Within: hang, Answer: hang}},
		{"without a word", slotsSilent, "it ended with exit status 3", Readiness{Within: hang, Answer: hang}},
		{"hangs", slotsHang, "/health did not answer within 300ms", Readiness{Within: 300 * time.Millisecond, Answer: hang}},
		{"hangs when asked", slotsHangAsked, "/health answers, but a short completion got no answer within 300ms", Readiness{Within: hang, Answer: 300 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNotebook(t)
			e, at := started(t, n, "--max-num-seqs", "4")
			impatient(&e.plan, c.limits.Within, c.limits.Answer)
			before := stateOf(t, at)
			got := e.Apply(t.Context(), slots(4, c.slots))
			if !got.Back || !strings.Contains(got.Err, c.want) || !strings.HasSuffix(got.Err, "; it runs as before") {
				t.Errorf("answer %+v, want back and %q", got, c.want)
			}
			if after := stateOf(t, at); !slices.Equal(after.Args, before.Args) || after.PID == before.PID {
				t.Errorf("afterwards %q as process %d, want %q again", after.Args, after.PID, before.Args)
			}
			want := []string{"begin 0", "started 0", "ready 0", "intent 1", "stopped 0", "started 1", "stopped 1", "started 0", "ready 0", "failed 0"}
			if diff := cmp.Diff(want, n.kinds()); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecDoesNothingThatIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		full journal.Kind
		// touched says that the server is another process afterwards.
		touched bool
		// before and after what is said of the journal
		before, after string
	}{
		{journal.Intent, false, "", "; nothing was touched"},
		{journal.Started, true, "the server was stopped for a change, and then ", "; the server runs as before"},
		{journal.Stopped, true, "the server was stopped for a change, and then ", "; the server runs as before"},
		{journal.Ready, true, "the server was stopped for a change, and then ", "; the server runs as before"},
	} {
		t.Run(string(c.full), func(t *testing.T) {
			t.Parallel()
			n := newNotebook(t)
			e, at := started(t, n, "--max-num-seqs", "4")
			before := stateOf(t, at)
			n.full = c.full
			got := e.Apply(t.Context(), slots(4, 8))
			n.full = ""
			after := stateOf(t, at)
			if want := c.before + "the journal cannot be written in " + n.dir + ": no space left on device" + c.after; got.Err != want || !got.Back || slotsOf(after) != "4" {
				t.Errorf("answer %+v with %s slots, want %q and the server as before", got, slotsOf(after), want)
			}
			if touched := after.PID != before.PID; touched != c.touched {
				t.Errorf("touched = %v, want %v", touched, c.touched)
			}
		})
	}
}

// TestARevertNeedsNoJournal: what it leaves behind otherwise is a trial.
func TestARevertNeedsNoJournal(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, at := started(t, n, "--max-num-seqs", "4")
	if got := e.Apply(t.Context(), slots(4, 8)); got.Err != "" {
		t.Fatal(got.Err)
	}
	n.full = journal.Intent
	got := e.Apply(t.Context(), back())
	if !got.Back || !strings.HasSuffix(got.Err, ": no space left on device; the server runs as before") || slotsOf(stateOf(t, at)) != "4" {
		t.Errorf("answer %+v with %s slots", got, slotsOf(stateOf(t, at)))
	}
}

// TestExecLeavesNoServerThatIsNotWrittenDown: the first start has no server to go back to.
func TestExecLeavesNoServerThatIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	n, at := newNotebook(t), programtest.Address(t)
	n.full = journal.Ready
	e, err := NewExec(command(program(t), at), testPlan(n))
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	if err := e.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "the server was stopped again: the journal cannot be written in ") || e.process != nil {
		t.Errorf("%v, with process %+v", err, e.process)
	}
}

func TestExecEndsStragglersAndTheUnwilling(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, at := startedBy(t, n, behaving(t, "ignore-term,straggler"))
	list := e.alive(e.process)
	if len(list) != 2 {
		t.Fatalf("processes %v, want the server and its child", list)
	}
	must(t, e.Stop())
	for _, one := range list {
		if !gone(one.PID) {
			t.Errorf("process %d is still there", one.PID)
		}
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = l.Close()
}

// A server that finishes its requests within the grace is not killed.
func TestExecLetsAServerFinish(t *testing.T) {
	t.Parallel()
	e, _ := startedBy(t, newNotebook(t), behaving(t, "finishes"))
	e.grace = hang
	must(t, e.Stop())
	if text, err := os.ReadFile(e.Log()); err != nil || !bytes.Contains(text, []byte("finished its requests")) {
		t.Errorf("it was ended before: %v\n%s", err, text)
	}
}

// A server that told its engine to end, and then waits for connections that nobody
// no longer answers, is not waited for as long as one that finishes its requests.
func TestAHollowServerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, _ := startedBy(t, n, behaving(t, "hollow"))
	if pids := e.engines(e.process); len(pids) != 1 {
		t.Fatalf("engines %v, want one", pids)
	}
	must(t, e.host.stop(e.process, netip.AddrPort{}, time.Hour))
}

func TestExecEndsOrphansOfADeadServer(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, at := startedBy(t, n, behaving(t, "straggler"), "--max-num-seqs", "4")
	list := e.alive(e.process)
	must(t, syscall.Kill(e.process.PID, syscall.SIGKILL))
	<-e.process.ended
	if got := e.Trouble(); !strings.Contains(got, "signal 9") {
		t.Errorf("trouble %q, want the signal", got)
	}
	if got := e.Apply(t.Context(), back()); got.Err != "" || !strings.Contains(got.Ended, "signal 9") {
		t.Fatalf("answer %+v, want why the server had ended", got)
	}
	for _, one := range list {
		if !gone(one.PID) {
			t.Errorf("process %d (%s) is still there", one.PID, one.Comm)
		}
	}
	if got := slotsOf(stateOf(t, at)); got != "4" {
		t.Errorf("%s slots, want 4", got)
	}
}

func TestNewExecRefuses(t *testing.T) {
	t.Parallel()
	noExec := filepath.Join(t.TempDir(), "vllm")
	must(t, os.WriteFile(noExec, nil, 0o644))
	for _, c := range []struct {
		name string
		argv []string
		want string
	}{
		{"another program", []string{"sleep", "1"}, "no vLLM server command"},
		{"missing", []string{"/no/such/vllm", "serve", "m"}, "/no/such/vllm does not exist"},
		{"not in PATH", []string{"nosuchpython", "-m", "vllm.entrypoints.openai.api_server"}, "nosuchpython is not in PATH"},
		{"not executable", []string{noExec, "serve", "m"}, "no permission to execute"},
		{"config missing", []string{program(t), "serve", "m", "--config", "/no/such.yaml"}, "read the server's config file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewExec(c.argv, testPlan(newNotebook(t))); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestExecRefusesATakenPort(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	_, at := started(t, n)
	e, err := NewExec(command(program(t), at), testPlan(n))
	must(t, err)
	if err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "is held by process") {
		t.Errorf("error %v, want who holds the port", err)
	}
}

func TestExecStartFails(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, err := NewExec(command(program(t), programtest.Address(t), "--max-num-seqs", strconv.Itoa(slotsRefused)), testPlan(n))
	must(t, err)
	err = e.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "unrecognized arguments: --no-such-flag") {
		t.Errorf("error %v, want the parser's", err)
	}
	want := []string{"begin 0", "started 0", "failed 0", "stopped 0", "back"}
	if diff := cmp.Diff(want, n.kinds()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if s := journal.Reduce(n.records); !s.Settled() {
		t.Errorf("the journal leaves %v to be put right, with nothing that ran before", s.Stage)
	}
}

// A change that is not up within the time that it was given is put back, however long
// a start may take otherwise.
func TestExecPutsBackWhatIsLate(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, at := started(t, n, "--max-num-seqs", "4")
	a := slots(4, slotsHang)
	a.Within = time.Second // for the stop too
	got := e.Apply(t.Context(), a)
	if !got.Late || !got.Back || !strings.Contains(got.Err, "it was not ready within 1s") || slotsOf(stateOf(t, at)) != "4" {
		t.Errorf("answer %+v, want the server back", got)
	}
}

func TestExecCalledOff(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, at := started(t, n, "--max-num-seqs", "4")
	ctx, cancel := context.WithCancel(t.Context())
	e.plan.Progress = func(step string) {
		if strings.HasPrefix(step, "waiting") {
			cancel()
		}
	}
	got := e.Apply(ctx, slots(4, slotsHang))
	if !got.Back || !strings.Contains(got.Err, "canceled") || slotsOf(stateOf(t, at)) != "4" {
		t.Errorf("answer %+v, want the server back after the run was called off", got)
	}
}

func TestExecKept(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, at := started(t, n, "--max-num-seqs", "4")
	mustApply(t, e, slots(4, 8))
	must(t, e.Kept())
	if got := e.Apply(t.Context(), slots(8, slotsRefused)); !got.Back {
		t.Fatalf("answer %+v", got)
	}
	if got := slotsOf(stateOf(t, at)); got != "8" {
		t.Errorf("put back to %s slots, want the kept 8", got)
	}
	if s := journal.Reduce(n.records); !s.Settled() || s.Kept.Launch != "launch-1.json" {
		t.Errorf("state %+v, want launch-1 kept", s)
	}
}

// What takes the port while the server is down is not fought over.
func TestExecLosesItsPort(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	e, at := started(t, n, "--max-num-seqs", "4")
	e.restores = time.Nanosecond // one attempt
	var thief net.Listener
	e.plan.Progress = func(step string) {
		if thief == nil && strings.HasPrefix(step, "starting") {
			var err error
			if thief, err = net.Listen("tcp", at.String()); err != nil {
				t.Error(err)
			}
		}
	}
	got := e.Apply(t.Context(), slots(4, 8))
	if thief != nil {
		defer thief.Close()
	}
	if want := fmt.Sprintf("port %d is held by process %d", at.Port(), os.Getpid()); got.Back || !strings.Contains(got.Err, want) {
		t.Errorf("answer %+v, want %q", got, want)
	}
	if s := journal.Reduce(n.records); s.Settled() || len(s.Processes) != 0 {
		t.Errorf("the journal says %v with processes %v, want a server that is to be put back", s.Stage, s.Processes)
	}
}

// TestAStrangerGetsNoKey takes the port during a start, once the owner of the port was looked for and not found.
func TestAStrangerGetsNoKey(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusUnauthorized} {
		asked, keys := 0, 0
		stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.Header.Get("Authorization") != "" {
				keys++
			}
			w.WriteHeader(status)
		}))
		defer stranger.Close()
		taken := &takenError{pids: []int{os.Getpid()}}
		err := Readiness{URL: stranger.URL, APIKey: "the-key-of-the-server"}.ready(t.Context(), nil, func() error {
			if asked > 0 {
				return taken
			}
			return nil
		})
		if !errors.Is(err, taken) || asked != 1 || keys > 0 {
			t.Errorf("%d: %v after %d requests, %d of them with the key", status, err, asked, keys)
		}
	}
}

// The server outlives rooftop's hold on it, and nothing of rooftop's is in it.
func TestExecCloses(t *testing.T) {
	// A script may have given rooftop a pipe, or the lock of flock(1).
	var inherited [2]int
	must(t, syscall.Pipe(inherited[:]))
	defer syscall.Close(inherited[0])
	defer syscall.Close(inherited[1])
	n := newNotebook(t)
	e, at := started(t, n)
	held, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	must(t, e.Close())
	pid := stateOf(t, at).PID
	var ours []string
	for _, path := range held {
		target, _ := os.Readlink(path)
		ours = append(ours, target)
	}
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	for _, one := range list {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, one.Name()))
		// The fake server's runtime has pipes too, whose both ends are in it.
		if strings.HasPrefix(target, "pipe:") && slices.Contains(ours, target) {
			t.Errorf("descriptor %s leads to %s of this process", one.Name(), target)
		}
	}
}
