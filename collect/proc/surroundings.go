package proc

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Surroundings holds the attributes of a process, other than command line, environment
// and working directory, that a restart has to reproduce.
type Surroundings struct {
	Exe string // program file; "" if unreadable
	// Gone is true if the program file was removed or replaced since the start.
	Gone bool
	// Dropped is true if the working directory was removed or replaced since the start.
	Dropped bool

	UID, GID int  // effective
	Mixed    bool // real, effective and saved IDs differ
	Groups   []int

	Limits      map[string][2]int64 // by name as in limits.conf ("nofile"), soft and hard, -1 unlimited
	Nice        int
	Policy      int // scheduling policy, 0 is SCHED_OTHER
	Priority    int // of a real-time policy
	Umask       int // -1 if the kernel does not report it
	OOMScoreAdj int
	CPUs        string // CPUs that it may run on, as a list: 0-3,8
	// Confined is the part of its confinement that a program inherits, as the kernel writes it: capabilities,
	// filters of system calls, the root directory.
	Confined map[string]string

	Std     [3]string // link targets of stdin, stdout and stderr; "" if closed or unreadable
	PPID    int
	Session int
	Cgroups []string // paths, one for each hierarchy
	// InnerPID is the PID in its own PID namespace; 1 is an init.
	InnerPID int
}

// Surroundings reads the surroundings of the server's launch process. The error wraps
// [fs.ErrPermission] if the process may not be read.
func (s *Server) Surroundings() (Surroundings, error) { return s.fs.Surroundings(s.LaunchPID) }

// FS is the file system that the server was found in.
func (s *Server) FS() FS { return s.fs }

// Surroundings reads the surroundings of a process. The error wraps [ErrNotFound] if the
// process is gone.
func (f processes) Surroundings(pid int) (Surroundings, error) {
	st, err := f.stat(pid)
	if err != nil {
		return Surroundings{}, fmt.Errorf("%w: process %d", ErrNotFound, pid)
	}
	s := Surroundings{
		Nice: st.Nice, Policy: int(st.Policy), Priority: int(st.RTPriority), PPID: st.PPID, Session: st.Session,
	}
	if err := f.readStatus(pid, &s); err != nil {
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

// link reads a link of a process; gone is true if its target was removed.
func (f procfiles) link(pid int, name string) (target string, gone bool, err error) {
	target, err = os.Readlink(f.path(pid, name))
	if bare, removed := strings.CutSuffix(target, " (deleted)"); removed {
		return bare, true, nil
	}
	return target, false, err
}

// readStatus reads the fields that only /proc/PID/status has.
func (f procfiles) readStatus(pid int, s *Surroundings) error {
	text, err := readFile(f.path(pid, "status"))
	if err != nil {
		return err
	}
	s.Umask, s.InnerPID, s.Confined = -1, pid, map[string]string{}
	if root, err := os.Readlink(f.path(pid, "root")); err == nil {
		s.Confined["root"] = root
	}
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
			s.UID = parseID(fields[1])
			s.Mixed = s.Mixed || len(slices.Compact(fields)) > 1
		case key == "Gid" && len(fields) == 4:
			s.GID = parseID(fields[1])
			s.Mixed = s.Mixed || len(slices.Compact(fields)) > 1
		case key == "Groups":
			for _, g := range fields {
				s.Groups = append(s.Groups, parseID(g))
			}
		case key == "Cpus_allowed_list":
			s.CPUs = fields[0]
		case slices.Contains([]string{"CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"}, key):
			s.Confined[key] = fields[0]
		case key == "NSpid":
			s.InnerPID = parseID(fields[len(fields)-1])
		}
	}
	return nil
}

