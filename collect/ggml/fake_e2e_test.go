//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// built is the paths of the builds of testdata/runtime.c.
type built struct{ program, library, driver string }

// build compiles testdata/runtime.c, or skips the test with a message.
func build(t *testing.T) built {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	b := built{filepath.Join(dir, "program"), filepath.Join(dir, "libggml-cpu.so"), filepath.Join(dir, "driver")}
	for out, flags := range map[string][]string{
		b.program: {"-DPROGRAM", "-rdynamic"}, b.library: {"-fPIC", "-shared"}, b.driver: {"-DDRIVER"},
	} {
		compile(t, out, flags...)
	}
	return b
}

func compile(t *testing.T, out string, flags ...string) {
	t.Helper()
	args := append([]string{"-O2", "-fcf-protection", "-o", out, "testdata/runtime.c", "-pthread", "-ldl"}, flags...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("NOT CHECKED: the known runtime (no gcc)")
		}
		t.Fatalf("gcc: %v\n%s", err, text)
	}
}

// known is a running program of testdata/runtime.c.
type known struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, program string) *known {
	t.Helper()
	return startAs(t, exec.Command(program), nil)
}

// startAs starts a command with system attributes.
func startAs(t *testing.T, cmd *exec.Cmd, how *syscall.SysProcAttr) *known {
	t.Helper()
	cmd.SysProcAttr = how
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := &known{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	k.expect(t, "ready")
	return k
}

func (k *known) expect(t *testing.T, want string) {
	t.Helper()
	if !k.out.Scan() || k.out.Text() != want {
		t.Fatalf("%q, want %q (%v)", k.out.Text(), want, k.out.Err())
	}
}

func (k *known) order(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(k.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// decode computes graphs and waits for them.
func (k *known) decode(t *testing.T, times, tokens, threads, micros int) {
	t.Helper()
	k.order(t, fmt.Sprintf("decode %d %d %d %d", times, tokens, threads, micros))
	k.expect(t, "done")
}

func (k *known) pid() int { return k.cmd.Process.Pid }

func open(t *testing.T, r *binary.Runtime, o Options, d optrace.Detail) *Session {
	t.Helper()
	s, err := Open(r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.SetDetail(d); err != nil {
		t.Fatal(err)
	}
	return s
}

func runtimeOf(t *testing.T, pid int) *binary.Runtime {
	t.Helper()
	r, err := binary.FromProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drained returns all events up to now.
func drained(t *testing.T, s *Session) []optrace.Event { return collect(t, s, 60*time.Millisecond) }

// of filters events by kind.
func of(events []optrace.Event, kinds ...optrace.Kind) []optrace.Event {
	var all []optrace.Event
	for _, e := range events {
		if slices.Contains(kinds, e.Kind) {
			all = append(all, e)
		}
	}
	return all
}

// text formats the event of an operator with its operands.
func text(tb *optrace.Tables, e optrace.Event) string {
	o := tb.Operator(e.Ref)
	out := tb.Tensor(o.Out)
	s := o.Op
	for _, f := range o.Fused {
		s += "+" + f
	}
	if o.Sub != "" {
		s += " " + o.Sub
	}
	s += fmt.Sprintf(" %s[%d %d] <-", out.Name, out.NE[0], out.NE[1])
	for _, in := range o.In {
		x := tb.Tensor(in)
		s += fmt.Sprintf(" %s:%s[%d %d]", x.Name, x.Type, x.NE[0], x.NE[1])
	}
	return s
}

// sequence is the operators of testdata/runtime.c for a batch of five.
var sequence = []string{
	"RMS_NORM+MUL attn_norm-3[64 5] <- inp:f32[64 5] blk.3.attn_norm.weight:f32[64 1]",
	"MUL_MAT Qcur-3[32 5] <- blk.3.attn_q.weight:q4_0[64 32] attn_norm-3:f32[64 5]",
	"MUL_MAT_ID ffn_moe_up-3[16 5] <- blk.3.ffn_up_exps.weight:f16[32 16] Qcur-3 (view):f32[32 5] ffn_moe_topk-3:i32[2 5]",
	"UNARY SILU ffn_act-3[16 5] <- ffn_moe_up-3:f32[16 5]",
	"ADD l_out-3[16 5] <- ffn_act-3:f32[16 5] ffn_moe_up-3:f32[16 5]",
}

// The events match what a known runtime does: both ways to attach, with and without tensors,
// one thread and three.
func TestE2EKnownSequence(t *testing.T) {
	b := build(t)
	for _, single := range []bool{false, true} {
		for _, level := range []optrace.Detail{optrace.LevelOperator, optrace.LevelBarriers} {
			for _, threads := range []int{1, 3} {
				name := fmt.Sprintf("single=%v,level=%v,threads=%d", single, level, threads)
				t.Run(name, func(t *testing.T) { checkSequence(t, b, single, level, threads) })
			}
		}
	}
}

func checkSequence(t *testing.T, b built, single bool, level optrace.Detail, threads int) {
	const graphs, tokens, micros = 4, 5, 2000
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{Single: single}, level)
	k.decode(t, graphs, tokens, threads, micros)
	events := drained(t, s)
	tb := s.Tables()

	lanes := map[uint16][]optrace.Event{}
	for _, e := range of(events, optrace.OpBegin, optrace.FusedBegin) {
		if int(e.Threads) != threads || e.PID != int32(k.pid()) {
			t.Fatalf("%+v", e)
		}
		lanes[e.Thread] = append(lanes[e.Thread], e)
	}
	if len(lanes) != threads {
		t.Errorf("%d lanes", len(lanes))
	}
	for lane, ops := range lanes {
		var got []string
		for _, e := range ops {
			got = append(got, text(tb, e))
		}
		want := slices.Repeat(sequence, graphs)
		if level&optrace.DetailTensor == 0 { // a graph's nodes know nothing of fused ones
			for i, w := range want {
				if strings.HasPrefix(w, "RMS_NORM+MUL") {
					want[i] = "RMS_NORM norm-3[64 5] <- inp:f32[64 5]"
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lane %d: %s", lane, diff)
		}
	}
	for i, e := range lanes[0] {
		if strings.HasPrefix(text(tb, e), "MUL_MAT ") && i+1 < len(lanes[0]) {
			if d := lanes[0][i+1].At - e.At; d < micros*time.Microsecond || d > 20*micros*time.Microsecond {
				t.Errorf("a product of %d us took %v", micros, d)
			}
		}
	}
	for kind, want := range map[optrace.Kind]int{
		optrace.CallBegin: graphs, optrace.CallEnd: graphs, optrace.GraphBegin: graphs, optrace.GraphEnd: graphs,
		optrace.SplitBegin: graphs, optrace.Lost: 0,
	} {
		if got := of(events, kind); len(got) != want {
			t.Errorf("%v: %d, want %d", kind, len(got), want)
		}
	}
	for _, e := range of(events, optrace.CallBegin) {
		if e.N != tokens || e.Ref != uint32(optrace.CallDecode) {
			t.Errorf("%+v", e)
		}
	}
	for _, e := range of(events, optrace.SplitBegin) {
		if tb.Names[e.Ref-1] != "CPU" || e.N != 7 {
			t.Errorf("%+v %v", e, tb.Names)
		}
	}
	if level&optrace.DetailBarrier != 0 {
		if n := len(of(events, optrace.BarrierBegin)); n != graphs*threads*len(sequence) {
			t.Errorf("%d barriers", n)
		}
		if n := len(of(events, optrace.BarrierEnd)); n != graphs*threads*len(sequence) {
			t.Errorf("%d ends of barriers", n)
		}
		checkChoices(t, tb, of(events, optrace.ExpertsChosen), graphs, tokens)
	}
	if !slices.IsSortedFunc(events, func(a, b optrace.Event) int { return int(a.At - b.At) }) {
		t.Error("events are not in order")
	}
	if s.Dropped() != 0 || s.decoder.malformed != 0 || !s.Target().Verified {
		t.Errorf("dropped %d, malformed %d, %+v", s.Dropped(), s.decoder.malformed, s.Target())
	}
	checkGraph(t, tb)
}

// checkChoices checks that token i chose i and i+3 of eight experts, as reported by thread 0.
func checkChoices(t *testing.T, tb *optrace.Tables, events []optrace.Event, graphs, tokens int) {
	t.Helper()
	if len(events) != graphs || len(tb.Experts) != 1 {
		t.Fatalf("%d choices, %d of them distinct", len(events), len(tb.Experts))
	}
	want := optrace.ExpertChoice{Layer: 3, Used: 2, Tokens: tokens}
	for i := range tokens {
		want.IDs = append(want.IDs, int32(i%8), int32((i+3)%8))
	}
	if diff := cmp.Diff(want, tb.Experts[0]); diff != "" {
		t.Error(diff)
	}
}

func checkGraph(t *testing.T, tb *optrace.Tables) {
	t.Helper()
	if len(tb.DAGs) != 1 {
		t.Fatalf("%d graphs", len(tb.DAGs))
	}
	g := tb.DAGs[0]
	name := map[uint64]string{0: ""}
	for _, n := range slices.Concat(g.Leaves, g.Nodes) {
		name[n.Addr] = tb.Tensor(tb.Operator(n.Operator).Out).Name
	}
	var got []string
	for _, n := range g.Nodes {
		line := name[n.Addr] + " <-"
		for _, s := range n.Sources {
			line += " " + name[s]
		}
		if n.View != 0 {
			line += " of " + name[n.View]
		}
		got = append(got, line)
	}
	want := []string{
		"norm-3 <- inp", "attn_norm-3 <- norm-3 blk.3.attn_norm.weight", "Qcur-3 <- blk.3.attn_q.weight attn_norm-3",
		"Qcur-3 (view) <- Qcur-3 of Qcur-3", "ffn_moe_up-3 <- blk.3.ffn_up_exps.weight Qcur-3 (view) ffn_moe_topk-3",
		"ffn_act-3 <- ffn_moe_up-3", "l_out-3 <- ffn_act-3 ffn_moe_up-3",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(g.Leaves) != 5 || g.Truncated != 0 {
		t.Errorf("%d leaves, %d cut off: %s", len(g.Leaves), g.Truncated, diff)
	}
}

// A graph that was rebuilt at the same addresses with other shapes is read again; an unchanged
// one is not.
func TestE2EGraphsChange(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelTensor)
	for _, tokens := range []int{24, 1, 1, 2, 1} {
		k.decode(t, 1, tokens, 1, 0)
	}
	events := drained(t, s)
	var refs []uint32
	for _, e := range of(events, optrace.GraphBegin) {
		refs = append(refs, e.Ref)
	}
	if diff := cmp.Diff([]uint32{1, 2, 2, 3, 2}, refs); diff != "" {
		t.Error(diff)
	}
	for _, e := range of(events, optrace.OpBegin) {
		o := s.Tables().Operator(e.Ref)
		for _, in := range o.In { // sources that no step computes are right as well
			if x := s.Tables().Tensor(in); x.Name == "Qcur-3 (view)" && x.NE[1] != s.Tables().Tensor(o.Out).NE[1] {
				t.Errorf("%s", text(s.Tables(), e))
			}
		}
	}
}

// A thread may have another index, and its graph another number of threads, in the next graph.
func TestE2ELanesOfEachGraph(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelOperator)
	var want []string
	for _, threads := range []int{1, 3, 2, 3, 1} {
		k.decode(t, 2, 1, threads, 0)
		for range 2 {
			want = append(want, fmt.Sprint("0 of ", threads, ", ", threads, " lanes"))
		}
	}
	var got []string
	seen := map[uint16]bool{}
	var last optrace.Event // operator of the thread that began the graph
	tell := func() {
		if last.TID != 0 {
			got = append(got, fmt.Sprint(last.Thread, " of ", last.Threads, ", ", len(seen), " lanes"))
		}
		clear(seen)
		last = optrace.Event{}
	}
	for _, e := range of(drained(t, s), optrace.GraphBegin, optrace.OpBegin, optrace.FusedBegin) {
		if e.Kind == optrace.GraphBegin {
			tell()
			continue
		}
		seen[e.Thread] = true
		if e.TID == int32(k.pid()) {
			last = e
		}
	}
	tell()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lanes of graphs (-want +got):\n%s", diff)
	}
}

func TestE2EFiveHundredThreads(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelBarriers|optrace.DetailSched)
	k.decode(t, 2, 3, 500, 0)
	events := drained(t, s)
	lanes, threads := map[uint16]int{}, map[int32]bool{}
	for _, e := range of(events, optrace.OpBegin, optrace.FusedBegin) {
		lanes[e.Thread]++
		threads[e.TID] = true
	}
	if len(lanes) != 500 || len(threads) != 999 || s.Dropped() != 0 {
		t.Errorf("%d lanes, %d threads, %d dropped", len(lanes), len(threads), s.Dropped())
	}
	for lane, n := range lanes {
		if n != 2*len(sequence) {
			t.Errorf("lane %d: %d operators", lane, n)
		}
	}
	if n := len(of(events, optrace.SwitchIn)); n < 1000 {
		t.Errorf("%d switches", n)
	}
}

func TestE2ETargetEnds(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelTensor)
	k.decode(t, 1, 1, 1, 0)
	k.order(t, "quit")
	k.cmd.Wait()
	var events []optrace.Event
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		more, err := s.Next(ctx)
		events = append(events, more...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(of(events, optrace.OpBegin)) != 4 || events[len(events)-1].Kind != optrace.TargetExit {
		t.Errorf("%+v", events)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// If the target has ended when more is to be traced, the error says so.
func TestE2ETargetEndsBeforeMore(t *testing.T) {
	b := build(t)
	for _, single := range []bool{false, true} {
		k := start(t, b.program)
		r := runtimeOf(t, k.pid())
		s := open(t, r, Options{Single: single}, optrace.LevelToken)
		k.cmd.Process.Kill()
		k.cmd.Wait()
		if err := s.SetDetail(optrace.LevelTensor); !errors.Is(err, ErrEnded) {
			t.Errorf("single=%v: %v", single, err)
		}
		if s, err := Open(r, Options{Single: single}); err == nil {
			t.Error("a process that is gone was attached to")
			s.Close()
		}
	}
}

// A target that executes a program, even the same one, is reported, and its trace ends then.
func TestE2ETargetExecs(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelTensor)
	k.decode(t, 1, 1, 1, 0)
	k.order(t, "exec "+b.program)
	k.expect(t, "ready")
	if events := drained(t, s); len(of(events, optrace.TargetExec)) != 1 {
		t.Errorf("%+v", events)
	}
}

// By file: every process that computes with it is traced.
func TestE2EByFile(t *testing.T) {
	b := build(t)
	r, err := binary.FromFile(b.library)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, r, Options{}, optrace.LevelTensor)
	want, seen := map[int]int{}, map[int]int{}
	for range 2 {
		k := start(t, b.driver)
		k.order(t, "load "+b.library)
		k.expect(t, "done")
		k.decode(t, 1, 5, 1, 0)
		want[k.pid()] = 4
	}
	for _, e := range of(drained(t, s), optrace.OpBegin) {
		seen[int(e.PID)]++
		if got := text(s.Tables(), e); !slices.Contains(sequence, got) {
			t.Error(got)
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// A file that was replaced after the process mapped it is probed as it is mapped.
func TestE2EUpgradedOnDisk(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	compile(t, b.program+".new", "-DPROGRAM", "-rdynamic", "-O0")
	if err := os.Rename(b.program+".new", b.program); err != nil {
		t.Fatal(err)
	}
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelTensor)
	k.decode(t, 1, 5, 1, 0)
	ops := of(drained(t, s), optrace.OpBegin, optrace.FusedBegin)
	if len(ops) != len(sequence) {
		t.Fatalf("%d operators", len(ops))
	}
	for i, e := range ops {
		if got := text(s.Tables(), e); got != sequence[i] {
			t.Error(got)
		}
	}
}

// A file that is replaced while it is probed, or after it was read, is not probed in its new
// form: the old offsets would be in the middle of its instructions.
func TestE2EReplacedWhileWatched(t *testing.T) {
	b := build(t)
	upgrade := func() {
		compile(t, b.library+".new", "-fPIC", "-shared", "-O0")
		if err := os.Rename(b.library+".new", b.library); err != nil {
			t.Fatal(err)
		}
	}
	r, err := binary.FromFile(b.library)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, r, Options{}, optrace.LevelToken)
	upgrade()
	if err := s.SetDetail(optrace.LevelTensor); err != nil {
		t.Fatal(err)
	}
	k := start(t, b.driver)
	k.order(t, "load "+b.library)
	k.expect(t, "done")
	k.decode(t, 3, 5, 2, 0)
	if events := of(drained(t, s), optrace.OpBegin, optrace.GraphBegin, optrace.CallBegin); len(events) != 0 {
		t.Errorf("%d events of another file, the first %+v", len(events), events[0])
	}
	if _, err := Open(r, Options{}); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("a file that is another by now: %v", err)
	}
}

// A C++ exception from an operator passes through all probed functions.
func TestE2EExceptionsPass(t *testing.T) {
	b := build(t)
	for _, single := range []bool{false, true} {
		k := start(t, b.program)
		open(t, runtimeOf(t, k.pid()), Options{Single: single}, optrace.LevelAll)
		k.order(t, "unwind")
		k.expect(t, "whole")
		k.expect(t, "done")
	}
}

// Records without room are counted and reported; nothing else breaks.
func TestE2ELosses(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{Ring: minRing}, optrace.LevelBarriers)
	k.decode(t, 2000, 1, 1, 0)
	var lost int64
	for _, e := range of(drained(t, s), optrace.Lost) {
		lost += e.N
	}
	if s.Dropped() == 0 || lost != s.Dropped() {
		t.Errorf("%d reported, %d dropped", lost, s.Dropped())
	}
	k.decode(t, 3, 7, 1, 0)
	refs := map[uint32]bool{}
	for _, e := range of(drained(t, s), optrace.GraphBegin) {
		refs[e.Ref] = true
	}
	if len(refs) != 1 || refs[0] {
		t.Errorf("graphs after the losses: %v", refs)
	}
}

// The target's code has exactly the probes of the requested details, and none after Close.
func TestE2EDetailsComeAndGo(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	r := runtimeOf(t, k.pid())
	clean := breakpoints(t, r)
	if len(clean) != 0 {
		t.Fatalf("%v before", clean)
	}
	s := open(t, r, Options{}, optrace.DetailToken)
	for i, step := range []struct {
		detail optrace.Detail
		ops    int
	}{{optrace.LevelTensor, 4}, {optrace.LevelGraph, 0}, {optrace.LevelAll, 4}, {optrace.LevelToken, 0}, {optrace.LevelOperator, 4}} {
		begin := time.Now()
		if err := s.SetDetail(step.detail); err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %v", step.detail, time.Since(begin))
		k.decode(t, 1, 5, 1, 0)
		if n := len(of(drained(t, s), optrace.OpBegin)); n != step.ops {
			t.Errorf("step %d: %d operators, want %d", i, n, step.ops)
		}
		hook := slices.ContainsFunc(breakpoints(t, r), func(p string) bool { return strings.Contains(p, "extra_compute") })
		if hook != (step.ops > 0) {
			t.Errorf("step %d: a breakpoint at the hook is %v", i, hook)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := changedText(t, r); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	k.decode(t, 3, 5, 3, 0)
}

// breakpoints returns the places at which the target's memory differs from its file.
func breakpoints(t *testing.T, r *binary.Runtime) []string {
	t.Helper()
	maps, err := binary.Mappings(r.PID)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i := range r.Places {
		p := &r.Places[i]
		file, err := os.ReadFile(p.Image.Open)
		if err != nil {
			t.Fatal(err)
		}
		at := p.File + p.Site.Offset
		for _, m := range maps {
			if !m.Code || !strings.HasPrefix(m.Path, p.Image.Path) {
				continue
			}
			if at < m.Offset || at >= m.Offset+m.End-m.Begin {
				continue
			}
			var now [1]byte
			if err := readMemory(r.PID, m.Begin+at-m.Offset, now[:]); err != nil {
				t.Fatal(err)
			}
			if now[0] != file[at] {
				found = append(found, p.Symbol)
			}
		}
	}
	return found
}

// A hook that is never called is noticed, and the next one is used; names are known if they
// come from graphs that were seen before.
func TestE2EHookIsGoneAround(t *testing.T) {
	needRoot(t)
	program := filepath.Join(t.TempDir(), "program")
	compile(t, program, "-DPROGRAM", "-DAROUND", "-rdynamic")
	for _, level := range []optrace.Detail{optrace.LevelTensor, optrace.LevelOperator} {
		k := start(t, program)
		s := open(t, runtimeOf(t, k.pid()), Options{}, level)
		k.decode(t, graphsWithoutOperators, 5, 1, 0)
		time.Sleep(checkEvery)
		if n := len(of(drained(t, s), optrace.OpBegin)); n != 0 {
			t.Errorf("%v: %d operators", level, n)
		}
		if gaps := s.Gaps(); !slices.ContainsFunc(gaps, func(g optrace.Gap) bool { return strings.Contains(g.Why, "never called") }) {
			t.Errorf("%v: %+v", level, gaps)
		}
		k.decode(t, 1, 5, 1, 0)
		drained(t, s)
		k.decode(t, 2, 5, 1, 0)
		var got []string
		for _, e := range of(drained(t, s), optrace.OpBegin) {
			got = append(got, s.Tables().Operator(e.Ref).Op)
		}
		want := slices.Repeat([]string{"RMS_NORM", "MUL", "MUL_MAT", "MUL_MAT_ID", "UNARY", "ADD"}, 2)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", level, diff)
		}
	}
}

// watcherOf is the environment variable with the process to trace, for this test run as another
// process.
const watcherOf = "ROOFTOP_TEST_WATCH"

// TestMain runs the tests, or one of the helper processes of tests.
func TestMain(m *testing.M) {
	var pid int
	if n, _ := fmt.Sscan(os.Getenv(watcherOf), &pid); n == 1 {
		watch(pid)
	}
	if n, _ := fmt.Sscan(os.Getenv(attemptOf), &pid); n == 1 {
		attempt(pid)
		return
	}
	if program := os.Getenv(namespaceOf); program != "" {
		if err := inNamespace(program); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// watch attaches at every detail and reports it, until it is killed.
func watch(pid int) {
	r, err := binary.FromProcess(pid)
	if err == nil {
		var s *Session
		if s, err = Open(r, Options{}); err == nil {
			err = s.SetDetail(optrace.LevelAll)
		}
	}
	fmt.Println("watching", err)
	select {}
}

// After a kill -9 of the tracer the target's code is unchanged, and it continues.
func TestE2EKilledWatcher(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	r := runtimeOf(t, k.pid())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", watcherOf, k.pid()))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "watching <nil>\n" {
		t.Fatal(line)
	}
	k.decode(t, 5, 5, 2, 0)
	if n, links := len(breakpoints(t, r)), linksOf(t, b.program); n < 5 || haveMulti() && links < 5 {
		t.Errorf("%d places are watched with %d links", n, links)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	deadline := time.Now().Add(3 * time.Minute)
	for len(breakpoints(t, r)) != 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	for linksOf(t, b.program) != 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if left, links := changedText(t, r), linksOf(t, b.program); len(left) != 0 || links != 0 {
		t.Errorf("%v and %d links are left", left, links)
	}
	k.decode(t, 5, 5, 2, 0)
}
