package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// errand is the task of a tuner that is going to be killed, as JSON in a variable.
type errand struct {
	Root, Mode string
	Argv       []string // of the server
	At         netip.AddrPort
	Seed       uint64
	Repair     bool // put right instead of tuning
	Changes    int  // at most; 0 goes on until it is killed
}

const errandVariable = "ROOFTOP_TEST_ERRAND"

func (e *errand) identity() serverdir.Identity {
	return serverdir.Identity{Host: e.At.Addr().String(), Port: int(e.At.Port()), Model: "m"}
}

func (e *errand) ready() Readiness {
	return Readiness{URL: "http://" + e.At.String(), Within: hang, Answer: hang}
}

// TestTunerProcess is the process that tests kill: the test program, started again.
func TestTunerProcess(t *testing.T) {
	text := os.Getenv(errandVariable)
	if text == "" {
		return
	}
	os.Unsetenv(errandVariable)
	var e errand
	must(t, json.Unmarshal([]byte(text), &e))
	if e.Repair {
		must(t, e.repair(t.Context()))
		return
	}
	must(t, e.tune(t.Context()))
}

func (e *errand) repair(ctx context.Context) error {
	list, err := Survey(e.Root)
	if err != nil {
		return err
	}
	r := Repair{Version: "test", Grace: testGrace, Ready: e.ready()}
	for i := range list {
		if err := r.Do(ctx, &list[i]); err != nil {
			return err
		}
	}
	return serverdir.Tidy(e.Root)
}

// tune makes changes at random: better ones that are kept, others that are put back
// or replaced, and some that do not start.
func (e *errand) tune(ctx context.Context) error {
	s, err := serverdir.OpenStore(e.Root, e.identity(), "test")
	if err != nil {
		return err
	}
	defer s.Close()
	hands, err := e.hands(ctx, s)
	if err != nil {
		return err
	}
	fmt.Println("tuning")
	rng := rand.New(rand.NewPCG(e.Seed, 7))
	kept, slot := 4, 4
	for n := 1; e.Changes == 0 || n <= e.Changes; n++ {
		slot++
		next := slot
		if rng.IntN(5) == 0 {
			next = slotsSilent
		}
		a := loop.Apply{Iteration: n, Changes: []engine.Change{{Flag: "--max-num-seqs", From: strconv.Itoa(kept), To: strconv.Itoa(next)}}}
		got := hands.Apply(ctx, a)
		switch {
		case got.Err != "" && !got.Back:
			return fmt.Errorf("change %d: %s", n, got.Err)
		case got.Err != "":
		case rng.IntN(3) == 0:
			if err := hands.Kept(); err != nil {
				return err
			}
			kept = next
		case rng.IntN(2) == 0:
			a.Revert = true
			if got := hands.Apply(ctx, a); got.Err != "" {
				return fmt.Errorf("revert %d: %s", n, got.Err)
			}
		}
	}
	return nil
}

func (e *errand) hands(ctx context.Context, s *serverdir.Store) (Applier, error) {
	plan := Plan{Journal: s, Grace: testGrace, Ready: e.ready(), Server: "fake"}
	if e.Mode == "exec" {
		h, err := NewExec(e.Argv, plan)
		if err != nil {
			return nil, err
		}
		return h, h.Start(ctx)
	}
	procs, err := proc.Open("/proc")
	if err != nil {
		return nil, err
	}
	found, err := procs.Discover([]netip.Addr{e.At.Addr()}, nil, e.At.Port())
	if err != nil {
		return nil, err
	}
	return NewAttach(found, plan)
}

// send starts a process for an errand.
func (e *errand) send(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(e)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, "-test.run=^TestTunerProcess$", "-test.timeout=5m")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), errandVariable+"="+string(text), "VLLM_API_KEY=sk-test-secret", "LONG="+strings.Repeat("x", 3000))
	log, err := os.OpenFile(filepath.Join(dir, "errand.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	log.Close()
	return cmd
}

// site is a directory with a server's program, config file and journal.
type site struct {
	errand
	dir    string
	config string
	server *exec.Cmd // attach: the server as it was found
	fake   string    // attach: how the server behaves that is begun
}

const configBytes = "# slots are measured\nmax-num-seqs: 4   # of 2026\nmax-model-len: 512\n"

func newSite(t *testing.T, mode string, seed uint64) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	s.errand = errand{Root: filepath.Join(s.dir, "servers"), Mode: mode, Seed: seed, At: programtest.Address(t)}
	s.Argv = command(program(t), s.At)
	if seed%2 == 0 {
		s.Argv = append(s.Argv, "--max-num-seqs", "4")
	} else {
		s.config = filepath.Join(s.dir, "vllm.yaml")
		must(t, os.WriteFile(s.config, []byte(configBytes), 0o640))
		old := time.Date(2026, 1, 2, 3, 4, 5, 678000000, time.UTC)
		must(t, os.Chtimes(s.config, old, old))
		s.Argv = append(s.Argv, "--config", "vllm.yaml")
	}
	if mode == "attach" {
		s.begin(t)
	}
	t.Cleanup(func() { s.end(t) })
	return s
}

