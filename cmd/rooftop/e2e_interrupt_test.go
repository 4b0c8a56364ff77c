//go:build e2e && linux

package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	main "github.com/rooftop-dev/rooftop/cmd/rooftop"
)

// A rooftop that is interrupted at any instant, by signals, by a reader that stalls, or by the end of
// a process that it needs: the server runs the original or the kept configuration, nothing is left,
// and rooftop has ended within a minute or says what it waits for. ROOFTOP_E2E_INTERRUPTS is how
// often, for the long version:
//
//	ROOFTOP_E2E_INTERRUPTS=200 go test -tags e2e -run E2EInterrupted -parallel 10 -timeout 60m ./cmd/rooftop

// endsWithin is how long rooftop may take to end after its interruption without printing a reason.
const endsWithin = time.Minute

// A test run started by nohup(1) or in the background of a script ignores signals, and rooftop would too: signals
// that this process handles have their defaults in the programs that it starts.
func init() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// interruption is a way to interrupt rooftop.
type interruption struct {
	name   string
	output output
	around []string // command that runs rooftop, with its arguments
	do     func(*interrupted)
	begins bool // at the beginning of rooftop
	leaves bool // rooftop may leave the server to 'rooftop recover'
}

// output is a reader of rooftop's stdout and stderr.
type output int

const (
	outputRead output = iota
	outputUnread
	outputTerminal
	outputScreen
)

// parent starts its arguments and reads what they print.
var parent = []string{"bash", "-c", `coproc exec "$@"; while read -r line <&"${COPROC[0]}"; do :; done`, "parent"}

func interruptions() []interruption {
	one := func(s syscall.Signal) func(*interrupted) { return func(r *interrupted) { r.signal(s) } }
	twice := func(pause time.Duration) func(*interrupted) {
		return func(r *interrupted) {
			s := r.anySignal()
			r.signal(s)
			r.after(pause)
			r.signal(s)
		}
	}
	stalls := func(stop, then func(*interrupted)) func(*interrupted) {
		return func(r *interrupted) {
			stop(r)
			r.after(r.upTo(10 * time.Second))
			then(r)
		}
	}
	unread := func(*interrupted) {}
	return []interruption{
		{name: "TERM", do: one(syscall.SIGTERM)},
		{name: "twice in a second", do: twice(time.Second)},
		{name: "QUIT", do: one(syscall.SIGQUIT)},
		{name: "launcher killed", begins: true, do: func(r *interrupted) { r.launcher(syscall.SIGKILL) }},
		{name: "JSON unread", output: outputUnread, do: stalls(unread, one(syscall.SIGTERM))},
		{name: "INT", do: one(syscall.SIGINT)},
		{name: "TERM, HUP", do: func(r *interrupted) { r.signal(syscall.SIGTERM); r.after(time.Second / 2); r.signal(syscall.SIGHUP) }},
		{name: "timeout", around: []string{"timeout", "SECONDS"}, do: func(*interrupted) {}},
		{name: "terminal stopped", output: outputTerminal, do: stalls((*interrupted).stopTerminal, one(syscall.SIGTERM))},
		{name: "HUP", do: one(syscall.SIGHUP)},
		{name: "to the group", do: func(r *interrupted) { r.signalGroup(r.anySignal()) }},
		{name: "launcher stopped", begins: true, do: func(r *interrupted) { r.launcher(syscall.SIGSTOP) }},
		{name: "twice in 100 ms", do: twice(100 * time.Millisecond)},
		{name: "terminal closed", output: outputTerminal, do: func(r *interrupted) { r.terminal.Close() }},
		{name: "parent killed", around: parent, do: func(r *interrupted) { _ = r.cmd.Process.Kill() }},
		{name: "screen stopped", output: outputScreen, do: stalls((*interrupted).stopTerminal, one(syscall.SIGTERM))},
		{name: "INT, QUIT to the group", do: func(r *interrupted) {
			r.signalGroup(syscall.SIGINT)
			r.after(time.Second)
			r.signalGroup(syscall.SIGQUIT)
		}},
		{name: "JSON unread, twice", output: outputUnread, do: stalls(unread, twice(time.Second))},
		{name: "screen closed", output: outputScreen, do: func(r *interrupted) { r.terminal.Close() }},
		{name: "three times", leaves: true, do: func(r *interrupted) {
			s := r.anySignal()
			for range 3 {
				r.signal(s)
				r.after(2100 * time.Millisecond)
			}
		}},
	}
}

