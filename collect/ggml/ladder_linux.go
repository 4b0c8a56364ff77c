//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// Capabilities (include/uapi/linux/capability.h).
const (
	capSysAdmin  = 21
	capSysPtrace = 19
	capPerfmon   = 38
	capBPF       = 39
)

// oldestMajor is the major version of the oldest supported kernel; oldestMinor depends on the
// architecture.
const oldestMajor = 5

// setcap is the command that grants the capabilities permanently.
const setcap = `sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep "$(command -v rooftop)"`

// Ladder checks what tracing needs by loading small programs, without attaching them. The rungs
// are in the order in which to fix them.
func Ladder() []Rung {
	mayReadItself()
	return []Rung{
		kernelRung(), privilegesRung(), ringRung(), programRung(), memoryRung(), multiRung(), typesRung(), schedulerRung(), paranoidRung(), pmuRung(),
	}
}

// rung returns the rung for the result of a check.
func rung(name string, needed bool, err error, found, missing, next string) Rung {
	if err == nil {
		return Rung{Name: name, OK: true, Needed: needed, Found: found}
	}
	return Rung{Name: name, Needed: needed, Found: shortError(err), Missing: missing, Next: next}
}

// shortError returns the most telling part of an error, the last one.
func shortError(err error) string {
	for _, known := range []error{unix.EPERM, unix.EACCES, unix.ENOENT, unix.ENOSYS, unix.EINVAL, unix.EOPNOTSUPP} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

func kernelRung() Rung {
	release := kernelRelease()
	var err error
	if !atLeast(release, oldestMajor, oldestMinor) {
		err = fmt.Errorf("Linux %s", release) //nolint:staticcheck // a name
	}
	return rung("kernel", true, err, "Linux "+release+" "+runtime.GOARCH,
		fmt.Sprintf("reading graphs needs Linux %d.%d", oldestMajor, oldestMinor), "install a newer kernel")
}

// atLeast reports whether a release is at least a version.
func atLeast(release string, major, minor int) bool {
	a, rest, _ := strings.Cut(release, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, err1 := strconv.Atoi(a)
	if i := strings.IndexFunc(b, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		b = b[:i]
	}
	y, err2 := strconv.Atoi(b)
	return err1 == nil && err2 == nil && (x > major || x == major && y >= minor)
}

func privilegesRung() Rung {
	caps := capabilities()
	have := func(c uint) bool { return caps&(1<<c) != 0 }
	found := fmt.Sprintf("user %d", os.Geteuid())
	var missing []string
	if !have(capSysAdmin) {
		for _, c := range []struct {
			bit  uint
			name string
		}{{capBPF, "CAP_BPF"}, {capPerfmon, "CAP_PERFMON"}} {
			if have(c.bit) {
				found += " " + c.name
			} else {
				missing = append(missing, c.name)
			}
		}
	} else {
		found += " CAP_SYS_ADMIN"
	}
	if len(missing) == 0 {
		return Rung{Name: "privileges", OK: true, Needed: true, Found: found}
	}
	return Rung{Name: "privileges", Needed: true, Found: found, Missing: "everything: " + strings.Join(missing, " and ") + " or root", Next: setcap}
}

// capabilities returns the effective capabilities of this process, 0 if they cannot be read.
func capabilities() uint64 {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if unix.Capget(&h, &d[0]) != nil {
		return 0
	}
	return uint64(d[1].Effective)<<32 | uint64(d[0].Effective)
}

func ringRung() Rung {
	m, err := ebpf.NewMap(ringSpec(os.Getpagesize()))
	if err == nil {
		err = m.Close()
	}
	return rung("ring buffer", true, err, "a small one was made", "no event reaches rooftop", setcap)
}

// tiny returns the smallest program that does what all probes do: it reads user memory, which
// is reserved for GPL-compatible programs of privileged processes.
func tiny() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -8), asm.Mov.Imm(asm.R2, 8), asm.Mov.Imm(asm.R3, 0),
		asm.FnProbeReadUser.Call(),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
	}
}