// begin starts the server that is found later.
func (s *site) begin(t *testing.T) {
	t.Helper()
	s.server = &exec.Cmd{Path: s.Argv[0], Args: s.Argv, Dir: s.dir, Env: []string{"HOME=/nowhere", "VLLM_API_KEY=sk-test-secret", "EMPTY="}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if s.fake != "" {
		s.server.Env = append(s.server.Env, "FAKE="+s.fake)
	}
	must(t, s.server.Start())
	go func() { _ = s.server.Wait() }()
	waitForPort(t, s.At)
}

// serving are the processes of the site's server, by their command line's program
// and port.
func (s *site) serving(t *testing.T) []int {
	t.Helper()
	var pids []int
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if !strings.HasPrefix(string(line), s.Argv[0]+"\x00") {
			continue
		}
		if pid, _ := strconv.Atoi(filepath.Base(dir)); !gone(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (s *site) end(t *testing.T) {
	for _, pid := range s.serving(t) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// serverDir is the directory of the site's journal; "" where none was made.
func (s *site) serverDir() string {
	id := s.identity()
	dir := filepath.Join(s.Root, id.Name())
	if _, err := os.Stat(filepath.Join(dir, "journal.jsonl")); err != nil {
		return ""
	}
	return dir
}

// truth is what is to run, as the journal's lines say to a reader that knows nothing
// of states: the launch of the last kept record, else of the first.
func (s *site) truth(t *testing.T) *launcher.Launch {
	t.Helper()
	dir := s.serverDir()
	if dir == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	must(t, err)
	name := ""
	for line := range strings.Lines(string(text)) {
		var r struct{ Kind, Launch string }
		if json.Unmarshal([]byte(line), &r) == nil && (r.Kind == "begin" || r.Kind == "kept") {
			name = r.Launch
		}
	}
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	l := &launcher.Launch{}
	must(t, json.Unmarshal(data, l))
	return l
}

// check makes sure that the server is as it was or as it was meant to be.
func (s *site) check(t *testing.T, want *launcher.Launch, where string) {
	t.Helper()
	if want != nil {
		state := stateOf(t, s.At)
		if d := cmp.Diff(want.Argv, state.Args); d != "" {
			t.Errorf("%s: command line (-want +got):\n%s", where, d)
		}
		if d := cmp.Diff(want.Env, unmarked(state.Env)); d != "" { // one that was kept has been on trial
			t.Errorf("%s: environment (-want +got):\n%s", where, d)
		}
		if state.Cwd != want.Cwd {
			t.Errorf("%s: working directory %s, want %s", where, state.Cwd, want.Cwd)
		}
		for _, f := range want.Files {
			have, err := launcher.ReadFile(f.Path)
			if err != nil || !f.Equal(&have) || state.Config != string(f.Data) {
				t.Errorf("%s: %s holds %q (mode %o, %v, %v), the server read %q, want %q (mode %o, %v)", where, f.Path, have.Data, have.Mode, have.Time, err, state.Config, f.Data, f.Mode, f.Time)
			}
		}
		if pids := s.serving(t); !slices.Equal(pids, []int{state.PID}) {
			t.Errorf("%s: processes %v, want the one that answers, %d", where, pids, state.PID)
		}
	}
	s.clean(t, where)
}

// clean makes sure that nothing is left over.
func (s *site) clean(t *testing.T, where string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.dir, ".*[0-9p]"))
	must(t, err)
	dir := s.serverDir()
	if dir == "" {
		return
	}
	for _, name := range names(t, dir) {
		if serverdir.IsTemporary(name) || serverdir.IsLaunch(name) || name == serverdir.ReserveName {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		t.Errorf("%s: left behind: %v", where, left)
	}
	onlyOwner(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	must(t, err)
	f := journal.Decode(text)
	if len(f.Damaged)+len(f.Torn) > 0 {
		t.Errorf("%s: the journal has %v damaged lines and %q at its end", where, f.Damaged, f.Torn)
	}
	for i, r := range f.Records {
		if r.Seq != i+1 {
			t.Fatalf("%s: record %d has number %d", where, i+1, r.Seq)
		}
	}
	if state := journal.Reduce(f.Records); state.Open {
		t.Errorf("%s: the run is still open, %s", where, state.Stage)
	}
}

// kills is how many instants are tried in each mode; the variable is for the long
// version.
func kills(t *testing.T) int {
	if text := os.Getenv("ROOFTOP_TEST_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	return 4
}

// Killed at any instant, and recover killed too: afterwards the server runs the
// original or the kept configuration, byte for byte, and nothing is left over.
func TestKilledAtAnyInstant(t *testing.T) {
	for _, mode := range []string{"exec", "attach"} {
		for n := range kills(t) {
			seed := uint64(n)
			t.Run(fmt.Sprintf("%s/%d", mode, n), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, mode, seed)
				rng := rand.New(rand.NewPCG(seed, 11))
				tuner := s.send(t, s.dir)
				time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
				must(t, tuner.Process.Kill())
				_ = tuner.Wait()
				want := s.truth(t)
				list, err := Survey(s.Root)
				must(t, err)
				for _, l := range list {
					t.Logf("%s: %s; %v", l.State.Stage, l.Remedy, l.Found)
				}
				// Recover may be killed as well, and done again.
				s.Repair = true
				for range rng.IntN(3) {
					r := s.send(t, s.dir)
					time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
					_ = r.Process.Kill()
					_ = r.Wait()
				}
				r := s.send(t, s.dir)
				if err := r.Wait(); err != nil {
					log, _ := os.ReadFile(filepath.Join(s.dir, "errand.log"))
					t.Fatalf("recover: %v\n%s", err, log)
				}
				s.check(t, want, fmt.Sprintf("seed %d", seed))
			})
		}
	}
}
