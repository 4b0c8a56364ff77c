package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
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

// Serving tells whether a server without this process no longer answers.
func (r Role) Serving() bool {
	return r == Launcher || r == APIServer || r == EngineCore || r == Worker || r == Coordinator
}

// State is the scheduler's letter for a process: R running, S sleeping, D
// waiting for a device, T stopped, t traced, Z dead and not yet reaped.
type State string

// Process is one process of a server's tree. PID and Ticks together identify
// it: a reused PID has other ticks.
type Process struct {
	PID     int
	PPID    int
	Ticks   uint64    // start, clock ticks since boot
	Started time.Time // start, to a second or so
	Comm    string    // name, cut to 15 characters by the kernel
	Title   string    // what it calls itself, "VLLM::EngineCore"; "" where it has a command line of its own
	Role    Role
	State   State
}

// Tree returns a process and all its descendants, parents before children and
// by PID among siblings. Roles follow from the place in the tree, and from
// titles where there are any. The error wraps [ErrNotFound] where the process is
// gone.
func (f FS) Tree(pid int) ([]Process, error) {
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
		for _, child := range f.children(pid, byParent) {
			// A child may end while we look: then it is not of the tree.
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

func (f FS) bootTime() time.Time {
	st, err := f.mount.Stat()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(st.BootTime), 0)
}

// ticksPerSecond is USER_HZ, 100 on every Linux architecture of today.
const ticksPerSecond = 100

func (f FS) process(pid int, boot time.Time) (Process, error) {
	st, err := f.stat(pid)
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: pid, PPID: st.PPID, Ticks: st.Starttime, Comm: st.Comm, State: State(st.State)}
	if !boot.IsZero() {
		p.Started = boot.Add(time.Duration(st.Starttime) * (time.Second / ticksPerSecond))
	}
	// A title is one word in place of the whole command line.
	if argv, err := f.argv(pid); err == nil {
		if t := title(argv); strings.Contains(t, "::") && !strings.ContainsAny(t, " /") {
			p.Title = t
		}
	}
	return p, nil
}

// children lists the children that any thread of the process started. Kernels
// without that list are asked through byParent.
func (f FS) children(pid int, byParent func() map[int][]int) []int {
	tasks, err := readDir(f.path(pid, "task"))
	if err != nil {
		return byParent()[pid]
	}
	var pids []int
	for _, tid := range tasks {
		data, err := readFile(filepath.Join(f.path(pid, "task"), tid, "children"))
		if errors.Is(err, fs.ErrNotExist) {
			return byParent()[pid]
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// byParent returns a function that scans all processes once, at its first call.
func (f FS) byParent() func() map[int][]int {
	var m map[int][]int
	return func() map[int][]int {
		if m != nil {
			return m
		}
		m = map[int][]int{}
		pids, _ := f.pids()
		for _, pid := range pids {
			if st, err := f.stat(pid); err == nil {
				m[st.PPID] = append(m[st.PPID], pid)
			}
		}
		return m
	}
}

// assign gives each process of a tree its role.
func (f FS) assign(tree []Process) {
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

// role judges one process by its title, else by its place: a Python child of
// the API server is the engine core, a Python child of that a worker. That holds
// for 0.9 to 0.14, which did not rename all of them.
func (f FS) role(p Process, top bool, parent Role) Role {
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
	argv, _ := f.argv(p.PID)
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

// Problem is a process of a server that cannot do its part.
type Problem struct {
	Process Process // as it was when the tree was read
	What    string  // "stopped", "traced", "dead (zombie)", "gone"
}

// String says it in a sentence's worth of words: "engine-core 4242 is stopped".
func (p Problem) String() string {
	return fmt.Sprintf("%s %d is %s", p.Process.Role, p.Process.PID, p.What)
}

// Health looks at the processes of a tree again and lists those that no longer
// work: stopped, dead, or gone. vLLM goes on answering /health and /metrics with
// frozen numbers when its engine core is stopped or dead.
func (f FS) Health(tree []Process) []Problem {
	var problems []Problem
	for _, p := range tree {
		if !p.Role.Serving() {
			continue
		}
		if what := f.condition(p); what != "" {
			problems = append(problems, Problem{p, what})
		}
	}
	return problems
}

func (f FS) condition(p Process) string {
	st, err := f.stat(p.PID)
	if err != nil || st.Starttime != p.Ticks {
		return "gone"
	}
	switch st.State {
	case "T":
		return "stopped"
	case "t":
		return "traced"
	case "Z", "X", "x":
		return "dead (zombie)"
	}
	return ""
}

// Usage is what a process has used so far.
type Usage struct {
	PID      int
	CPU      time.Duration // user and system time
	RunWait  time.Duration // time its threads were ready to run and did not, 0 where the kernel does not tell
	RSSBytes int64
	Threads  int
}

// Usage reads what each process of a tree has used. Those that are gone are
// left out. Differences of two readings tell shares of a core: a worker whose
// RunWait grows has a neighbour.
func (f FS) Usage(tree []Process) []Usage {
	var all []Usage
	for _, p := range tree {
		st, err := f.stat(p.PID)
		if err != nil || st.Starttime != p.Ticks {
			continue
		}
		all = append(all, Usage{
			PID:      p.PID,
			CPU:      time.Duration(st.CPUTime() * float64(time.Second)),
			RunWait:  f.runWait(p.PID),
			RSSBytes: int64(st.ResidentMemory()),
			Threads:  st.NumThreads,
		})
	}
	return all
}

// runWait sums the second field of schedstat, nanoseconds, over the threads.
func (f FS) runWait(pid int) time.Duration {
	tasks, err := readDir(f.path(pid, "task"))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, tid := range tasks {
		data, err := readFile(filepath.Join(f.path(pid, "task"), tid, "schedstat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data))
		if len(fields) < 2 {
			continue
		}
		if ns, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			sum += time.Duration(ns)
		}
	}
	return sum
}
