package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// BecomeServer turns this process into a server where rooftop started it for that
// purpose, and does nothing else. Programs, and test programs, that start servers
// call it before anything else.
func BecomeServer() {
	if len(os.Args) != 2 || os.Args[1] != gateFlag {
		return
	}
	// Niceness and processors are a thread's, and exec keeps those of the thread
	// that calls it.
	runtime.LockOSThread()
	closeOnExec()
	gate := os.NewFile(gateFD, "gate")
	if err := pass(gate); err != nil {
		_ = json.NewEncoder(gate).Encode(gateAnswer{Err: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// closeOnExec keeps everything but the standard streams from the server: what
// rooftop was given itself, a script's lock or pipe, would be held as long as it runs.
func closeOnExec() {
	if unix.CloseRange(gateFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, one := range list {
		if fd, err := strconv.Atoi(one.Name()); err == nil && fd >= gateFD {
			syscall.CloseOnExec(fd)
		}
	}
}

// pass waits at the gate and becomes the server. It returns where it is not let
// through, or cannot.
func pass(gate *os.File) error {
	orders := json.NewDecoder(gate)
	var order gateOrder
	if err := orders.Decode(&order); err != nil || order.Launch == nil {
		return fmt.Errorf("no launch: %w", err)
	}
	l := order.Launch
	if err := l.assume(); err != nil {
		return err
	}
	program, err := l.program()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(gate).Encode(gateAnswer{}); err != nil {
		return err
	}
	if err := orders.Decode(&order); errors.Is(err, io.EOF) || err == nil && !order.Go {
		return nil // it was only asked whether it could
	} else if err != nil {
		return err
	}
	return explainExec(program, syscall.Exec(program, l.Argv, l.Env))
}

func explainExec(program string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s has no #! line and is no program", program)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%s: command line and environment are too long", program)
	}
	return fmt.Errorf("%s: %w", program, err)
}

// assume takes on what the server is to have.
func (l *Launch) assume() error {
	if !l.Inherit {
		if err := errors.Join(l.assumeLimits(), l.assumeScore(), l.assumeProcessors()); err != nil {
			return err
		}
	}
	if err := os.Chdir(l.Cwd); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if l.Inherit {
		return nil
	}
	if l.Umask >= 0 {
		syscall.Umask(l.Umask)
	}
	return l.assumeOwner()
}

// resources are the limits by their names in limits.conf(5).
var resources = map[string]int{
	"cpu": unix.RLIMIT_CPU, "fsize": unix.RLIMIT_FSIZE, "data": unix.RLIMIT_DATA, "stack": unix.RLIMIT_STACK,
	"core": unix.RLIMIT_CORE, "rss": unix.RLIMIT_RSS, "nproc": unix.RLIMIT_NPROC, "nofile": unix.RLIMIT_NOFILE,
	"memlock": unix.RLIMIT_MEMLOCK, "as": unix.RLIMIT_AS, "locks": unix.RLIMIT_LOCKS, "sigpending": unix.RLIMIT_SIGPENDING,
	"msgqueue": unix.RLIMIT_MSGQUEUE, "nice": unix.RLIMIT_NICE, "rtprio": unix.RLIMIT_RTPRIO, "rttime": unix.RLIMIT_RTTIME,
}

func (l *Launch) assumeLimits() error {
	for _, name := range slices.Sorted(maps.Keys(l.Limit)) {
		resource, known := resources[name]
		if !known {
			continue
		}
		want := syscall.Rlimit{Cur: limitValue(l.Limit[name][0]), Max: limitValue(l.Limit[name][1])}
		var have syscall.Rlimit
		// Go raises the limit of open files of its own programs and lowers it again
		// for others, unless it is set.
		if err := syscall.Getrlimit(resource, &have); err == nil && have == want && resource != unix.RLIMIT_NOFILE {
			continue
		}
		if err := syscall.Setrlimit(resource, &want); err != nil {
			return fmt.Errorf("limit %s of %s: %w", name, spelledLimit(l.Limit[name][1]), err)
		}
	}
	return nil
}

func limitValue(n int64) uint64 {
	if n < 0 {
		return unix.RLIM_INFINITY
	}
	return uint64(n)
}

func spelledLimit(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func (l *Launch) assumeScore() error {
	const path = "/proc/self/oom_score_adj"
	if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(l.OOMScoreAdj) {
		return nil
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(l.OOMScoreAdj)), 0); err != nil {
		return fmt.Errorf("oom_score_adj of %d: %w", l.OOMScoreAdj, err)
	}
	return nil
}

func (l *Launch) assumeProcessors() error {
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && (int(attr.Policy) != l.Policy || int(attr.Priority) != l.Priority) {
		want := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: uint32(l.Policy), Priority: uint32(l.Priority), Nice: int32(l.Nice)}
		if err := unix.SchedSetAttr(0, want, 0); err != nil {
			return fmt.Errorf("scheduling policy %d with priority %d: %w", l.Policy, l.Priority, err)
		}
	}
	// The system call tells 20 minus the niceness.
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && 20-raw != l.Nice {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, l.Nice); err != nil {
			return fmt.Errorf("niceness of %d: %w", l.Nice, err)
		}
	}
	want, err := cpuSet(l.CPUs)
	if err != nil {
		return err
	}
	var have unix.CPUSet
	if want.Count() == 0 || unix.SchedGetaffinity(0, &have) == nil && have == want {
		return nil
	}
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return fmt.Errorf("processors %s: %w", l.CPUs, err)
	}
	return nil
}

// cpuSet reads a list of processors as the kernel writes it: 0-3,8.
func cpuSet(list string) (set unix.CPUSet, err error) {
	for part := range strings.SplitSeq(list, ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 0 || b < a {
			return set, fmt.Errorf("processors %q: not a list", list)
		}
		for n := a; n <= b; n++ {
			set.Set(n)
		}
	}
	return set, nil
}

func (l *Launch) assumeOwner() error {
	if groups, err := syscall.Getgroups(); err != nil || !sameSet(groups, l.Owner.Groups) {
		if err := syscall.Setgroups(l.Owner.Groups); err != nil {
			return fmt.Errorf("groups of user %d: %w", l.Owner.UID, err)
		}
	}
	if syscall.Getegid() != l.Owner.GID {
		if err := syscall.Setgid(l.Owner.GID); err != nil {
			return fmt.Errorf("group %d: %w", l.Owner.GID, err)
		}
	}
	if syscall.Geteuid() != l.Owner.UID {
		if err := syscall.Setuid(l.Owner.UID); err != nil {
			return fmt.Errorf("user %d: %w", l.Owner.UID, err)
		}
	}
	return nil
}

func sameSet(a, b []int) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// program is the file to execute, found as the process itself would find it.
func (l *Launch) program() (string, error) {
	if len(l.Argv) == 0 {
		return "", errors.New("no command")
	}
	path, err := lookPath(l.Argv[0], l.Env)
	if l.Exe == "" {
		return path, err
	}
	// A Python that was found by another path may find other packages: it is called
	// as it was, if that leads to the same program. A script's first word is its
	// interpreter.
	if err == nil && sameFile(path, l.Exe) {
		return path, nil
	}
	if err := executable(l.Exe); err != nil {
		return "", err
	}
	return l.Exe, nil
}

func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	list := "/usr/local/bin:/bin:/usr/bin"
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			list = value
		}
	}
	denied := error(nil)
	for _, dir := range filepath.SplitList(list) {
		path := filepath.Join(dir, name)
		if dir == "" {
			path = "./" + name
		}
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, syscall.EACCES) && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("%s is not in PATH", name)
}

// executable says why a file cannot be executed by this process.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no %s", path)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s may not be executed: %w", path, syscall.EACCES)
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
