//go:build e2e && linux

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// A rooftop that is killed in the middle of a run: 'rooftop recover' leaves the
// server as it was or as it was meant to be. ROOFTOP_E2E_KILLS is how often, for the
// long version:
//
//	ROOFTOP_E2E_KILLS=200 go test -tags e2e -run E2EKilled -parallel 8 -timeout 60m ./cmd/rooftop

// victim is a server, its load, and the rooftop that will be killed.
type victim struct {
	t       *testing.T
	dir     string // state, config file, logs; every process here works in it
	at      netip.AddrPort
	rooftop string   // program
	config  string   // "" if the slots are on the command line
	argv    []string // of the server
	mark    string   // argument by which the server is known
	env     []string
	starts  time.Duration // how long a start may take
	found   int           // process that was found running; 0 rooftop starts it
	client  atomic.Int64  // process that loads it
}

const slotsFile = "# of the team\nmax-num-seqs: 4   # measured in May\n"

func newVictim(t *testing.T, inPlace, inFile bool) *victim {
	t.Helper()
	path := builtByName(t)
	v := &victim{t: t, dir: t.TempDir(), at: programtest.Address(t), rooftop: path, mark: "sim", starts: 30 * time.Second}
	v.argv = []string{path, "sim", simModel, "--sim-gpu", "NVIDIA A100-SXM4-80GB", "--max-model-len", "4096", "--sim-startup-time", "300ms"}
	v.argv = append(v.argv, listensAt(v.at)...)
	if inFile {
		v.config = filepath.Join(v.dir, "vllm.yaml")
		old := time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.UTC)
		must(t, errors.Join(os.WriteFile(v.config, []byte(slotsFile), 0o640), os.Chtimes(v.config, old, old)))
		v.argv = append(v.argv, "--config", v.config)
	} else {
		v.argv = append(v.argv, "--max-num-seqs", "4")
	}
	v.begin(os.Environ(), inPlace, "--model", simModel, "--clients", "12", "--prompt-tokens", "64", "--output-tokens", "32-64")
	return v
}

