//go:build e2e && linux

package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// beginTraceOf starts rooftop trace with these flags.
func beginTraceOf(t *testing.T, args ...string) *traceRun {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &traceRun{}
	r.cmd = exec.CommandContext(testContext(t), path, append([]string{"trace", "--duration", "5m", "--force", "--json"}, args...)...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// waits is done when the trace has its programs in the kernel.
func (r *traceRun) waits(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); r.links(t) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after three minutes nothing is attached: %s", r.stderr.String())
		}
	}
}

// links are the programs that a trace has attached: it holds a file of each.
func (r *traceRun) links(t *testing.T) int {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("the trace has ended: %v: %s", err, r.stderr.String())
	}
	n := 0
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.Contains(to, "bpf") && strings.Contains(to, "link") || strings.Contains(to, "perf_event") {
			n++
		}
	}
	return n
}

// stop interrupts the trace: it ends with its report and the code of an interrupt.
func (r *traceRun) stop(t *testing.T) *optrace.Summary {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	return r.left(t, 128+int(syscall.SIGINT))
}

// left waits until the trace ends by itself.
func (r *traceRun) left(t *testing.T, code int) *optrace.Summary {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Fatalf("the trace goes on three minutes after it should have ended: %s", r.stderr.String())
	}
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("exit code %d, want %d: %s", got, code, r.stderr.String())
	}
	return readFigures(t, r.stdout.Bytes())
}

// TestE2ETraceFile traces a file that no process uses yet: a runtime that starts later
// and loads it as a library is seen from its first graph on, and a second one too.
func TestE2ETraceFile(t *testing.T) {
	needsRoot(t)
	for _, runtime := range runtimes {
		t.Run(runtime, func(t *testing.T) {
			r := beginTraceOf(t, "--file", cpuLibrary(t, runtime))
			r.waits(t)
			began := time.Now()
			d := drive(t, runtime, gguf.Tiny, 1)
			r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
			second := drive(t, runtime, gguf.Tiny, 1)
			for range 3 {
				d.run(t, tracePrompt, traceTokens)
				second.run(t, tracePrompt, traceTokens)
			}
			s := r.stop(t)
			t.Logf("%d graphs, %d calls, %d partial in %v; gaps %+v", s.Coverage.Graphs, s.Coverage.Calls, s.Coverage.Partial, time.Since(began), s.Gaps)
			if want := 6 * (traceTokens - 1); s.Coverage.Graphs < want {
				t.Errorf("%d graphs, want %d at least: three runs of each of two processes", s.Coverage.Graphs, want)
			}
			if row := most(s.Kinds, optrace.PhaseDecode); row == nil || row.Op != "MUL_MAT" || row.Type != "q8_0" {
				t.Errorf("decodes are mostly %+v, want products of q8_0", row)
			}
		})
	}
}

// cpuLibrary is the file with the hook that a runtime maps.
func cpuLibrary(t *testing.T, runtime string) string {
	t.Helper()
	found := ""
	t.Run("library", func(t *testing.T) {
		d := drive(t, runtime, gguf.Tiny, 1)
		maps, err := os.ReadFile("/proc/" + strconv.Itoa(d.pid) + "/maps")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			fields := strings.Fields(line)
			if path := fields[len(fields)-1]; strings.Contains(path, "libggml-cpu") || strings.HasSuffix(path, "/index.node") {
				found = path
			}
		}
	})
	if found == "" {
		t.Fatalf("%s maps no library with GGML's operators", runtime)
	}
	return found
}

// TestE2ETraceByName finds a runtime by a part of its command line.
func TestE2ETraceByName(t *testing.T) {
	needsRoot(t)
	d := drive(t, "npm-new", gguf.MoE, 1)
	command, err := os.ReadFile("/proc/" + strconv.Itoa(d.pid) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(string(command), "\x00")
	r := beginTraceOf(t, strings.Join(words[1:4], " ")) // of this test's checkout, runtime and model
	r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
	d.run(t, tracePrompt, traceTokens)
	if s := r.stop(t); s.Target.PID != d.pid || s.Coverage.Graphs < traceTokens {
		t.Errorf("%d graphs of process %d, want those of %d", s.Coverage.Graphs, s.Target.PID, d.pid)
	}
}

// TestE2ETraceNoSuchName is a name that nothing has: one sentence, with those that there
// are on a line each where there are some, and exit code 5.
func TestE2ETraceNoSuchName(t *testing.T) {
	needsRoot(t)
	r := beginTraceOf(t, "no-such-runtime-anywhere")
	_ = r.cmd.Wait()
	said := strings.TrimSpace(r.stderr.String())
	sentence, others, _ := strings.Cut(said, "\n")
	listed := func(line string) bool { return strings.HasPrefix(line, "  --pid ") }
	code, odd := r.cmd.ProcessState.ExitCode(), slices.DeleteFunc(slices.Collect(strings.Lines(others)), listed)
	if code != 5 || r.stdout.Len() > 0 || len(odd) > 0 || !strings.Contains(sentence, "no-such-runtime-anywhere") {
		t.Errorf("exit code %d, %d bytes of report, said %q", code, r.stdout.Len(), said)
	}
}

// TestE2ETraceContexts has two contexts of one process compute at once: graphs of both
// are told apart, whole, and none is lost.
func TestE2ETraceContexts(t *testing.T) {
	needsRoot(t)
	d := drive(t, "npm-new", gguf.Tiny, 1)
	before := d.run(t, tracePrompt, traceTokens)
	r := beginTrace(t, d)
	r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
	const runs = 5
	for range runs {
		d.tell(t, "both %d %d", tracePrompt, traceTokens)
		for range 2 {
			if a := d.answer(t); a.Hash != before.Hash {
				t.Errorf("a context's tokens have the sum %s, without probes %s", a.Hash, before.Hash)
			}
		}
	}
	doc, recording := r.end(t)
	a := assembledOf(recording)
	at := 0
	for i, g := range a.graphs {
		for _, other := range a.graphs[i+1:] {
			if other.Begin < g.End && g.Begin < other.End {
				at++
				break
			}
		}
	}
	t.Logf("%d graphs, %d partial, %d while another was computed", len(a.graphs), a.partial, at)
	if want := runs * 2 * (traceTokens - 1); doc.Coverage.Graphs < want || a.partial > 2 || doc.Coverage.Dropped > 0 {
		t.Errorf("%d graphs, want %d at least; %d are partial, %d events dropped", doc.Coverage.Graphs, want, a.partial, doc.Coverage.Dropped)
	}
	if at == 0 {
		t.Error("no graph was computed while another was: that is not what was to be tested")
	}
	a.counts(t, operatorsOf("npm-new", gguf.Tiny), 1)
}

// knownRuntime is collect/ggml/testdata/runtime.c as a process: it computes what it is
// told.
type knownRuntime struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func buildKnown(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "known-runtime")
	source := filepath.Join("..", "..", "collect", "ggml", "testdata", "runtime.c")
	out, err := exec.Command("gcc", "-O2", "-fcf-protection", "-o", program, source, "-pthread", "-ldl", "-DPROGRAM", "-rdynamic").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("NOT CHECKED: a target that execs, and one of 500 threads, through the command (no gcc)")
	}
	if err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	return program
}