// parseID parses a user, group or process ID; -1 if the text is not a number.
func parseID(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// limitNames maps the rows of /proc/PID/limits to their names in limits.conf(5).
var limitNames = map[string]string{
	"Max cpu time": "cpu", "Max file size": "fsize", "Max data size": "data", "Max stack size": "stack",
	"Max core file size": "core", "Max resident set": "rss", "Max processes": "nproc", "Max open files": "nofile",
	"Max locked memory": "memlock", "Max address space": "as", "Max file locks": "locks", "Max pending signals": "sigpending",
	"Max msgqueue size": "msgqueue", "Max nice priority": "nice", "Max realtime priority": "rtprio", "Max realtime timeout": "rttime",
}

// limitColumn is the column at which the values begin in /proc/PID/limits, whose rows
// have fixed columns (fs/proc/base.c, "%-25s %-20s %-20s").
const limitColumn = 26

func parseLimits(text string) map[string][2]int64 {
	limits := map[string][2]int64{}
	for line := range strings.Lines(text) {
		if len(line) <= limitColumn {
			continue
		}
		name, known := limitNames[strings.TrimSpace(line[:limitColumn])]
		fields := strings.Fields(line[limitColumn:])
		if known && len(fields) >= 2 {
			limits[name] = [2]int64{parseLimit(fields[0]), parseLimit(fields[1])}
		}
	}
	return limits
}

// parseLimit returns a limit, -1 for "unlimited".
func parseLimit(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Cgroups lists the control groups of a process, one path for each hierarchy; nil if
// they cannot be read.
func (f procfiles) Cgroups(pid int) []string {
	groups, err := f.cgroups(pid)
	if err != nil {
		return nil
	}
	var paths []string
	for _, g := range groups {
		paths = append(paths, g.Path)
	}
	return paths
}

// Foreign lists the kinds of namespace ("mnt", "pid", "user", …) that a process does not
// share with us, as in a container. It includes kinds that cannot be compared because
// one side is unreadable.
func (f processes) Foreign(pid int) []string {
	var kinds []string
	for _, kind := range []string{"mnt", "pid", "user", "net", "ipc", "uts"} {
		theirs, ours := f.namespace(pid, kind), f.namespace(f.self, kind)
		if theirs != ours || theirs == "" && kind == "mnt" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Ancestor is an ancestor of a process.
type Ancestor struct {
	PID     int
	Name    string   // cut to 15 characters by the kernel
	Argv    []string // may hold secrets
	Session int
}

// Ancestors lists the ancestors of a process, the nearest first; the last is init.
func (f processes) Ancestors(pid int) []Ancestor {
	var up []Ancestor
	for _, p := range f.ancestors(pid) {
		st, err := f.stat(p)
		if err != nil {
			break
		}
		argv, _ := f.Argv(p)
		up = append(up, Ancestor{PID: p, Name: st.Comm, Argv: argv, Session: st.Session})
	}
	return up
}

// Find reads one process, without its role. The error wraps [ErrNotFound].
func (f processes) Find(pid int) (Process, error) {
	p, err := f.process(pid, f.bootTime())
	if err != nil {
		return Process{}, fmt.Errorf("%w: process %d", ErrNotFound, pid)
	}
	return p, nil
}

// Members lists the processes of a session, ordered by PID.
func (f processes) Members(session int) []Process {
	pids, _ := f.PIDs()
	var found []Process
	for _, pid := range pids {
		if st, err := f.stat(pid); err == nil && st.Session == session {
			found = append(found, Process{PID: pid, PPID: st.PPID, Ticks: st.Starttime, Comm: st.Comm, State: State(st.State)})
		}
	}
	return found
}

// Holders lists the processes that listen at an address, or keep another from listening there,
// in this network namespace, ordered by PID: only those with readable descriptors, and the
// topmost of each tree. The unspecified IPv6 address means every address. listening is true
// also if no such process can be identified.
func (f FS) Holders(at netip.AddrPort) (pids []int, listening bool, err error) {
	all, err := f.listening(0)
	if err != nil {
		return nil, false, err
	}
	socks := slices.DeleteFunc(all, func(s socket) bool { return !collide(s.addr, at) })
	if len(socks) == 0 {
		return nil, false, nil
	}
	everyone, err := f.PIDs()
	if err != nil {
		return nil, true, err
	}
	owners, _ := f.holding(append(everyone, f.self), socks)
	return f.tops(owners), true, nil
}

// Twins lists the processes with exactly this command line, ordered by PID. It leaves out
// processes known to be in another network or PID namespace: a server in a container is
// a different server.
func (f processes) Twins(argv []string) []Process {
	pids, err := f.PIDs()
	if err != nil {
		return nil
	}
	var found []Process
	for _, pid := range pids {
		line, err := f.Argv(pid)
		if err != nil || !slices.Equal(line, argv) || f.inOtherNamespace(pid) {
			continue
		}
		if p, err := f.Find(pid); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// inOtherNamespace reports whether a process is in another network or PID namespace; false
// if that cannot be read.
func (f processes) inOtherNamespace(pid int) bool {
	for _, kind := range []string{"net", "pid"} {
		theirs, ours := f.namespace(pid, kind), f.namespace(f.self, kind)
		if theirs != "" && ours != "" && theirs != ours {
			return true
		}
	}
	return false
}
