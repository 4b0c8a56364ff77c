package binary

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// capSysPtrace is CAP_SYS_PTRACE (include/uapi/linux/capability.h).
const capSysPtrace = 19

// unreadable returns why the mapped files of a process cannot be read, and what to do. The
// kernel shows them to processes of the same user, and to those with CAP_SYS_PTRACE over the
// process (ptrace(2), access mode checking); security modules may refuse both. root is the
// mount point of procfs.
func unreadable(root string) error {
	user, capabilities, err := self(root)
	switch {
	case err == nil && capabilities&(1<<capSysPtrace) != 0:
		return errors.New("its mapped files may not be read, although this user has CAP_SYS_PTRACE: it is not of this container, or the system protects it (SELinux, AppArmor); run rooftop on the host itself, or give the process that computes; 'rooftop doctor' shows what is permitted here")
	case err == nil && user == 0:
		return errors.New("its mapped files may not be read: root has no CAP_SYS_PTRACE here, as in most containers; run rooftop on the host, or give the container CAP_SYS_PTRACE, CAP_BPF and CAP_PERFMON; 'rooftop doctor' shows which are missing")
	}
	return errors.New("its mapped files may not be read: that needs its own user or CAP_SYS_PTRACE, and tracing it needs CAP_BPF and CAP_PERFMON; run as root, or as 'rooftop doctor' says")
}

// self returns the effective user and capabilities of this process (proc(5), /proc/PID/status).
func self(root string) (user int, capabilities uint64, err error) {
	raw, err := os.ReadFile(filepath.Join(root, "self", "status"))
	if err != nil {
		return 0, 0, err
	}
	user = -1
	for line := range strings.Lines(string(raw)) {
		name, rest, _ := strings.Cut(line, ":")
		switch fields := strings.Fields(rest); {
		case name == "Uid" && len(fields) > 1: // real, effective, …
			user, err = strconv.Atoi(fields[1])
		case name == "CapEff" && len(fields) > 0:
			capabilities, err = strconv.ParseUint(fields[0], 16, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return user, capabilities, nil
}
