//go:build e2e && linux

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/collect/proc"
)

// Tests of changes that rooftop makes by itself, on a simulated server in a process of its own.

// autoEvent is the part of rooftop.event/v1 that these tests read.
type autoEvent struct {
	Type      string   `json:"type"`
	T         float64  `json:"t"`
	Text      string   `json:"text"`
	Message   string   `json:"message"`
	Direction string   `json:"direction"`
	Flag      string   `json:"flag"`
	To        string   `json:"to"`
	Command   string   `json:"command"`
	ExitCode  int      `json:"exit_code"`
	Gain      *float64 `json:"gain"`
	Restarts  int      `json:"restarts"`
	Steps     []string `json:"steps"`
	StepsBack []string `json:"steps_back"`
	Condition illness  `json:"condition"`
	Target    struct {
		Simulated bool `json:"simulated"`
	} `json:"target"`
}

func eventsOf(t *testing.T, out []byte) []autoEvent {
	t.Helper()
	var list []autoEvent
	for line := range bytes.Lines(out) {
		var e autoEvent
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, e)
	}
	return list
}

func ofType(list []autoEvent, kind string) []autoEvent {
	return slices.DeleteFunc(slices.Clone(list), func(e autoEvent) bool { return e.Type != kind })
}

// told summarizes a run for the message of a failed test.
func told(list []autoEvent) string {
	var b strings.Builder
	for _, e := range list {
		if e.Type != "window" {
			fmt.Fprintf(&b, "%6.1f %-14s %s%s\n", e.T, e.Type, e.Text, e.Message)
		}
	}
	return b.String()
}

// simModel and simFlags describe a server with too few slots for its load.
const (
	simModel   = "meta-llama/Llama-3.1-8B-Instruct"
	tightSlots = "16"
)

func simFlags(at netip.AddrPort, slots string) []string {
	return []string{
		simModel, "--sim-gpu", "NVIDIA A100-SXM4-80GB", "--max-model-len", "8192", "--sim-startup-time", "2s",
		"--host", at.Addr().String(), "--port", strconv.Itoa(int(at.Port())), "--max-num-seqs", slots,
	}
}

// offerSim offers more requests than the few slots hold, from the start of the server at an address to the end of the
// test, including restarts of the server.
func offerSim(t *testing.T, at netip.AddrPort) {
	t.Helper()
	path := built(t)
	cmd := exec.CommandContext(t.Context(), path, "load", "--url", url(at), "--model", simModel, "--clients", "64",
		"--prompt-tokens", "300", "--output-tokens", "100-400", "--duration", "0")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if healthy(t.Context(), at) {
			_ = cmd.Run()
		}
	}()
	t.Cleanup(func() { <-done })
}

// healthy waits for the server at an address; it returns false if ctx ends first.
func healthy(ctx context.Context, at netip.AddrPort) bool {
	for {
		if r, err := http.Get(url(at) + "/health"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func url(at netip.AddrPort) string { return "http://" + at.String() }

// serving returns the launch process of the server at an address; nil if there is none.
func serving(t *testing.T, at netip.AddrPort) *proc.Server {
	t.Helper()
	fs, err := proc.Open("/proc")
	must(t, err)
	list, err := fs.Servers()
	must(t, err)
	i := slices.IndexFunc(list, func(s *proc.Server) bool { return s.Addr == at })
	if i < 0 {
		return nil
	}
	return list[i]
}

// endServing ends the server at an address after the test, with its engine processes: a server that rooftop starts
// leads a process group.
func endServing(t *testing.T, at netip.AddrPort) {
	t.Cleanup(func() {
		if s := serving(t, at); s != nil {
			_ = syscall.Kill(-s.LaunchPID, syscall.SIGKILL)
			_ = syscall.Kill(s.LaunchPID, syscall.SIGKILL)
			_ = syscall.Kill(s.ListenerPID, syscall.SIGKILL)
		}
	})
}

// startsSim starts a simulated server that outlives rooftop, like one that someone
// else started.
func startsSim(t *testing.T, at netip.AddrPort, slots string) {
	t.Helper()
	path := builtByName(t)
	cmd := exec.Command(path, append([]string{"sim"}, simFlags(at, slots)...)...)
	must(t, cmd.Start())
	go func() { _ = cmd.Wait() }()
	endServing(t, at)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if !healthy(ctx, at) {
		t.Fatal("the simulated server does not come up")
	}
}

// slotsOf returns the slots that the server at an address was launched with.
func slotsOf(t *testing.T, at netip.AddrPort) string {
	t.Helper()
	s := serving(t, at)
	if s == nil || s.Launch == nil {
		return ""
	}
	v, _, _ := s.Launch.Value("max_num_seqs")
	return v
}

// ownState returns the variable for a separate state directory. Tests that use it mostly wait, so they run in
// parallel.
func ownState(t *testing.T) []string {
	t.Helper()
	t.Parallel()
	return []string{"XDG_STATE_HOME=" + t.TempDir()}
}

// whereItEnded checks the end of every automatic run: the kept configuration runs, and nothing is left in progress.
func (a answer) ended(t *testing.T, code int) []autoEvent {
	t.Helper()
	list := eventsOf(t, a.stdout)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\nstderr:\n%s", told(list), a.stderr)
		}
	})
	if a.code != code {
		t.Errorf("exit code %d, want %d", a.code, code)
	}
	if len(list) == 0 || list[len(list)-1].Type != "finished" {
		t.Fatalf("the run does not end with an event of its end:\n%s", told(list))
	}
	return list
}

