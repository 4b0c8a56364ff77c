package launcher

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

// BecomeServer turns a launcher process into the server, and returns at once in any other
// process. Programs that start servers, test programs too, call it first.
func BecomeServer() {
	if len(os.Args) != 2 || os.Args[1] != Flag {
		return
	}
	// Niceness and processors belong to a thread; exec keeps those of the calling thread.
	runtime.LockOSThread()
	closeOnExec()
	socket := os.NewFile(socketFD, "launcher")
	if err := wait(socket); err != nil {
		_ = json.NewEncoder(socket).Encode(Answer{Err: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// closeOnExec lets the server inherit only the standard streams. Otherwise it would keep
// other descriptors that rooftop inherited, such as a script's lock or pipe, open as long
// as it runs.
func closeOnExec() {
	if unix.CloseRange(socketFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, one := range list {
		if fd, err := strconv.Atoi(one.Name()); err == nil && fd >= socketFD {
			syscall.CloseOnExec(fd)
		}
	}
}

// wait assumes the launch's attributes, waits for permission and becomes the server. It
// returns only without permission, or with an error.
func wait(socket *os.File) error {
	orders := json.NewDecoder(socket)
	var order Order
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
	if err := json.NewEncoder(socket).Encode(Answer{}); err != nil {
		return err
	}
	if err := orders.Decode(&order); errors.Is(err, io.EOF) || err == nil && !order.Go {
		return nil // it was a rehearsal
	} else if err != nil {
		return err
	}
	return explainExec(program, syscall.Exec(program, l.Argv, l.Env))
}

func explainExec(program string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program and has no #! line", program)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%s: command line and environment are too long", program)
	}
	return fmt.Errorf("%s: %w", program, err)
}

// assume applies the attributes of the launch to this process.
func (l *Launch) assume() error {
	if !l.Inherit {
		if err := errors.Join(l.assumeLimits(), l.assumeScore(), l.assumeProcessors()); err != nil {
			return err
		}
	}
	if !l.Inherit {
		if l.Umask >= 0 {
			syscall.Umask(l.Umask)
		}
		if err := l.assumeOwner(); err != nil {
			return err
		}
	}
	if err := os.Chdir(l.Cwd); err != nil { // as the user, who may have put a link there
		return fmt.Errorf("working directory: %w", err)
	}
	return nil
}

// resources maps names of limits.conf(5) to limits.
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
		// Go raises the limit of open files for itself and restores it on exec, unless it was
		// set.
		if err := syscall.Getrlimit(resource, &have); err == nil && have == want && resource != unix.RLIMIT_NOFILE {
			continue
		}
		if err := syscall.Setrlimit(resource, &want); err != nil {
			return fmt.Errorf("limit %s of %s: %w", name, formatLimit(l.Limit[name][1]), err)
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

func formatLimit(n int64) string {
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
	// The system call returns 20 minus the niceness.
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

// cpuSet parses a list of processors in the kernel's format: 0-3,8.
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

// program returns the file to execute, found as the process itself would find it.
func (l *Launch) program() (string, error) {
	if len(l.Argv) == 0 {
		return "", errors.New("no command")
	}
	path, err := lookPath(l.Argv[0], l.Env)
	if l.Exe == "" {
		return path, err
	}
	// Python finds its packages by the path it is called with: keep that path if it leads to
	// the same program. The first word of a script is its interpreter.
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

// executable reports why this process cannot execute a file.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist", path)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil || info.Mode()&0o111 == 0 {
		return fmt.Errorf("no permission to execute %s: %w", path, syscall.EACCES)
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
