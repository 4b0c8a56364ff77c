package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Role is what a process does within a server. The zero Role is unknown.
type Role string

// Roles.
const (
	Launcher        Role = "launcher"         // started the others and serves nothing itself
	APIServer       Role = "api-server"       // answers HTTP
	EngineCore      Role = "engine-core"      // schedules
	Worker          Role = "worker"           // runs the model
	Coordinator     Role = "coordinator"      // balances data-parallel engines
	ResourceTracker Role = "resource-tracker" // Python's own
	Other           Role = "other"            // compilers, shells, unknown
)

// Serving reports whether a server needs a process of this role to answer requests.
func (r Role) Serving() bool {
	return r == Launcher || r == APIServer || r == EngineCore || r == Worker || r == Coordinator
}

// State is the kernel's letter for a process state: R running, S sleeping, D
// uninterruptible sleep, T stopped, t traced, Z zombie.
type State string

// Process is one process of a server's tree. PID and Ticks together identify
// it: a reused PID has other ticks.
type Process struct {
	PID     int
	PPID    int
	Ticks   uint64    // start, clock ticks since boot
	Started time.Time // start, to a second or so
	Comm    string    // name, cut to 15 characters by the kernel
	Title   string    // title that it set, "VLLM::EngineCore"; "" if it kept its command line
	Role    Role
	State   State
}

// Tree returns a process and all its descendants, parents before children and
// siblings by PID. It derives roles from process titles, or from the position in the
// tree if there are none. The error wraps [ErrNotFound] if the process is gone.
func (f processes) Tree(pid int) ([]Process, error) {
	boot := f.bootTime()
	var tree []Process
	seen := map[int]bool{}
	byParent := f.byParent()
	var walk func(pid int) error
	walk = func(pid int) error {
		if seen[pid] {
			return nil
		}
		seen[pid] = true
		p, err := f.process(pid, boot)
		if err != nil {
			return err
		}
		tree = append(tree, p)
		children, _ := f.children(pid, byParent)
		for _, child := range children {
			// A child that ended meanwhile is left out.
			_ = walk(child)
		}
		return nil
	}
	if err := walk(pid); err != nil {
		return nil, fmt.Errorf("%w: process %d: %w", ErrNotFound, pid, err)
	}
	f.assign(tree)
	return tree, nil
}

func (f procfiles) bootTime() time.Time {
	st, err := f.mount.Stat()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(st.BootTime), 0)
}

// ticksPerSecond is USER_HZ, 100 on every Linux architecture of today.
const ticksPerSecond = 100

func (f processes) process(pid int, boot time.Time) (Process, error) {
	st, err := f.stat(pid)
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: pid, PPID: st.PPID, Ticks: st.Starttime, Comm: st.Comm, State: State(st.State)}
	if !boot.IsZero() {
		p.Started = boot.Add(time.Duration(st.Starttime) * (time.Second / ticksPerSecond))
	}
	p.Title = f.titleOf(pid)
	return p, nil
}

