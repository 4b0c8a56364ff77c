//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// license is the license of the programs; only GPL-compatible programs may read user memory.
const license = "Dual MIT/GPL"

// Sizes of maps.
const (
	rememberedGraphs = 2048 // the least recently used is evicted; each CPU reserves 128
	blocksUnderWay   = 4096 // disk requests
)

// newMaps creates the maps; ring is the ring buffer's size in bytes, a power of two. The ring
// is larger if its spare room requires it, and smaller if the kernel has no maps of that size:
// before Linux 6.0 a value has at most 4 MiB.
func newMaps(ring int) (*maps, error) {
	m := &maps{size: ring, spare: spare(possibleCPUs())}
	for m.size < 2*m.spare {
		m.size *= 2
	}
	for {
		var err error
		if m.ring, err = ebpf.NewMap(ringSpec(m.size)); err == nil {
			break
		}
		if !errors.Is(err, unix.E2BIG) || m.size/2 < 2*m.spare {
			return nil, fmt.Errorf("make the ring buffer of %d bytes: %w", m.size, err)
		}
		m.size /= 2
	}
	for _, spec := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&m.state, ebpf.MapSpec{Name: "rooftop_state", Type: ebpf.Array, KeySize: 4, ValueSize: stateBytes, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE}},
		{&m.threads, ebpf.MapSpec{Name: "rooftop_threads", Type: ebpf.Array, KeySize: 4, ValueSize: threadSlots * threadSlot, MaxEntries: 1}},
		{&m.graphs, ebpf.MapSpec{Name: "rooftop_graphs", Type: ebpf.LRUHash, KeySize: 16, ValueSize: seenBytes, MaxEntries: rememberedGraphs}},
		{&m.blocks, ebpf.MapSpec{Name: "rooftop_blocks", Type: ebpf.LRUHash, KeySize: 8, ValueSize: 8, MaxEntries: blocksUnderWay}},
		{&m.none, ebpf.MapSpec{Name: "rooftop_none", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1}},
	} {
		made, err := ebpf.NewMap(&spec.spec)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make the map %s: %w", spec.spec.Name, err), m.close())
		}
		*spec.to = made
	}
	page, err := unix.Mmap(m.state.FD(), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map what programs share: %w", err), m.close())
	}
	m.page, m.shared = page, (*state)(unsafe.Pointer(&page[0]))
	return m, nil
}

// ringSpec returns the map of a ring with size bytes of data.
func ringSpec(size int) *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name: "rooftop_ring", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(ringBytes(size)), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE,
	}
}

// close releases the maps.
func (m *maps) close() error {
	var all []error
	if m.page != nil {
		m.shared = nil
		all = append(all, unix.Munmap(m.page))
	}
	for _, one := range []*ebpf.Map{m.ring, m.state, m.threads, m.graphs, m.blocks, m.none} {
		if one != nil {
			all = append(all, one.Close())
		}
	}
	return errors.Join(all...)
}

// setMode sets the recorded details, and the meaning of an unknown target.
func (m *maps) setMode(d optrace.Detail, unknown uint32) {
	atomic.AddUint32(&m.shared.begun, 1) // graphs may have begun unseen
	atomic.StoreUint32(&m.shared.unknown, unknown)
	atomic.StoreUint32(&m.shared.details, uint32(d))
}

// loadProbe loads a program for uprobes; with multi, for many places with one link.
func loadProbe(name string, ins asm.Instructions, multi bool) (*ebpf.Program, error) {
	spec := &ebpf.ProgramSpec{Name: name, Type: ebpf.Kprobe, Instructions: ins, License: license}
	if multi {
		spec.AttachType = ebpf.AttachTraceUprobeMulti
	}
	p, err := ebpf.NewProgram(spec)
	if err != nil {
		return nil, fmt.Errorf("load the program %s: %w", name, err)
	}
	return p, nil
}

// loadTracepoint loads a program for a BTF tracepoint of the kernel.
func loadTracepoint(name string, ins asm.Instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: name,
		Instructions: ins, License: license,
	})
	if err != nil {
		return nil, fmt.Errorf("load the program for %s: %w", name, err)
	}
	return p, nil
}

// loadFaults loads a program for a software event of page faults.
func loadFaults(ins asm.Instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "page_faults", Type: ebpf.PerfEvent, Instructions: ins, License: license})
	if err != nil {
		return nil, fmt.Errorf("load the program for page faults: %w", err)
	}
	return p, nil
}
