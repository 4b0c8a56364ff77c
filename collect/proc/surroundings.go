package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Surroundings are what a process was started with beside its command line,
// environment and working directory, and where it runs: what another start has to
// give it again.
type Surroundings struct {
	Exe string // program file; "" unreadable
	// Gone says that the program file was removed or replaced since the start.
	Gone bool
	// Dropped says the same of the working directory.
	Dropped bool

	UID, GID int // effective
	Mixed    bool
	Groups   []int

	Limits      map[string][2]int64 // by name as in limits.conf ("nofile"), soft and hard, -1 unlimited
	Nice        int
	Policy      int // of the scheduler, 0 is the usual one
	Priority    int // of a real-time policy
	Umask       int // -1 where the kernel does not tell
	OOMScoreAdj int
	CPUs        string // that it may run on, as a list: 0-3,8

	Std     [3]string // what stdin, stdout and stderr lead to; "" closed or unreadable
	PPID    int
	Session int
	Cgroups []string // paths, one for each hierarchy
	// InnerPID is its number in its own PID namespace; 1 is an init.
	InnerPID int
}

// Surroundings reads those of the server's launch process. The error wraps a
// permission error where the process may not be read.
func (s *Server) Surroundings() (Surroundings, error) { return s.fs.Surroundings(s.LaunchPID) }

// FS is the file system that the server was found in.
func (s *Server) FS() FS { return s.fs }

// Surroundings reads those of a process.
func (f FS) Surroundings(pid int) (Surroundings, error) {
	st, err := f.stat(pid)
	if err != nil {
		return Surroundings{}, fmt.Errorf("%w: process %d", ErrNotFound, pid)
	}
	s := Surroundings{
		Nice: st.Nice, Policy: int(st.Policy), Priority: int(st.RTPriority), PPID: st.PPID, Session: st.Session,
	}
	if err := f.status(pid, &s); err != nil {
		return s, fmt.Errorf("read state of process %d: %w", pid, err)
	}
	if s.Exe, s.Gone, err = f.link(pid, "exe"); err != nil {
		return s, fmt.Errorf("read program of process %d: %w", pid, err)
	}
	if _, s.Dropped, err = f.link(pid, "cwd"); err != nil {
		return s, fmt.Errorf("read working directory of process %d: %w", pid, err)
	}
	for i := range s.Std {
		s.Std[i], _ = os.Readlink(f.path(pid, "fd", strconv.Itoa(i)))
	}
	text, err := readFile(f.path(pid, "limits"))
	if err != nil {
		return s, fmt.Errorf("read limits of process %d: %w", pid, err)
	}
	s.Limits = parseLimits(string(text))
	if text, err = readFile(f.path(pid, "oom_score_adj")); err == nil {
		s.OOMScoreAdj, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	s.Cgroups = f.Cgroups(pid)
	return s, nil
}

// link reads a link of a process; gone says that what it leads to was removed.
func (f FS) link(pid int, name string) (target string, gone bool, err error) {
	target, err = os.Readlink(f.path(pid, name))
	if bare, removed := strings.CutSuffix(target, " (deleted)"); removed {
		return bare, true, nil
	}
	return target, false, err
}

// status reads what /proc/PID/status alone tells.
func (f FS) status(pid int, s *Surroundings) error {
	text, err := readFile(f.path(pid, "status"))
	if err != nil {
		return err
	}
	s.Umask, s.InnerPID = -1, pid
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case len(fields) == 0:
		case key == "Umask":
			if mask, err := strconv.ParseInt(fields[0], 8, 32); err == nil {
				s.Umask = int(mask)
			}
		case key == "Uid" && len(fields) == 4:
			s.UID = number(fields[1])
			s.Mixed = s.Mixed || len(slices.Compact(fields)) > 1
		case key == "Gid" && len(fields) == 4:
			s.GID = number(fields[1])
			s.Mixed = s.Mixed || len(slices.Compact(fields)) > 1
		case key == "Groups":
			for _, g := range fields {
				s.Groups = append(s.Groups, number(g))
			}
		case key == "Cpus_allowed_list":
			s.CPUs = fields[0]
		case key == "NSpid":
			s.InnerPID = number(fields[len(fields)-1])
		}
	}
	return nil
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// limitNames are the rows of /proc/PID/limits by their names in limits.conf(5).
var limitNames = map[string]string{
	"Max cpu time": "cpu", "Max file size": "fsize", "Max data size": "data", "Max stack size": "stack",
	"Max core file size": "core", "Max resident set": "rss", "Max processes": "nproc", "Max open files": "nofile",
	"Max locked memory": "memlock", "Max address space": "as", "Max file locks": "locks", "Max pending signals": "sigpending",
	"Max msgqueue size": "msgqueue", "Max nice priority": "nice", "Max realtime priority": "rtprio", "Max realtime timeout": "rttime",
}