// begin starts the server, if rooftop must find it running, and its load.
func (v *victim) begin(env []string, inPlace bool, load ...string) {
	v.t.Helper()
	v.env = append(env, "XDG_STATE_HOME="+v.dir, "HF_TOKEN=hf_not_a_real_token_0123456789")
	v.t.Cleanup(v.end)
	if inPlace {
		cmd := v.command(v.argv...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		v.start(cmd)
		v.found = cmd.Process.Pid
		v.answers(2 * v.starts)
	}
	v.load(load)
}

// load offers more requests than the slots hold, from the start of the server.
func (v *victim) load(of []string) {
	cmd := v.command(append([]string{v.rooftop, "load", "--url", url(v.at), "--duration", "0"}, of...)...)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if healthy(ctx, v.at) && cmd.Start() == nil {
			v.client.Store(int64(cmd.Process.Pid))
			<-ctx.Done()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	v.t.Cleanup(func() { stop(); <-done })
}

func (v *victim) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Args[0], cmd.Dir, cmd.Env = argv[0], v.dir, v.env
	return cmd
}

// start starts a process that ends with the test.
func (v *victim) start(cmd *exec.Cmd) {
	v.t.Helper()
	must(v.t, cmd.Start())
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	v.t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
}

// processes returns those of the server, regardless of the program that started them.
func (v *victim) processes() []int {
	var pids []int
	want := "\x00--port\x00" + strconv.Itoa(int(v.at.Port())) + "\x00"
	for _, pid := range v.residents() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(line, []byte("\x00"+v.mark+"\x00")) && bytes.Contains(line, []byte(want)) && !bytes.Contains(line, []byte("\x00tune\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// residents returns all processes that work in the directory of this server: its own, those it started, and a
// rooftop, but not the load.
func (v *victim) residents() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && cwd == v.dir && pid != int(v.client.Load()) && !bytes.Contains(stat, []byte(") Z ")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (v *victim) end() {
	for _, pid := range v.residents() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (v *victim) answers(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(v.t.Context(), within)
	defer cancel()
	return healthy(ctx, v.at)
}

// tuned runs rooftop and kills it some time after its start, or after the start of its first change.
func (v *victim) tuned(after time.Duration, changing bool) {
	v.t.Helper()
	args := []string{v.rooftop, "tune", "--auto", "--json", "--no-report", "--duration", "8s", "--longest", "12s", "--start-timeout", v.starts.String(), "--max-restarts", "8"}
	if v.found != 0 {
		args = append(args, "--url", url(v.at), "--restart-in-place")
	} else {
		args = append(append(args, "--"), v.argv...)
	}
	cmd := v.command(args...)
	out, err := cmd.StdoutPipe()
	must(v.t, err)
	var said bytes.Buffer
	cmd.Stderr = &said
	must(v.t, cmd.Start())
	applying, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		seen := false
		lines := bufio.NewScanner(out)
		for lines.Buffer(nil, 1<<24); lines.Scan(); {
			var e autoEvent
			if json.Unmarshal(lines.Bytes(), &e) == nil && e.Type == "applying" && !seen {
				seen = true
				close(applying)
			}
		}
	}()
	if changing {
		select {
		case <-applying:
		case <-over:
			v.t.Error("it ended without a change")
		case <-time.After(3 * time.Minute):
			v.t.Error("it made no change")
		}
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	<-over
	_ = cmd.Wait()
	if v.t.Failed() {
		v.t.Logf("it said: %s", said.String())
	}
}

// meant returns the launch that must run: the exact one of the journal's last kept record, else of its first. It is
// nil if the journal has none.
type meant struct {
	Argv, Env []string
	Cwd       string
	Files     []struct {
		Path string
		Mode fs.FileMode
		Data []byte
		Time time.Time
	}
}

func (v *victim) meant() (m *meant, stage string) {
	v.t.Helper()
	files, _ := filepath.Glob(filepath.Join(v.dir, "rooftop", "servers", "*", "journal.jsonl"))
	name, over := "", false
	for _, file := range files {
		text := readFile(v.t, file)
		for line := range strings.Lines(string(text)) {
			var r struct{ Kind, Launch string }
			if json.Unmarshal([]byte(line), &r) != nil {
				continue
			}
			if stage = r.Kind; r.Kind == "begin" || r.Kind == "kept" {
				name = filepath.Join(filepath.Dir(file), r.Launch)
			}
			over = r.Kind == "end"
		}
	}
	if name == "" || over {
		return nil, stage
	}
	data := readFile(v.t, name)
	m = &meant{}
	must(v.t, json.Unmarshal(data, m))
	return m, stage
}

// recovered runs 'rooftop recover --yes', and checks that nothing is left to do.
func (v *victim) recovered() {
	v.t.Helper()
	out, err := v.command(v.rooftop, "recover", "--yes", "--start-timeout", v.starts.String()).CombinedOutput()
	if err != nil {
		v.t.Fatalf("recover: %v\n%s", err, out)
	}
	v.t.Logf("%s", out)
	if out, err := v.command(v.rooftop, "recover").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Nothing is left")) {
		v.t.Errorf("once more: %v\n%s", err, out)
	}
}

// isAs checks that exactly one server runs, with the intended launch.
func (v *victim) isAs(m *meant) {
	v.t.Helper()
	if !v.answers(10 * time.Second) {
		v.t.Fatal("the server does not answer")
	}
	pids := v.processes()
	if len(pids) != 1 {
		v.t.Fatalf("processes %v, want one", pids)
	}
	for _, pid := range v.residents() {
		if !descends(pid, pids[0]) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			v.t.Errorf("process %d is left of another server: %q", pid, line)
		}
	}
	of := func(name string) []string {
		text := readFile(v.t, fmt.Sprintf("/proc/%d/%s", pids[0], name))
		return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	if got := of("cmdline"); !slices.Equal(got, m.Argv) {
		v.t.Errorf("command line %q, want %q", got, m.Argv)
	}
	// A launch that was tried before it was kept still has the mark of its trial.
	marked := func(entry string) bool { return strings.HasPrefix(entry, "ROOFTOP_TRIAL=") }
	if got := slices.DeleteFunc(of("environ"), marked); !slices.Equal(got, m.Env) {
		v.t.Errorf("environment %q, want %q", got, m.Env)
	}
	if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pids[0])); cwd != m.Cwd {
		v.t.Errorf("working directory %s, want %s", cwd, m.Cwd)
	}
	for _, f := range m.Files {
		data, err := os.ReadFile(f.Path)
		info, _ := os.Stat(f.Path)
		if err != nil || !bytes.Equal(data, f.Data) || info.Mode() != f.Mode || !f.Time.IsZero() && !info.ModTime().Equal(f.Time) {
			v.t.Errorf("%s: %q (%v), want %q (%o, %v), %v", f.Path, data, info, f.Data, f.Mode, f.Time, err)
		}
	}
}

// descends reports whether a process is another, or was started by it.
func descends(pid, of int) bool {
	for pid > 1 {
		if pid == of {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true // gone meanwhile: left of nothing
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if _, err := fmt.Sscanf(rest, "%1s %d", new(string), &pid); err != nil {
			return false
		}
	}
	return false
}

// clean checks that nothing is left over, and that the whole journal can be read.
func (v *victim) clean() {
	v.t.Helper()
	_ = filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := filepath.Base(path)
		if strings.HasSuffix(base, ".tmp") || atomicfile.Unfinished(base) || strings.HasPrefix(base, "launch-") || base == "reserve" {
			v.t.Errorf("left behind: %s", path)
		}
		if info, err := d.Info(); err == nil && strings.HasPrefix(path, filepath.Join(v.dir, "rooftop", "servers")) && info.Mode().Perm()&0o077 != 0 {
			v.t.Errorf("%s has mode %v", path, info.Mode())
		}
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("hf_not_a_real_token")) {
			v.t.Errorf("%s holds a token", path)
		}
		if base != "journal.jsonl" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) > 0 && text[len(text)-1] != '\n' {
			v.t.Errorf("%s: %v, ends in %q", path, err, text[max(0, len(text)-20):])
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			var r struct {
				Seq    int
				Schema string
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Seq != n || r.Schema != "rooftop.journal/v1" {
				v.t.Errorf("%s line %d: %v: %s", path, n, err, line)
			}
		}
		return nil
	})
}

// killedAndRecovered is the whole story. It reports whether the kill interrupted a run in
// the middle.
func (v *victim) killedAndRecovered(after time.Duration, changing bool) bool {
	v.t.Helper()
	v.tuned(after, changing)
	m, stage := v.meant()
	v.t.Logf("killed %v after it began (with a change: %v), behind a record %q", after, changing, stage)
	v.recovered()
	if m != nil {
		v.isAs(m)
	} else if v.found != 0 && !v.answers(10*time.Second) {
		v.t.Error("the server does not answer")
	}
	v.clean()
	return m != nil
}

func TestE2EKilled(t *testing.T) {
	kills := 12
	if text := os.Getenv("ROOFTOP_E2E_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var made, caught atomic.Int32
	t.Run("kill", func(t *testing.T) {
		for n := range kills {
			rng := rand.New(rand.NewPCG(uint64(n), 6))
			inPlace, inFile := n%2 == 1, n/2%2 == 1
			// Instants anywhere in a run, of which a change is a small part, and more of them while the server is
			// stopped, started, checked and measured.
			changing := n%5 != 0
			after := time.Duration(rng.Int64N(int64(40 * time.Second)))
			switch {
			case changing && n%5 == 1:
				after = time.Duration(rng.Int64N(int64(20 * time.Second)))
			case changing:
				after = time.Duration(rng.Int64N(int64(2500 * time.Millisecond)))
			}
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				made.Add(1)
				if newVictim(t, inPlace, inFile).killedAndRecovered(after, changing) {
					caught.Add(1)
				}
			})
		}
	})
	if made, caught := made.Load(), caught.Load(); caught < made/2 {
		t.Errorf("%d of %d kills caught a run in the middle: the test shows little", caught, made)
	}
}