// load returns why a program cannot be loaded, nil if it can.
func load(spec *ebpf.ProgramSpec) error {
	spec.License = license
	p, err := ebpf.NewProgramWithOptions(spec, ebpf.ProgramOptions{LogDisabled: true})
	if err != nil {
		return err
	}
	return p.Close()
}

func programRung() Rung {
	err := load(&ebpf.ProgramSpec{Type: ebpf.Kprobe, Instructions: tiny()})
	return rung("programs", true, err, "a program that reads user memory was loaded", "nothing can be attached", setcap)
}

func memoryRung() Rung {
	err := error(nil)
	if caps := capabilities(); caps&(1<<capSysPtrace|1<<capSysAdmin) == 0 {
		err = errors.New("neither CAP_SYS_PTRACE nor CAP_SYS_ADMIN")
	}
	return rung("memory", false, err, "CAP_SYS_PTRACE", "names and types of weights of other users' processes", setcap)
}

func multiRung() Rung {
	err := features.HaveBPFLinkUprobeMulti()
	if err == nil {
		err = load(&ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, Instructions: tiny()})
	}
	missing, next := "probes are attached one by one, which root alone may do", "install Linux 6.6 or later"
	if errors.Is(err, os.ErrPermission) {
		next = setcap
	}
	return rung("uprobe_multi", capabilities()&(1<<capSysAdmin) == 0, err, "many probes with one link", missing, next)
}

func typesRung() Rung {
	_, err := kernelTypes()
	return rung("BTF", false, err, "/sys/kernel/btf/vmlinux", "time off the CPU, system calls, block I/O and counters of threads",
		"use a kernel built with CONFIG_DEBUG_INFO_BTF=y")
}

func schedulerRung() Rung {
	err := load(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_switch",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	next := setcap
	if !errors.Is(err, os.ErrPermission) {
		next = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"
	}
	return rung("scheduler", false, err, "a program for sched_switch was loaded, tracefs not needed", "time on and off the CPU, and which processes had it", next)
}

// paranoidPath is the setting that restricts who may open performance events.
const paranoidPath = "/proc/sys/kernel/perf_event_paranoid"

func paranoidRung() Rung {
	raw, err := os.ReadFile(paranoidPath)
	value := strings.TrimSpace(string(raw))
	level, bad := strconv.Atoi(value)
	if err == nil && bad == nil && level > 0 && capabilities()&(1<<capPerfmon|1<<capSysAdmin) == 0 {
		err = fmt.Errorf("%d, and no CAP_PERFMON", level)
	}
	return rung("paranoid", false, err, "perf_event_paranoid "+value, "page faults one by one", "sudo sysctl kernel.perf_event_paranoid=0")
}

func pmuRung() Rung {
	err := havePMU()
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		err = errors.New("this machine exposes none")
	}
	next := "run on bare metal, or give the virtual machine a PMU (KVM: -cpu host,pmu=on)"
	if errors.Is(err, os.ErrPermission) {
		next = "sudo sysctl kernel.perf_event_paranoid=0"
	}
	return rung("PMU", false, err, "instructions can be counted",
		"instructions, cycles and cache misses; bounds are estimated from the roofline (est)", next)
}

// mayReadItself lets this process read its own files in /proc, because the library looks up the
// kernel's version in its own memory. They belong to root if the process has its capabilities
// from its file (proc(5), PR_SET_DUMPABLE in prctl(2)). Other processes of the user still may
// not trace it without those capabilities (ptrace(2), access mode checking).
func mayReadItself() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }

// permitted returns why nothing can be traced, in one sentence; nil if it can.
func permitted() error {
	mayReadItself()
	for _, r := range []Rung{kernelRung(), privilegesRung(), ringRung(), programRung(), multiRung()} {
		if r.Needed && !r.OK {
			return fmt.Errorf("%w: %s (%s) is required to trace a process with eBPF; fix: %s", ErrPrivileges, r.Name, r.Found, r.Next)
		}
	}
	return nil
}

// haveMulti reports whether one link can hold many probes.
func haveMulti() bool { return multiRung().OK }