func startKnown(t *testing.T, program string) *knownRuntime {
	t.Helper()
	k := &knownRuntime{cmd: exec.Command(program)}
	var err error
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.out = bufio.NewScanner(out)
	var said bytes.Buffer
	k.cmd.Stderr = &said
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = k.in.Close()
		if err := k.cmd.Wait(); err != nil {
			t.Errorf("the known runtime: %v: %s", err, said.String())
		}
	})
	k.expect(t, "ready")
	return k
}

func (k *knownRuntime) expect(t *testing.T, want string) {
	t.Helper()
	if !k.out.Scan() || k.out.Text() != want {
		t.Fatalf("the known runtime says %q (%v), want %q", k.out.Text(), k.out.Err(), want)
	}
}

func (k *knownRuntime) does(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(k.in, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
	k.expect(t, "done")
}

// pid is a flag.
func (k *knownRuntime) pid() []string { return []string{"--pid", strconv.Itoa(k.cmd.Process.Pid)} }

// TestE2ETraceExec has the target become another program: the trace ends by itself with
// what it saw, and says so.
func TestE2ETraceExec(t *testing.T) {
	needsRoot(t)
	program := buildKnown(t)
	k := startKnown(t, program)
	r := beginTraceOf(t, k.pid()...)
	r.attached(t, func() { k.does(t, "decode 30 1 1 0") })
	k.does(t, "decode 200 1 1 1000")
	if _, err := fmt.Fprintf(k.in, "exec %s\n", program); err != nil {
		t.Fatal(err)
	}
	k.expect(t, "ready")
	s := r.left(t, 0)
	k.does(t, "decode 3 1 1 0")
	t.Logf("%d graphs; gaps %+v", s.Coverage.Graphs, s.Gaps)
	if s.Coverage.Graphs == 0 {
		t.Errorf("%d graphs, want those before the exec", s.Coverage.Graphs)
	}
}

// TestE2ETraceManyThreads traces graphs that 500 threads compute.
func TestE2ETraceManyThreads(t *testing.T) {
	needsRoot(t)
	const threads, graphs, steps = 500, 12, 5
	k := startKnown(t, buildKnown(t))
	r := beginTraceOf(t, append(k.pid(), "--level", "barriers")...)
	r.attached(t, func() { k.does(t, "decode 1 1 %d 0", threads) })
	k.does(t, "decode %d 1 %d 0", graphs, threads)
	s := r.stop(t)
	t.Logf("%d graphs, %d partial, %d events, %d rows of threads; gaps %+v", s.Coverage.Graphs, s.Coverage.Partial, s.Coverage.Events, len(s.Threads), s.Gaps)
	// The first ones go by while the operators' probes are set.
	if s.Coverage.Graphs < graphs/2 || s.Coverage.Partial > 2 {
		t.Errorf("%d graphs and %d partial ones, want most of %d", s.Coverage.Graphs, s.Coverage.Partial, graphs)
	}
	if n := s.Coverage.OpsPerToken; n.V != steps || len(s.Threads) != threads {
		t.Errorf("%v operators in a graph on %d lanes, want %d on %d", n, len(s.Threads), steps, threads)
	}
}

// TestE2ETraceInterrupted is a text report of a trace that was interrupted: it ends in
// order, with what was seen.
func TestE2ETraceInterrupted(t *testing.T) {
	needsRoot(t)
	d := drive(t, "npm-new", gguf.Tiny, 1)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &traceRun{}
	r.cmd = exec.CommandContext(testContext(t), path, "trace", "--pid", strconv.Itoa(d.pid), "--duration", "5m", "--force")
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
	d.run(t, tracePrompt, traceTokens)
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGINT) || !strings.Contains(r.stdout.String(), "MUL_MAT") {
		t.Errorf("exit code %d, and a report of %d bytes: %.400s", code, r.stdout.Len(), r.stdout.String())
	}
	if after := d.run(t, tracePrompt, traceTokens); after.Tokens != traceTokens {
		t.Errorf("%d tokens after the trace", after.Tokens)
	}
}
