package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Reasons why no process is found or read. Each error that wraps one of them
// ends with the step to take.
var (
	// ErrUnsupported means that this system has no /proc.
	ErrUnsupported = errors.New("no process file system")
	// ErrNotLocal means that the address does not belong to this machine.
	ErrNotLocal = errors.New("not on this machine")
	// ErrNotFound means that there is no such process, or none that listens there.
	ErrNotFound = errors.New("no such process")
	// ErrNoFile means that a server has no such file.
	ErrNoFile = errors.New("no such file")
	// ErrPermission means that the process exists but may not be read.
	ErrPermission = errors.New("not permitted")
)

// maxRead is the most bytes that are read of one file of /proc.
const maxRead = 1 << 20

// FS is a mounted procfs. It finds servers among the sockets and processes of this
// machine.
type FS struct{ processes }

// processes reads processes and process trees.
type processes struct{ procfiles }

// procfiles reads the files of single processes.
type procfiles struct {
	mount procfs.FS
	root  string
	self  int // the reading process, left out of searches
}

// Open returns the procfs mounted at root, "/proc" on a live system. The error
// wraps [ErrUnsupported] if there is none.
func Open(root string) (FS, error) {
	if _, err := os.Stat(filepath.Join(root, "stat")); err != nil {
		return FS{}, fmt.Errorf("%w at %s: processes cannot be read here; give what rooftop should know as flags (-m, --model, --tensor-parallel-size)", ErrUnsupported, root)
	}
	p, err := procfs.NewFS(root)
	if err != nil {
		return FS{}, fmt.Errorf("open %s: %w", root, err)
	}
	return FS{processes{procfiles{mount: p, root: root, self: os.Getpid()}}}, nil
}

func (f procfiles) path(pid int, parts ...string) string {
	return filepath.Join(append([]string{f.root, strconv.Itoa(pid)}, parts...)...)
}

// PIDs lists all processes except rooftop itself, in ascending order.
func (f procfiles) PIDs() ([]int, error) {
	procs, err := f.mount.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	pids := make([]int, 0, len(procs))
	for _, p := range procs {
		if p.PID != f.self {
			pids = append(pids, p.PID)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// Argv returns the command line of a process, empty arguments included. It may hold
// secrets. For a process that set a title, it is the title, one word padded with NULs.
func (f procfiles) Argv(pid int) ([]string, error) {
	data, err := readFile(f.path(pid, "cmdline"))
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return strings.Split(string(bytes.TrimSuffix(data, []byte{0})), "\x00"), nil
}

// title returns a command line as one string, without the NULs that pad a title.
func title(argv []string) string {
	return strings.TrimSpace(strings.TrimRight(strings.Join(argv, " "), " \x00"))
}

// Environ returns the whole environment of a process, which may hold secrets.
func (f procfiles) Environ(pid int) ([]string, error) {
	data, err := readFile(f.path(pid, "environ"))
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), nil
}

// stat reads /proc/PID/stat.
func (f procfiles) stat(pid int) (procfs.ProcStat, error) {
	p, err := f.mount.Proc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// readFile reads up to maxRead bytes of a file of /proc, which reports no size.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxRead))
}

// status reads /proc/PID/status.
func (f procfiles) status(pid int) (procfs.ProcStatus, error) {
	p, err := f.mount.Proc(pid)
	if err != nil {
		return procfs.ProcStatus{}, err
	}
	return p.NewStatus()
}

// namespace returns the ID of a namespace of a process, of a kind such as "net", "pid" or
// "mnt"; "" if it may not be read.
func (f procfiles) namespace(pid int, kind string) string {
	id, err := os.Readlink(f.path(pid, "ns", kind))
	if err != nil {
		return ""
	}
	return id
}

// uid returns the real user ID of a process, -1 if it cannot be read.
func (f procfiles) uid(pid int) int {
	status, err := f.status(pid)
	if err != nil {
		return -1
	}
	return int(status.UIDs[0])
}

// owner returns the user of a process for use in a sentence: "user 1000", or "another
// user" if it cannot be read.
func (f procfiles) owner(pid int) string {
	if id := f.uid(pid); id >= 0 {
		return fmt.Sprintf("user %d", id)
	}
	return "another user"
}

func denied(err error) bool { return errors.Is(err, fs.ErrPermission) }
