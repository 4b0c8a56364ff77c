package proc

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// walk looks for new children of all members, and of these. Where a look at the
// members has been taken already, the new ones are added to it.
func (s *Sampler) walk(look *[]capture.ProcessSample) {
	if s.first {
		s.join(s.members[0])
	}
	if s.nobodyBegan() {
		s.relinkMoved(false)
		return
	}
	known := make(map[int]bool, len(s.members))
	for _, m := range s.members {
		known[m.pid] = true
	}
	s.partial = false
	byParent := s.fs.byParent()
	joined := false
	for i := 0; i < len(s.members); i++ { // members grow
		parent := s.members[i]
		for _, pid := range s.children(parent, byParent) {
			if known[pid] {
				continue // a member, or a loop of a PID used again
			}
			if s.exact && pid == s.fs.self {
				s.own = true
				continue
			}
			m, err := s.open(pid)
			if err != nil {
				// Children end meanwhile; others are hidden from us.
				s.partial = s.partial || s.fs.hidden(pid, err)
				continue
			}
			if known[pid] = known[m.ppid]; !known[pid] {
				m.close() // another process has the PID by now
				continue
			}
			joined = true
			s.members = append(s.members, m)
			s.join(m)
			if look == nil {
				continue
			}
			if p, err := s.readMember(m); err == nil {
				*look = append(*look, p)
			}
		}
	}
	s.relinkMoved(joined)
}

// relinkMoved finds parents again where members joined or have another parent.
func (s *Sampler) relinkMoved(joined bool) {
	if joined || s.moved {
		s.moved = false
		s.relink()
	}
}

// nobodyBegan tells whether no process of this machine, and no thread, began since
// before the last walk: then there is no new child to look for, which costs an open
// file for each thread. Every [walkAtLeast] it is looked for all the same: a child
// may come without a birth (a subreaper's, one that is restored from a checkpoint),
// and lists of children may lack one while its neighbour ends
// (Documentation/filesystems/proc.rst, "children").
func (s *Sampler) nobodyBegan() bool {
	now := s.clock()
	before := s.lastBegun
	s.lastBegun = s.begun()
	if s.lastBegun != "" && before == s.lastBegun && now-s.walked < walkAtLeast {
		return true
	}
	s.walked = now
	return false
}

// lastNumber is the number of the last process or thread that began, the fifth field
// of proc_loadavg(5): the kernel numbers what begins in turn, in the reader's PID
// namespace. "" where nothing like that is told: gVisor says 0 for ever, and LXCFS
// puts a page of its own in place of the kernel's.
func (s *Sampler) lastNumber() string {
	path := s.fs.root + "/loadavg"
	if !s.exact || !isProc(path) {
		return ""
	}
	n, err := s.readAt(unix.AT_FDCWD, path)
	if err != nil {
		return ""
	}
	return parseLast(s.buf[:n])
}

// parseLast reads the fifth field of /proc/loadavg, "" where it is no number of a
// process.
func parseLast(b []byte) string {
	fields := bytes.Fields(b)
	if len(fields) != 5 {
		return ""
	}
	if n, rest, ok := nextNumber(fields[4]); !ok || n == 0 || len(rest) > 0 {
		return ""
	}
	return string(fields[4])
}

// relink finds everybody's parent again, and orders members so that parents come
// before their children, which the accounting of ended children rests on.
func (s *Sampler) relink() {
	byPID, byIndex := make(map[int]*member, len(s.members)), make(map[int]*member, len(s.members))
	for _, m := range s.members {
		byPID[m.pid], byIndex[m.index] = m, m
	}
	for _, m := range s.members {
		m.parent = m.index
		if up := byPID[m.ppid]; up != nil {
			m.parent = up.index
		}
	}
	depth := func(m *member) int {
		d := 0
		for ; m.parent != m.index && d < len(s.members); d++ {
			m = byIndex[m.parent]
		}
		return d
	}
	slices.SortStableFunc(s.members, func(a, b *member) int { return depth(a) - depth(b) })
}