// From too few slots to more, on a server started by rooftop: the change is kept, and the server keeps running.
func TestE2EAutoStartsAServer(t *testing.T) {
	env := ownState(t)
	at := programtest.Address(t)
	path := builtByName(t)
	endServing(t, at)
	offerSim(t, at)
	a := beginWith(t, env, append([]string{"tune", "--auto", "--json", "--no-report", "--", path, "sim"}, simFlags(at, tightSlots)...)...)()
	list := a.ended(t, 0)
	last := list[len(list)-1]
	if last.Gain == nil || *last.Gain < 0.5 || last.Restarts > 5 {
		t.Errorf("gain %v in %d restarts, want more than 50 %% in at most 5", last.Gain, last.Restarts)
	}
	kept := ofType(list, "kept")
	if len(kept) == 0 || kept[0].Flag != "--max-num-seqs" {
		t.Fatalf("kept %+v", kept)
	}
	if got := slotsOf(t, at); got != kept[len(kept)-1].To {
		t.Errorf("the server runs with %s slots, kept were %s", got, kept[len(kept)-1].To)
	}
	if pid := strconv.Itoa(serving(t, at).LaunchPID); !strings.Contains(string(a.stderr), "process "+pid) {
		t.Errorf("the process of the server that keeps running is not named: %s", a.stderr)
	}
	again := beginWith(t, env, append([]string{"tune", "--auto", "--json", "--no-report", "--", path, "sim"}, simFlags(at, tightSlots)...)...)()
	if again.code != 1 || !strings.Contains(string(again.stderr), "listens at") {
		t.Errorf("over a server that runs: exit code %d, %s", again.code, again.stderr)
	}
}

// Nothing is applied without --auto or a key, and a dry run reports what would be done.
func TestE2ENothingIsDoneWithoutAYes(t *testing.T) {
	env := ownState(t)
	_, state, _ := strings.Cut(env[0], "=")
	at := programtest.Address(t)
	startsSim(t, at, tightSlots)
	offerSim(t, at)
	before := serving(t, at).Identity()

	path := built(t)
	cmd := exec.CommandContext(testContext(t), path, "tune", "--json", "--no-report", "--restart-in-place", "--url", url(at))
	var out bytes.Buffer
	cmd.Stdout, cmd.Env = &out, append(os.Environ(), env...)
	must(t, cmd.Start())
	time.Sleep(60 * time.Second)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	list := eventsOf(t, out.Bytes())
	if len(ofType(list, "recommendation")) == 0 || len(ofType(list, "applying")) > 0 {
		t.Errorf("a run without --auto:\n%s", told(list))
	}
	if now := serving(t, at); now == nil || now.Identity() != before {
		t.Fatal("the server is not the one that it was")
	}

	must(t, os.RemoveAll(filepath.Join(state, "rooftop")))
	for _, how := range [][]string{nil, {"--restart-in-place"}} {
		args := append([]string{"tune", "--dry-run", "--json", "--no-report", "--url", url(at)}, how...)
		list := beginWith(t, env, args...)().ended(t, 3)
		advice := ofType(list, "recommendation")
		if n := len(advice); n == 0 || len(advice[n-1].Steps) < 2 || len(advice[n-1].StepsBack) < 2 {
			t.Errorf("%v: no steps", how)
		}
	}
	if now := serving(t, at); now == nil || now.Identity() != before {
		t.Error("a dry run restarted the server")
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("a dry run left %v (%v)", left, err)
	}
}

