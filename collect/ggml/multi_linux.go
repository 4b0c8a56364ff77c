//go:build amd64 || arm64

package ggml

import (
	"errors"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// means are how probes are attached: many with one link, and by which PID the kernel
// filters, 0 where programs alone do.
type means struct {
	multi bool
	pid   int
}

// chooseMeans takes the cheapest means that see all threads. Where links of many probes
// filter by a single thread, root attaches one by one; who may not has the kernel not
// filter: other processes with the same files then pass through the programs too.
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

// meansOf are those of this kernel and this process.
func meansOf(pid int, single bool) means {
	return chooseMeans(pid, single, haveMulti(), filtersByProcess(), capabilities()&(1<<capSysAdmin) != 0)
}

// filtersByProcess says that a link of many probes with a PID watches all threads of that
// process. Linux 6.6 to 6.9 watched the main thread alone until 46ba0e49b642 ("bpf: fix
// multi-uprobe PID filtering logic"), which was taken over into some of them; since then a
// PID that cannot be is refused before the file is looked at (libbpf tells them apart so,
// features.c).
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
