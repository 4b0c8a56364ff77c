//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// newest is the layout of GGML since 2024-11.
func newest() *offsets {
	return &offsets{raw: 320, ne: 16, nb: 48, op: 80, src: 152, data: 248, graphNodes: 16, graphCount: 4, mulMatID: 30}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: eBPF programs in the kernel (needs root)")
	}
}

// The kernel's verifier takes every program, for both ways to attach.
func TestE2EProgramsLoad(t *testing.T) {
	needRoot(t)
	m, err := newMaps(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	task, err := kernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	unknown := &offsets{raw: 320, ne: -1, nb: -1, op: -1, src: -1, data: -1, graphNodes: -1, graphCount: -1, mulMatID: -1}
	place := cookie(optrace.OpBegin, 3, 0)
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
			for _, multi := range []bool{true, false} {
				p, err := loadProbe(name, ins, multi)
				if err != nil {
					t.Errorf("%+v", err)
					continue
				}
				p.Close()
			}
		}
	}
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

// The frames of a program and its callbacks are 512 bytes at most together. From Linux 6.13
// on programs of probes have a stack of their own, for which that does not hold; those of
// the type syscall have not.
func TestE2EStackFitsEarlierKernels(t *testing.T) {
	needRoot(t)
	m, err := newMaps(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	place := cookie(optrace.GraphBegin, 3, 0) // the call that asks for it is not for that type
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "graph", Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE,
		Instructions: graph(&code{maps: m, graphs: true, only: &place}, newest()), License: license,
	})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	p.Close()
}

// Kernels of 6.10 and later filter by process; where this one does not, that is known.
func TestE2EFiltersByProcess(t *testing.T) {
	needRoot(t)
	if release := kernelRelease(); !atLeast(release, 6, 10) {
		t.Skip("NOT CHECKED: that links of many probes filter by process (Linux " + release + ")")
	}
	if !filtersByProcess() {
		t.Error("links of many probes are taken to see one thread alone")
	}
}