// interrupted is a rooftop that is interrupted, and its server.
type interrupted struct {
	*victim
	how      interruption
	rng      *rand.Rand
	cmd      *exec.Cmd // rooftop, or what runs it
	pid      int       // of rooftop
	over     chan struct{}
	terminal *os.File // the reader's end, nil without a terminal
	launches map[string]*meant
	records  []journalled
	stderr   string // a file, "" where nothing reads it
	unread   *os.File
	shown    string // on the terminal, a file
	did      []string
}

// journalled is a record of the journal.
type journalled struct{ Kind, Launch string }

func (r *interrupted) upTo(d time.Duration) time.Duration {
	return time.Duration(r.rng.Int64N(int64(d)))
}

// anySignal returns one of the signals that end a run.
func (r *interrupted) anySignal() syscall.Signal {
	return []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}[r.rng.IntN(4)]
}

func (r *interrupted) note(what string) {
	r.did = append(r.did, time.Now().Format("04:05.000")+" "+what)
}

// after waits, and stores the launches that the journal names meanwhile.
func (r *interrupted) after(d time.Duration) {
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		r.follow()
		time.Sleep(min(20*time.Millisecond, time.Until(end)))
	}
}

func (r *interrupted) signal(s syscall.Signal) {
	r.note(s.String())
	_ = syscall.Kill(r.pid, s)
}

func (r *interrupted) signalGroup(s syscall.Signal) {
	r.note(s.String() + " to the group")
	_ = syscall.Kill(-r.cmd.Process.Pid, s)
}

func (r *interrupted) stopTerminal() {
	r.note("terminal stopped")
	const controlS = "\x13"
	if _, err := r.terminal.WriteString(controlS); err != nil {
		r.t.Errorf("stop the terminal: %v", err)
	}
}

// launcher signals one of the first launcher processes of rooftop, and ends the run some seconds later.
func (r *interrupted) launcher(s syscall.Signal) {
	r.t.Helper()
	of := 2 // a rehearsal of the first change, and its start
	if r.found == 0 {
		of = 3 // and the first start
	}
	nth, into := 1+r.rng.IntN(of), r.upTo(4*time.Millisecond)
	seen, found := map[int]bool{}, 0
	for end := time.Now().Add(3 * time.Minute); found < nth; time.Sleep(time.Millisecond) {
		if r.ended() {
			r.t.Logf("NOT CHECKED: the run ended after %d launcher processes, before number %d", found, nth)
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%d launcher processes were seen, want %d", found, nth)
		}
		for _, pid := range children(r.pid) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if !seen[pid] && string(line) == "rooftop\x00"+launcher.Flag+"\x00" {
				seen[pid] = true
				found++
			}
			if found == nth {
				time.Sleep(into)
				r.note(fmt.Sprintf("launcher %d, %v after it was seen: %v, %v", nth, into, s, syscall.Kill(pid, s)))
				r.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
				break
			}
		}
	}
	r.after(r.upTo(8 * time.Second))
	r.signal(syscall.SIGTERM)
}

// children lists the processes that a process started and that have not ended.
func children(of int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for word := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(word)
			pids = append(pids, pid)
		}
	}
	return pids
}