// join enters a new member into the tree.
func (s *Sampler) join(m *member) {
	m.index = len(s.tree.Processes)
	m.parent = s.indexOf(m.ppid, m.index)
	m.own.Title = s.fs.titleOf(m.pid)
	p := capture.Process{
		PID: m.pid, PPID: m.ppid, InnerPID: s.fs.innerPID(m.pid), Ticks: m.ticks,
		Comm: m.own.Comm, Title: m.own.Title, Joined: unseen, Earlier: !s.first && s.older(m),
	}
	s.tree.Processes = append(s.tree.Processes, p)
	s.stale = true
}

// older tells whether a process began before the first look.
func (s *Sampler) older(m *member) bool {
	up, ok := s.fs.uptime()
	if !ok || len(s.tree.Samples) == 0 {
		return false
	}
	age := up - time.Duration(m.ticks)*(time.Second/ticksPerSecond)
	return s.clock()-age < s.tree.Samples[0].At-2*(time.Second/ticksPerSecond)
}

// children lists the children that any thread of a member started.
func (s *Sampler) children(m *member, byParent func() map[int][]int) []int {
	if !s.threadsOf(m) {
		return nil
	}
	var pids []int
	var path [32]byte
	for _, tid := range s.tids {
		name := append(strconv.AppendInt(path[:0], int64(tid), 10), "/children"...)
		n, err := s.readAt(m.task, string(name))
		switch {
		case err == nil:
			s.partial = s.partial || n == len(s.buf) // there are more
			pids = appendNumbers(pids, s.buf[:n])
		case errors.Is(err, unix.ESRCH):
		case errors.Is(err, unix.ENOENT):
			if unix.Faccessat(m.task, strconv.Itoa(tid), unix.F_OK, 0) == nil {
				// A kernel without these lists (CONFIG_PROC_CHILDREN).
				return byParent()[m.pid]
			}
		default:
			s.partial = true
		}
	}
	return pids
}

// threadsOf lists a member's threads in s.tids; false where they are hidden.
func (s *Sampler) threadsOf(m *member) bool {
	if m.task < 0 {
		fd, err := openRead(m.dir + "/task")
		if err != nil {
			s.partial = s.partial || !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH)
			return false
		}
		m.task = fd
	}
	var err error
	if s.tids, err = numberedEntries(m.task, s.buf, s.tids[:0]); err != nil {
		s.partial = s.partial || !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH)
		return false
	}
	return true
}

// readAt reads a file below an open directory into the buffer, up to its end: the
// kernel hands out a page of a list at a time.
func (s *Sampler) readAt(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	to := 0
	for to < len(s.buf) {
		n, err := unix.Read(fd, s.buf[to:])
		if err != nil || n <= 0 {
			return to, err
		}
		to += n
	}
	return to, nil
}

// assign gives roles again, after processes came, went or renamed themselves.
func (s *Sampler) assign() {
	s.stale = false
	tree := make([]Process, len(s.members))
	for i, m := range s.members {
		m.own.PPID = m.ppid
		m.own.Title = s.fs.titleOf(m.pid)
		tree[i] = m.own
	}
	s.fs.Roles(tree, s.listener)
	for i, m := range s.members {
		p := &s.tree.Processes[m.index]
		if m.zombie && p.Role != "" {
			continue // its command line is gone: it is what it was
		}
		p.Role, p.Title = string(tree[i].Role), tree[i].Title
	}
}

// titleOf is what a process calls itself in place of a command line, "" where it
// does not.
func (f FS) titleOf(pid int) string {
	argv, err := f.argv(pid)
	if err != nil {
		return ""
	}
	if t := title(argv); strings.Contains(t, "::") && !strings.ContainsAny(t, " /") {
		return t
	}
	return ""
}

// innerPID is the number of a process in its own PID namespace; the one it has
// here where that cannot be read.
func (f FS) innerPID(pid int) int {
	numbers := f.numbers(pid)
	if len(numbers) == 0 {
		return pid
	}
	return numbers[len(numbers)-1]
}

// numbers are the PIDs of a process in the PID namespaces that it is in, from the
// one of this procfs to its own (NSpid of proc_pid_status(5)); nil where they
// cannot be read.
func (f FS) numbers(pid int) []int {
	text, err := readFile(f.path(pid, "status"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return slices.Clip(appendNumbers(nil, []byte(list)))
		}
	}
	return nil
}