// Changes that fail are reverted, with the reason, within the stated time.
func TestE2EChangesThatFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// script is what the server does with a changed number of slots; $@ are its arguments, ROOFTOP the program.
		script string
		says   string
	}{
		{"it does not start", "echo 'ValueError: max_num_seqs is more than this build can take' >&2; exit 1", "more than this build can take"},
		{"it hangs at its start", "exec sleep 1000", "/health did not answer within 15s"},
		{"it hangs under load", `exec "$ROOFTOP" sim "$@" --sim-fault stall@15s`, "the engine is hung: no tokens generated for"},
		{"it crashes under load", `exec timeout -s KILL 60 "$ROOFTOP" sim "$@"`, "after the change was kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := ownState(t)
			at := programtest.Address(t)
			path := builtByName(t)
			env = append(env, "PROGRAM="+path)
			vllm := filepath.Join(t.TempDir(), "vllm")
			text := "#!/bin/sh\nROOFTOP=$PROGRAM\nshift\ncase \"$*\" in\n*'--max-num-seqs " + tightSlots + "'*) exec \"$ROOFTOP\" sim \"$@\" ;;\nesac\n" + c.script + "\n"
			must(t, programtest.Write(vllm, []byte(text)))
			endServing(t, at)
			offerSim(t, at)
			a := beginWith(t, env, append([]string{
				"tune", "--auto", "--json", "--no-report", "--start-timeout", "15s", "--longest", "30s", "--max-restarts", "2", "--", vllm, "serve",
			}, simFlags(at, tightSlots)...)...)()
			list := eventsOf(t, a.stdout)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("exit code %d\n%s\nstderr:\n%s", a.code, told(list), a.stderr)
				}
			})
			if a.code != 3 {
				t.Errorf("exit code %d, want 3: what was recommended is still open", a.code)
			}
			if got := slotsOf(t, at); got != tightSlots {
				t.Errorf("the server runs with %q slots, want %s as before", got, tightSlots)
			}
			if !strings.Contains(told(list), c.says) {
				t.Errorf("why is not said: no %q", c.says)
			}
			// A change that crashes late was already kept: it no longer is.
			if last := list[len(list)-1]; !strings.Contains(last.Command, "--max-num-seqs "+tightSlots) {
				t.Errorf("a change that failed is kept: %s", last.Command)
			}
			if len(ofType(list, "applying")) == 0 {
				t.Fatal("nothing was tried")
			}
		})
	}
}

// restartScript restarts a simulated server with the flags of a file, as a service
// manager would.
const restartScript = `#!/bin/sh
if [ -f "$DIR/pid" ]; then
	pid=$(cat "$DIR/pid")
	kill "$pid" 2>/dev/null
	while [ -d "/proc/$pid" ] && ! grep -q '^State:.*Z' "/proc/$pid/status"; do sleep 0.1; done
fi
set --
while read -r flag; do set -- "$@" "$flag"; done <"$DIR/flags"
nohup "$PROGRAM" sim "$MODEL" --sim-gpu "NVIDIA A100-SXM4-80GB" "$@" >"$DIR/server.log" 2>&1 &
echo $! >"$DIR/pid"
`

// The script of a deployment, on a server that is restarted by a program.
func TestE2EDeployScript(t *testing.T) {
	env := append(os.Environ(), ownState(t)...)
	at := programtest.Address(t)
	path := builtByName(t)
	dir := t.TempDir()
	flags := "--max-model-len=8192\n--sim-startup-time=2s\n--host=" + at.Addr().String() + "\n--port=" + strconv.Itoa(int(at.Port())) + "\n--max-num-seqs=" + tightSlots + "\n"
	for name, text := range map[string]string{"flags": flags, "restart.sh": restartScript} {
		must(t, programtest.Write(filepath.Join(dir, name), []byte(text)))
	}
	for name, value := range map[string]string{
		"DIR": dir, "PROGRAM": path, "MODEL": simModel, "FLAGS": filepath.Join(dir, "flags"), "RESTART": filepath.Join(dir, "restart.sh"),
		"ROOFTOP": path, "URL": url(at), "EVENTS": filepath.Join(dir, "events.jsonl"),
	} {
		env = append(env, name+"="+value)
	}
	endServing(t, at)
	restart := exec.Command(filepath.Join(dir, "restart.sh"))
	restart.Env = env
	if out, err := restart.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !healthy(t.Context(), at) {
		t.Fatal("the simulated server does not come up")
	}
	offerSim(t, at)
	deploy := exec.CommandContext(testContext(t), "sh", filepath.Join("testdata", "deploy", "deploy.sh"), "--no-report")
	deploy.Env = env
	out, err := deploy.CombinedOutput()
	events, readErr := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if readErr != nil {
		t.Fatal(readErr)
	}
	list := eventsOf(t, events)
	if err != nil || !strings.Contains(string(out), "deploy: tuned") {
		t.Fatalf("%v: %s\n%s", err, out, told(list))
	}
	kept := ofType(list, "kept")
	if len(kept) == 0 || slotsOf(t, at) != kept[len(kept)-1].To {
		t.Errorf("the server runs with %s slots, kept %+v", slotsOf(t, at), kept)
	}
	text, err := os.ReadFile(filepath.Join(dir, "flags"))
	if err != nil || !strings.Contains(string(text), "--max-num-seqs="+slotsOf(t, at)+"\n") {
		t.Errorf("the file of flags (%v):\n%s", err, text)
	}
	t.Logf("%s%s", out, told(list))
}