// follow reads the journal and every launch beside it, because launches are removed when a run ends.
func (r *interrupted) follow() {
	files, _ := filepath.Glob(filepath.Join(r.dir, "rooftop", "servers", "*", "launch-*"))
	for _, file := range files {
		if name := filepath.Base(file); r.launches[name] == nil {
			m := &meant{}
			if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, m) == nil {
				r.launches[name] = m
			}
		}
	}
	files, _ = filepath.Glob(filepath.Join(r.dir, "rooftop", "servers", "*", "journal.jsonl"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		records := []journalled{}
		for line := range bytes.Lines(text) {
			var one journalled
			if json.Unmarshal(line, &one) == nil {
				records = append(records, one)
			}
		}
		r.records = records
	}
}

func (r *interrupted) has(kind string) bool {
	return slices.ContainsFunc(r.records, func(one journalled) bool { return one.Kind == kind })
}

// tune starts rooftop.
func (r *interrupted) tune(seconds time.Duration) {
	r.t.Helper()
	form := map[output]string{outputTerminal: "--plain", outputScreen: "--countdown=0s"}[r.how.output]
	args := []string{r.rooftop, "tune", "--auto", cmp.Or(form, "--json"), "--no-report", "--duration", "8s", "--longest", "12s", "--start-timeout", r.starts.String(), "--max-restarts", "8"}
	if r.found != 0 {
		args = append(args, "--url", url(r.at), "--restart-in-place")
	} else {
		args = append(append(args, "--"), r.argv...)
	}
	for i := len(r.how.around) - 1; i >= 0; i-- {
		word := r.how.around[i]
		if word == "SECONDS" {
			word = fmt.Sprintf("%.3f", seconds.Seconds())
		}
		args = append([]string{word}, args...)
	}
	r.cmd = r.command(args...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.connect()
	must(r.t, r.cmd.Start())
	for _, f := range []any{r.cmd.Stdout, r.cmd.Stderr} {
		if f, ok := f.(*os.File); ok {
			_ = f.Close()
		}
	}
	r.over = make(chan struct{})
	go func() { _ = r.cmd.Wait(); close(r.over) }()
	r.t.Cleanup(func() { _ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL); <-r.over })
	own, err := os.Stat(r.rooftop)
	must(r.t, err)
	for end := time.Now().Add(r.starts); r.pid == 0; time.Sleep(5 * time.Millisecond) {
		for _, pid := range r.residents() {
			exe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && os.SameFile(exe, own) && bytes.Contains(line, []byte("\x00tune\x00")) {
				r.pid = pid
			}
		}
		if r.pid == 0 && time.Now().After(end) {
			r.t.Fatal("rooftop did not start")
		}
	}
}

// connect gives rooftop the streams of its interruption.
func (r *interrupted) connect() {
	r.t.Helper()
	if r.how.output == outputTerminal || r.how.output == outputScreen {
		ours, theirs, err := main.OpenTerminal(120, 30)
		must(r.t, err)
		r.t.Cleanup(func() { ours.Close() })
		r.terminal = ours
		r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = theirs, theirs, theirs
		r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
		r.cmd.Env = append(slices.Clone(r.env), "TERM=xterm-256color")
		shown, err := os.Create(filepath.Join(r.t.TempDir(), "terminal"))
		must(r.t, err)
		r.t.Cleanup(func() { shown.Close() })
		r.shown = shown.Name()
		go func() { _, _ = io.Copy(shown, ours) }()
		return
	}
	reads, writes, err := os.Pipe()
	must(r.t, err)
	r.t.Cleanup(func() { reads.Close() })
	r.cmd.Stdout = writes
	if r.how.output == outputUnread {
		if _, err := unix.FcntlInt(writes.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
			r.t.Fatal(err)
		}
		r.unread = reads
		if r.rng.IntN(2) == 0 {
			r.cmd.Stderr = writes
			return
		}
	} else {
		go func() { _, _ = io.Copy(io.Discard, reads) }()
	}
	r.stderr = filepath.Join(r.t.TempDir(), "stderr")
	file, err := os.Create(r.stderr)
	must(r.t, err)
	r.cmd.Stderr = file
}

