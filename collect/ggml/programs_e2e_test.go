//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// newest returns the layout of GGML since 2024-11.
func newest() *offsets {
	return &offsets{raw: 320, mulMatID: 30, Layout: layouts.Layout{NE: 16, NB: 48, Op: 80, Src: 152, Data: 248, GraphNodes: 16, GraphCount: 4}}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: eBPF programs in the kernel (needs root)")
	}
}

// The kernel's verifier accepts every program of a probe, for both ways to attach.
func TestE2EProgramsLoad(t *testing.T) {
	needRoot(t)
	task, err := kernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	unknown := &offsets{raw: 320, mulMatID: -1, Layout: layouts.Layout{NE: -1, NB: -1, Op: -1, Src: -1, Data: -1, GraphNodes: -1, GraphCount: -1}}
	place := cookie(optrace.OpBegin, 3, 0)
	for _, multi := range []bool{true, false} {
		m, err := newMaps(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.close()
		for i, o := range []*offsets{newest(), unknown, newest()} {
			with := func() *code { return &code{maps: m, graphs: true} }
			if i == 2 {
				with = func() *code { return &code{maps: m, only: &place} }
			}
			for name, ins := range map[string]asm.Instructions{
				"op": operator(with(), o, false, task), "op_bare": operator(with(), o, false, nil), "fused": operator(with(), o, true, task),
				"mark": mark(with()), "call": call(with()), "split": split(with(), o), "graph": graph(with(), o),
				"set": transfer(with(), o, 0, 3), "get_async": transfer(with(), o, 1, 4), "copy": transfer(with(), o, 0, -1),
			} {
				p, err := loadProbe(name, ins, multi)
				if err != nil {
					t.Errorf("%+v", err)
					continue
				}
				checkStack(t, name, p)
				p.Close()
			}
		}
	}
}

// checkStack searches machine code for the use of a CPU's stack: its address is the sum of a
// known one and of this CPU's data area.
func checkStack(t *testing.T, name string, p *ebpf.Program) {
	t.Helper()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	if code, ok := info.JitedInsns(); ok && runtime.GOARCH == "amd64" && bytes.Contains(code, []byte{0x65, 0x4c, 0x03, 0x0c, 0x25}) { // add r9, gs:
		t.Errorf("%s takes the stack of its CPU, which others take when it is preempted", name)
	}
}

// The kernel's verifier accepts every program for tracepoints and events of the kernel.
func TestE2EProgramsOfTheKernelLoad(t *testing.T) {
	needRoot(t)
	task, err := kernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMaps(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	for name, ins := range map[string]asm.Instructions{
		"sched_switch": switches(m, task), "sched_wakeup": wakeUps(m, task),
		"sys_enter": syscalls(m, optrace.SyscallBegin), "sys_exit": syscalls(m, optrace.SyscallEnd),
		"block_io_start": blockStart(m), "block_rq_issue": blockBegin(m, task), "block_rq_complete": blockEnd(m, task),
		"sched_process_exec": execs(m),
	} {
		p, err := loadTracepoint(name, ins)
		if name == "block_io_start" && !atLeast(kernelRelease(), 6, 4) && err != nil {
			continue // there is none, and a gap says so
		}
		if err != nil {
			t.Errorf("%+v", err)
			continue
		}
		p.Close()
	}
	for _, major := range []bool{false, true} {
		p, err := loadFaults(faults(m, major))
		if err != nil {
			t.Errorf("%+v", err)
			continue
		}
		p.Close()
	}
}

// graphOf returns the program of a graph as a program that can be run directly, with its maps.
// Since Linux 6.13 such a program has no stack of its own, unlike those of probes. It loads if
// its frame and that of a callback have at most 512 bytes together, which earlier kernels
// require.
func graphOf(t *testing.T) (*ebpf.Program, *maps) {
	t.Helper()
	needRoot(t)
	m, err := newMaps(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.close() })
	m.none.Close()
	m.none = nil                              // nor may this type call others
	place := cookie(optrace.GraphBegin, 3, 0) // the call that asks for it is not for this type
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "graph", Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE,
		Instructions: graph(&code{maps: m, graphs: true, only: &place}, newest()), License: license,
	})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() { p.Close() })
	return p, m
}

