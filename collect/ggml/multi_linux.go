//go:build amd64 || arm64

package ggml

import (
	"errors"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// means is how probes are attached: with one link for many or not, and the PID by which the
// kernel filters, 0 if only the programs filter.
type means struct {
	multi bool
	pid   int
}

// chooseMeans chooses the cheapest way that covers all threads. If links of many probes filter
// by a single thread, root attaches probes one by one; for other users the kernel does not
// filter, so other processes with the same files run the programs too.
func chooseMeans(pid int, single, multi, byProcess, admin bool) means {
	switch {
	case single || !multi:
		return means{pid: pid}
	case pid == 0 || byProcess:
		return means{true, pid}
	case admin:
		return means{pid: pid}
	}
	return means{multi: true}
}

// meansOf chooses for this kernel and the privileges of this process.
func meansOf(pid int, single bool) means {
	return chooseMeans(pid, single, haveMulti(), filtersByProcess(), capabilities()&(1<<capSysAdmin) != 0)
}

// filtersByProcess reports whether a link of many probes with a PID covers all threads of that
// process. Linux 6.6 to 6.9 covered only the main thread until 46ba0e49b642 ("bpf: fix
// multi-uprobe PID filtering logic"), which was backported to some of them; since then an
// impossible PID is refused before the file is checked (libbpf distinguishes them in the same
// way, features.c).
func filtersByProcess() bool {
	p, err := ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, Instructions: tiny(), License: license,
	}, ebpf.ProgramOptions{LogDisabled: true})
	if err != nil {
		return false
	}
	defer p.Close()
	folder, err := link.OpenExecutable("/") // no file: nothing is attached in any case
	if err != nil {
		return false
	}
	l, err := folder.UprobeMulti(nil, p, &link.UprobeMultiOptions{Addresses: []uint64{1}, PID: math.MaxUint32})
	if err == nil {
		_ = l.Close()
	}
	return errors.Is(err, unix.EINVAL)
}