// limitColumns is where the values begin in /proc/PID/limits: its rows have fixed
// columns (fs/proc/base.c, "%-25s %-20s %-20s").
const limitColumns = 26

func parseLimits(text string) map[string][2]int64 {
	limits := map[string][2]int64{}
	for line := range strings.Lines(text) {
		if len(line) <= limitColumns {
			continue
		}
		name, known := limitNames[strings.TrimSpace(line[:limitColumns])]
		fields := strings.Fields(line[limitColumns:])
		if known && len(fields) >= 2 {
			limits[name] = [2]int64{limit(fields[0]), limit(fields[1])}
		}
	}
	return limits
}

func limit(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Cgroups lists the control groups of a process, one path for each hierarchy; nil
// where they cannot be read.
func (f FS) Cgroups(pid int) []string {
	text, err := readFile(f.path(pid, "cgroup"))
	if err != nil {
		return nil
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			paths = append(paths, parts[2])
		}
	}
	return paths
}

// Foreign lists the kinds of namespace ("mnt", "pid", "user", …) in which a
// process does not share ours: a container's. Unreadable ones are listed too.
func (f FS) Foreign(pid int) []string {
	var kinds []string
	for _, kind := range []string{"mnt", "pid", "user", "net", "ipc", "uts"} {
		theirs, ours := f.namespace(pid, kind), f.namespace(f.self, kind)
		if theirs != ours || theirs == "" && kind == "mnt" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Ancestor is a process above another.
type Ancestor struct {
	PID     int
	Name    string   // cut to 15 characters by the kernel
	Argv    []string // holds secrets
	Session int
}

// Ancestors lists the parents of a process, the nearest first; the last is init.
func (f FS) Ancestors(pid int) []Ancestor {
	var up []Ancestor
	for _, p := range f.ancestors(pid) {
		st, err := f.stat(p)
		if err != nil {
			break
		}
		argv, _ := f.argv(p)
		up = append(up, Ancestor{PID: p, Name: st.Comm, Argv: argv, Session: st.Session})
	}
	return up
}

// Find reads one process. The error wraps [ErrNotFound].
func (f FS) Find(pid int) (Process, error) {
	p, err := f.process(pid, f.bootTime())
	if err != nil {
		return Process{}, fmt.Errorf("%w: process %d", ErrNotFound, pid)
	}
	return p, nil
}

// Members lists the processes of a session, by PID.
func (f FS) Members(session int) []Process {
	return f.where(func(st procfs.ProcStat) bool { return st.Session == session })
}

// where lists the processes that a condition holds for.
func (f FS) where(is func(procfs.ProcStat) bool) []Process {
	pids, err := f.pids()
	if err != nil {
		return nil
	}
	var found []Process
	for _, pid := range pids {
		if st, err := f.stat(pid); err == nil && is(st) {
			found = append(found, Process{PID: pid, PPID: st.PPID, Ticks: st.Starttime, Comm: st.Comm, State: State(st.State)})
		}
	}
	return found
}

// Holders tells who listens on a port of this network namespace, whatever the
// address: processes whose descriptors may be read, the topmost of each tree, by
// PID. Listening is true also where nobody can be named.
func (f FS) Holders(port uint16) (pids []int, listening bool, err error) {
	all, err := f.listening(0)
	if err != nil {
		return nil, false, err
	}
	socks := slices.DeleteFunc(all, func(s socket) bool { return s.addr.Port() != port })
	if len(socks) == 0 {
		return nil, false, nil
	}
	everyone, err := f.mount.AllProcs()
	if err != nil {
		return nil, true, err
	}
	owners := map[int]uint64{}
	for _, p := range everyone {
		if inode, err := f.holds(p.PID, socks); err == nil && inode != 0 {
			owners[p.PID] = inode
		}
	}
	for pid := range owners {
		if !f.hasAncestor(pid, owners) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, true, nil
}

// Twins lists the processes with exactly this command line, by PID. Those that are known
// to be in another network or PID namespace are left out: a container's server is
// another one.
func (f FS) Twins(argv []string) []Process {
	pids, err := f.pids()
	if err != nil {
		return nil
	}
	var found []Process
	for _, pid := range pids {
		line, err := f.argv(pid)
		if err != nil || !slices.Equal(line, argv) || f.apart(pid) {
			continue
		}
		if p, err := f.Find(pid); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// apart says that a process is in another network or PID namespace; false where that
// cannot be read.
func (f FS) apart(pid int) bool {
	for _, kind := range []string{"net", "pid"} {
		theirs, ours := f.namespace(pid, kind), f.namespace(f.self, kind)
		if theirs != "" && ours != "" && theirs != ours {
			return true
		}
	}
	return false
}

// Argv is the command line of a process, empty arguments kept. It may hold secrets.
func (f FS) Argv(pid int) ([]string, error) { return f.argv(pid) }