// made is a graph in this process.
type made struct {
	head  [24]byte
	nodes []*node
}

type node struct {
	_  [16]byte
	ne [4]int64
	_  [320]byte
}

// begin runs the program on the graph, and returns how many of its nodes were written.
func (g *made) begin(t *testing.T, p *ebpf.Program, r *ring) (written int) {
	t.Helper()
	binary.NativeEndian.PutUint32(g.head[4:], uint32(len(g.nodes)))
	binary.NativeEndian.PutUint64(g.head[16:], uint64(uintptr(unsafe.Pointer(&g.nodes[0]))))
	registers := make([]byte, 168)
	binary.NativeEndian.PutUint64(registers[argumentOffsets[0]:], uint64(uintptr(unsafe.Pointer(g))))
	if _, err := p.Run(&ebpf.RunOptions{Context: registers}); err != nil {
		t.Fatal(err)
	}
	var last header
	n := 0
	if _, err := r.drain(func(b []byte) { n++; parseHeader(b, &last) }); err != nil {
		t.Fatal(err)
	}
	if optrace.Kind(last.kind) != optrace.GraphBegin || last.n != int64(len(g.nodes)) || int(last.extra) != n-1 {
		t.Fatalf("%d records, the last %+v", n, last)
	}
	return n - 1
}

// Each check of a graph with many layers covers one part.
func TestE2EGraphsAreLookedAtInParts(t *testing.T) {
	p, m := graphOf(t)
	r, err := mapRing(m.ring.FD(), m.size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	const layers, each = 20, 30
	for _, size := range []int{1, 2, 7, 63, 64, 65, 128, 200, 511, 512, layers * each} {
		g := &made{}
		for range size {
			g.nodes = append(g.nodes, &node{ne: [4]int64{64, 1, 1, 1}})
		}
		for range 2 {
			if n := g.begin(t, p, r); n != size {
				t.Errorf("%d nodes: a new graph wrote %d", size, n)
			}
			again := 0 // a node cannot be read while the kernel moves its page, and its graph is written again
			for range 3 * lookParts {
				if n := g.begin(t, p, r); n != 0 {
					again++
				}
			}
			if again > 1 {
				t.Errorf("%d nodes: a known graph was written %d times", size, again)
			}
			for _, x := range g.nodes {
				x.ne[1]++ // another number of tokens
			}
		}
		g.begin(t, p, r)
		for at := 0; at+4 <= size; at += 4 * each { // what one layer has
			for _, x := range g.nodes[at : at+4] {
				x.ne[1]++
			}
			seen := 0
			for seen < lookParts && g.begin(t, p, r) == 0 {
				seen++
			}
			if seen == lookParts {
				t.Errorf("%d nodes: what changed at %d was not seen", size, at)
			}
		}
		for at := range g.nodes { // what each layer has
			if at%each < 4 {
				g.nodes[at].ne[2]++
			}
		}
		if n := g.begin(t, p, r); n != size {
			t.Errorf("%d nodes: what changed in all layers was not seen at once", size)
		}
		g.begin(t, p, r)
		for _, x := range g.nodes[max(size-10, 0):] { // another number of outputs
			x.ne[1]++
		}
		if n := g.begin(t, p, r); n != size {
			t.Errorf("%d nodes: what changed at the end was not seen at once", size)
		}
		if size > 1 { // fewer parts than the one whose turn it is
			g.nodes = g.nodes[:max(size/8, 1)]
			if n := g.begin(t, p, r); n != len(g.nodes) {
				t.Errorf("%d nodes of %d: wrote %d", len(g.nodes), size, n)
			}
		}
	}
}

// Kernels since 6.10 filter by process; the test requires that filtersByProcess reports it.
func TestE2EFiltersByProcess(t *testing.T) {
	needRoot(t)
	if release := kernelRelease(); !atLeast(release, 6, 10) {
		t.Skip("NOT CHECKED: that links of many probes filter by process (Linux " + release + ")")
	}
	if !filtersByProcess() {
		t.Error("links of many probes are taken to see one thread alone")
	}
}
