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

// Answers of a search that are no process. Each error that wraps one of them
// ends with the one thing to do.
var (
	// ErrUnsupported says that this system has no /proc.
	ErrUnsupported = errors.New("no process file system")
	// ErrNotLocal says that the address is not one of this machine.
	ErrNotLocal = errors.New("not on this machine")
	// ErrNotFound says that no process of this machine listens there.
	ErrNotFound = errors.New("no such process")
	// ErrPermission says that the process exists and may not be read.
	ErrPermission = errors.New("not permitted")
)

// maxRead bounds what is read of one file of /proc.
const maxRead = 1 << 20

// FS is a mounted procfs.
type FS struct {
	mount procfs.FS
	root  string
	self  int // the reading process, left out of searches
}

// Open returns the procfs mounted at root, "/proc" on a live system. The error
// wraps [ErrUnsupported] where there is none.
func Open(root string) (FS, error) {
	if _, err := os.Stat(filepath.Join(root, "stat")); err != nil {
		return FS{}, fmt.Errorf("%w at %s: processes cannot be read here; give what rooftop should know as flags (-m, --model, --tensor-parallel-size)", ErrUnsupported, root)
	}
	p, err := procfs.NewFS(root)
	if err != nil {
		return FS{}, fmt.Errorf("open %s: %w", root, err)
	}
	return FS{mount: p, root: root, self: os.Getpid()}, nil
}

func (f FS) path(pid int, parts ...string) string {
	return filepath.Join(append([]string{f.root, strconv.Itoa(pid)}, parts...)...)
}

// pids lists the processes, in ascending order.
func (f FS) pids() ([]int, error) {
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

// argv is the command line of a process, empty arguments kept. A process that
// renamed itself has its title there, as one word padded with NULs.
func (f FS) argv(pid int) ([]string, error) {
	data, err := readFile(f.path(pid, "cmdline"))
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return strings.Split(string(bytes.TrimSuffix(data, []byte{0})), "\x00"), nil
}

// title is the command line as one string, cut at the first NUL run of a
// process that renamed itself.
func title(argv []string) string {
	return strings.TrimSpace(strings.TrimRight(strings.Join(argv, " "), " \x00"))
}

// environ is the whole environment of a process. It holds secrets.
func (f FS) environ(pid int) ([]string, error) {
	data, err := readFile(f.path(pid, "environ"))
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), nil
}

// stat reads /proc/PID/stat.
func (f FS) stat(pid int) (procfs.ProcStat, error) {
	p, err := f.mount.Proc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// readFile reads a file whose size /proc does not tell, up to maxRead bytes.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxRead))
}

// namespace identifies a namespace of a process ("net", "pid", "mnt"); "" where
// it may not be read.
func (f FS) namespace(pid int, kind string) string {
	id, err := os.Readlink(f.path(pid, "ns", kind))
	if err != nil {
		return ""
	}
	return id
}

// uid is the real user of a process, -1 where it cannot be read.
func (f FS) uid(pid int) int {
	p, err := f.mount.Proc(pid)
	if err != nil {
		return -1
	}
	status, err := p.NewStatus()
	if err != nil {
		return -1
	}
	return int(status.UIDs[0])
}

// owner names the user of a process for a sentence.
func (f FS) owner(pid int) string {
	if id := f.uid(pid); id >= 0 {
		return fmt.Sprintf("user %d", id)
	}
	return "another user"
}

func denied(err error) bool { return errors.Is(err, fs.ErrPermission) }