// ended reports whether rooftop has ended.
func (r *interrupted) ended() bool {
	select {
	case <-r.over:
	default:
		if len(r.how.around) == 0 {
			return false
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

func (r *interrupted) said() string {
	text, _ := os.ReadFile(r.stderr)
	return string(text)
}

// run interrupts rooftop some time after it began, or after it began with its first change, and
// judges the result.
func (r *interrupted) run(after time.Duration, changing bool) {
	r.t.Helper()
	seconds := after
	if changing {
		seconds += 20 * time.Second // a first change comes about then
	}
	r.tune(seconds)
	for end := time.Now().Add(3 * time.Minute); changing && r.how.name != "timeout" && !r.has("intent"); r.after(20 * time.Millisecond) {
		if r.ended() || time.Now().After(end) {
			shown, _ := os.ReadFile(r.shown)
			r.t.Fatalf("it made no change (ended %v): %s%q", r.ended(), r.said(), shown[max(0, len(shown)-1000):])
		}
	}
	if r.how.name == "timeout" {
		r.after(seconds)
	} else {
		r.after(after)
	}
	early := r.ended()
	stage := ""
	if len(r.records) > 0 {
		stage = r.records[len(r.records)-1].Kind
	}
	r.note(fmt.Sprintf("interrupted behind a record %q", stage))
	r.how.do(r)
	began := time.Now()
	for time.Since(began) < endsWithin && !r.ended() {
		r.after(20 * time.Millisecond)
	}
	took := time.Since(began)
	r.follow()
	r.t.Cleanup(func() {
		r.t.Logf("%s, %v after it began (with a change: %v): %s\nit ended after %v (already before: %v) with %v, said: %s",
			r.how.name, after, changing, strings.Join(r.did, "; "), took, early, r.cmd.ProcessState, r.said())
	})
	if !r.ended() {
		if r.stderr == "" && r.unread != nil { // read now what it says, and where it hangs
			r.stderr = filepath.Join(r.t.TempDir(), "stderr")
			file, err := os.Create(r.stderr)
			must(r.t, err)
			go func() { _, _ = io.Copy(file, r.unread) }()
			r.after(time.Second)
		}
		if !strings.Contains(r.said(), "reverting to") && !strings.Contains(r.said(), "waiting for") {
			r.t.Errorf("it did not end within %v, and does not say what it waits for", endsWithin)
		}
		_ = syscall.Kill(r.pid, syscall.SIGABRT)
		r.after(time.Second)
		_ = syscall.Kill(r.pid, syscall.SIGKILL)
	}
	if r.how.leaves && !strings.Contains(r.said(), "keeps running") {
		r.recovered()
		r.follow()
	}
	r.judge()
}

// judge compares the running servers and remaining files with the journal.
func (r *interrupted) judge() {
	r.t.Helper()
	list := r.list()
	defer func() {
		if r.t.Failed() {
			r.t.Logf("records: %v", r.records)
		}
	}()
	name := ""
	for _, one := range r.records {
		if one.Kind == "begin" || one.Kind == "kept" {
			name = one.Launch
		}
	}
	switch {
	case len(r.records) > 0 && r.records[len(r.records)-1].Kind != "end" && len(list) > 0:
		r.t.Errorf("left in the journal:\n%s", list)
	case r.found != 0 && name == "":
		r.isAs(&meant{Argv: r.argv, Env: r.env, Cwd: r.dir})
	case r.found == 0 && !r.has("ready"):
		if pids := r.residents(); len(pids) > 0 {
			r.t.Errorf("processes %v are left of a server that was never ready", pids)
		}
		return
	}
	if m := r.launches[name]; m != nil {
		r.isAs(m)
	} else if name != "" {
		r.t.Errorf("no launch %s", name)
	}
	r.clean()
	if pids := r.processes(); r.found == 0 && r.stderr != "" && len(pids) == 1 && !r.how.leaves {
		if want := fmt.Sprintf("keeps running as process %d", pids[0]); !strings.Contains(r.said(), want) {
			r.t.Errorf("it does not say that the server %s", want)
		}
	}
}

// list returns the findings of 'rooftop recover', "" for none.
func (r *interrupted) list() string {
	r.t.Helper()
	out, err := r.command(r.rooftop, "recover", "--dry-run").CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	if bytes.Contains(out, []byte("Nothing is left")) {
		return ""
	}
	return string(out)
}

func TestE2EInterrupted(t *testing.T) {
	count := 20
	if text := os.Getenv("ROOFTOP_E2E_INTERRUPTS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	kinds := interruptions()
	var mu sync.Mutex
	runs, violations := map[string]int{}, map[string]int{}
	t.Run("case", func(t *testing.T) {
		for n := range count {
			rng := rand.New(rand.NewPCG(uint64(n), 31))
			how := kinds[n%len(kinds)]
			inPlace, inFile, changing := (n+n/len(kinds))%2 == 1, n/2%2 == 1, n%5 != 0
			after := time.Duration(rng.Int64N(int64(30 * time.Second)))
			if changing {
				after = time.Duration(rng.Int64N(int64(2500 * time.Millisecond)))
				if n%5 == 1 {
					after *= 8
				}
			}
			if how.begins {
				after, changing = 0, false
			}
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					if runs[how.name]++; t.Failed() {
						violations[how.name]++
					}
				}()
				r := &interrupted{victim: newVictim(t, inPlace, inFile), how: how, rng: rng, launches: map[string]*meant{}}
				r.run(after, changing)
			})
		}
	})
	for _, how := range kinds {
		t.Logf("%-26s %3d runs, %d violations", how.name, runs[how.name], violations[how.name])
	}
}

// An agent's MCP server, and its process that makes the changes, get two signals in quick succession while a change
// is made, and while one is in place: the change is reverted.
func TestE2EInterruptedAgent(t *testing.T) {
	for name, during := range map[string]bool{"while the change is made": true, "with the change in place": false} {
		t.Run(name, func(t *testing.T) {
			env := ownState(t) // side by side
			at := programtest.Address(t)
			startsSim(t, at, tightSlots)
			offerSim(t, at)
			a := startAgent(t, env, "--allow-changes", url(at))
			a.use("measure", map[string]any{"server": url(at), "duration_s": 10})
			applied := make(chan struct{})
			go func() {
				defer close(applied)
				_, _ = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "apply", Arguments: map[string]any{"flag": "--max-num-seqs", "to": "24"}})
			}()
			if during {
				for serving(t, at) != nil && slotsOf(t, at) == tightSlots {
					time.Sleep(20 * time.Millisecond)
				}
			} else {
				<-applied
			}
			pids := append(children(a.cmd.Process.Pid), a.cmd.Process.Pid)
			if len(pids) != 2 {
				t.Fatalf("processes %v, want two", pids)
			}
			for range 2 {
				for _, pid := range pids {
					_ = syscall.Kill(pid, syscall.SIGTERM)
				}
				time.Sleep(600 * time.Millisecond)
			}
			<-applied
			for end := time.Now().Add(endsWithin); ; time.Sleep(100 * time.Millisecond) {
				late := time.Now().After(end)
				if slotsOf(t, at) != tightSlots && !late {
					continue
				}
				left := beginWith(t, env, "recover", "--dry-run")()
				if strings.Contains(string(left.stdout), "Nothing is left") && healthy(t.Context(), at) && slotsOf(t, at) == tightSlots {
					break
				}
				if late {
					t.Fatalf("the server runs with %q slots; left:\n%s%s", slotsOf(t, at), left.stdout, a.log)
				}
			}
		})
	}
}