// children lists the children that any thread of a process started, in ascending order. It uses byParent on
// kernels without that list. hidden reports that a part of it cannot be read.
func (f procfiles) children(pid int, byParent func() map[int][]int) (pids []int, hidden bool) {
	tasks, err := readDir(f.path(pid, "task"))
	if err != nil {
		return nil, !ended(err)
	}
	for _, tid := range tasks {
		data, err := readFile(f.path(pid, "task", tid, "children"))
		switch {
		case err != nil && exists(f.path(pid, "task", tid)) && errors.Is(err, fs.ErrNotExist):
			return byParent()[pid], hidden
		case err != nil:
			hidden = hidden || !ended(err)
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), hidden
}

// ended reports whether reading a process failed because it ended.
func ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// byParent returns a function that maps PIDs to their children. It scans all processes
// at its first call only.
func (f procfiles) byParent() func() map[int][]int {
	var m map[int][]int
	return func() map[int][]int {
		if m != nil {
			return m
		}
		m = map[int][]int{}
		pids, _ := f.PIDs()
		for _, pid := range pids {
			if st, err := f.stat(pid); err == nil {
				m[st.PPID] = append(m[st.PPID], pid)
			}
		}
		return m
	}
}

// assign gives each process of a tree its role.
func (f processes) assign(tree []Process) {
	role := map[int]Role{}
	for i := range tree {
		p := &tree[i]
		p.Role = f.role(*p, i == 0, role[p.PPID])
		role[p.PID] = p.Role
	}
	// A top process whose children answer HTTP only starts them.
	if slices.ContainsFunc(tree[1:], func(p Process) bool { return p.Role == APIServer }) {
		tree[0].Role = Launcher
	}
}

// role returns the role of a process by its title, else by its parent: a Python child of
// the API server is the engine core, and a Python child of that is a worker. This holds
// for vLLM 0.9 to 0.14, which do not set all titles.
func (f processes) role(p Process, top bool, parent Role) Role {
	name := p.Title
	if name == "" {
		name = p.Comm
	}
	if _, after, ok := strings.Cut(name, "::"); ok {
		for _, known := range []struct {
			prefix string
			role   Role
		}{
			{"APIServer", APIServer}, {"EngineCor", EngineCore}, {"Worker", Worker}, {"DPCoord", Coordinator},
		} {
			if strings.HasPrefix(after, known.prefix) {
				return known.role
			}
		}
	}
	if top {
		return APIServer
	}
	argv, _ := f.Argv(p.PID)
	line := strings.Join(argv, " ")
	switch {
	case strings.Contains(line, "resource_tracker") || strings.Contains(line, "forkserver"):
		return ResourceTracker
	case !pythonLike(p.Comm, argv):
		return Other
	case parent == APIServer || parent == Launcher:
		return EngineCore
	case parent == EngineCore:
		return Worker
	}
	return Other
}

func pythonLike(comm string, argv []string) bool {
	names := []string{comm}
	if len(argv) > 0 {
		names = append(names, filepath.Base(argv[0]))
	}
	return slices.ContainsFunc(names, func(s string) bool {
		return strings.HasPrefix(s, "python") || strings.HasPrefix(s, "pt_main") || strings.HasPrefix(s, "vllm") || strings.HasPrefix(s, "VLLM::") || strings.HasPrefix(s, "ray::")
	})
}

// Problem is a process of a server that no longer works.
type Problem struct {
	Process Process // as it was when the tree was read
	What    string  // "stopped", "traced", "dead (zombie)", "gone"
}

// Ended reports whether the process has ended, rather than being stopped.
func (p Problem) Ended() bool { return p.What == gone || p.What == zombie }

// States of a [Problem] whose process has ended.
const (
	gone   = "gone"
	zombie = "dead (zombie)"
)

// String formats the problem as "engine-core 4242 is stopped".
func (p Problem) String() string {
	return fmt.Sprintf("%s %d is %s", p.Process.Role, p.Process.PID, p.What)
}

// Health reads the processes of a tree again and lists those that no longer work: stopped,
// dead, or gone. vLLM continues to answer /health and /metrics with frozen numbers when its
// engine core is stopped or dead.
func (f processes) Health(tree []Process) []Problem {
	var problems []Problem
	for _, p := range tree {
		if !p.Role.Serving() {
			continue
		}
		if what := f.brokenState(p); what != "" {
			problems = append(problems, Problem{p, what})
		}
	}
	return problems
}

func (f procfiles) brokenState(p Process) string {
	st, err := f.stat(p.PID)
	if err != nil || st.Starttime != p.Ticks {
		return gone
	}
	switch st.State {
	case "T":
		return "stopped"
	case "t":
		return "traced"
	case "Z", "X", "x":
		return zombie
	}
	return ""
}

// Usage is what a process has used so far.
type Usage struct {
	CPU      time.Duration // user and system time
	RunWait  stat.Opt      // seconds that its threads were runnable but did not run, if the kernel reports it
	RSSBytes int64
	Threads  int
}

// Usage returns the cumulative usage of a process; ok is false if it ended. Two results subtracted
// give shares of a core; a growing RunWait shows that another process competes for the CPU.
func (f processes) Usage(p Process) (u Usage, ok bool) {
	st, err := f.stat(p.PID)
	if err != nil || st.Starttime != p.Ticks {
		return Usage{}, false
	}
	return Usage{
		CPU:      time.Duration(st.CPUTime() * float64(time.Second)),
		RunWait:  f.runWait(p.PID),
		RSSBytes: int64(st.ResidentMemory()),
		Threads:  st.NumThreads,
	}, true
}
