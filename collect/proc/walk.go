package proc

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// walk searches for new descendants of all members. If look is not nil, it appends a
// sample of each new member to it.
func (s *Sampler) walk(look *[]capture.ProcessSample) {
	if s.first {
		s.join(s.members[0])
	}
	if s.noneStarted() {
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
		children, hidden := s.fs.children(parent.pid, byParent)
		s.partial = s.partial || hidden
		for _, pid := range children {
			if known[pid] {
				continue // a member, or a loop caused by a reused PID
			}
			if s.exact && pid == s.fs.self {
				s.own = true
				continue
			}
			m, err := s.open(pid)
			if err != nil {
				// The child ended meanwhile, or is hidden from us.
				s.partial = s.partial || s.fs.hidden(pid, err)
				continue
			}
			if known[pid] = known[m.ppid]; !known[pid] {
				m.close() // the PID was reused
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

// relinkMoved updates parents after members joined or got a new parent.
func (s *Sampler) relinkMoved(joined bool) {
	if joined || s.moved {
		s.moved = false
		s.relink()
	}
}

// noneStarted reports whether no process or thread of this machine started since the
// last check, so that searching for children, which opens a file for each thread, can
// be skipped. It reports false at least every [maxWalkInterval], because a child may
// appear without a start (adopted by a subreaper, restored from a checkpoint) and the
// kernel's list may miss a child while its sibling ends
// (Documentation/filesystems/proc.rst, "children").
func (s *Sampler) noneStarted() bool {
	now := s.clock()
	before := s.lastSeen
	s.lastSeen = s.lastStarted()
	if s.lastSeen != "" && before == s.lastSeen && now-s.walked < maxWalkInterval {
		return true
	}
	s.walked = now
	return false
}

// lastPID returns the ID of the process or thread that started last, the fifth field of
// proc_loadavg(5), in the reader's PID namespace. It returns "" if the field is
// unusable: gVisor always writes 0, and LXCFS mounts its own file over the kernel's.
func (s *Sampler) lastPID() string {
	path := s.fs.root + "/loadavg"
	if !s.exact || !isProc(path) {
		return ""
	}
	text, err := readFile(path)
	if err != nil {
		return ""
	}
	return parseLastPID(text)
}

// parseLastPID returns the fifth field of /proc/loadavg, or "" if it is not a PID.
func parseLastPID(b []byte) string {
	fields := bytes.Fields(b)
	if len(fields) != 5 {
		return ""
	}
	if n, rest, ok := nextNumber(fields[4]); !ok || n == 0 || len(rest) > 0 {
		return ""
	}
	return string(fields[4])
}

// relink sets the parent of every member and sorts members so that parents come
// before their children, which the accounting of ended children relies on.
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

// join adds a new member to the tree.
func (s *Sampler) join(m *member) {
	m.index = len(s.tree.Processes)
	m.parent = s.indexOf(m.ppid, m.index)
	m.own.Title = s.fs.titleOf(m.pid)
	p := capture.Process{
		PID: m.pid, PPID: m.ppid, Ticks: m.ticks,
		Comm: m.own.Comm, Title: m.own.Title, Joined: unseen, Earlier: !s.first && s.older(m),
	}
	s.tree.Processes = append(s.tree.Processes, p)
	s.stale = true
}

// older reports whether a process started before the first sample.
func (s *Sampler) older(m *member) bool {
	up, ok := s.fs.uptime()
	if !ok || len(s.tree.Samples) == 0 {
		return false
	}
	age := up - time.Duration(m.ticks)*(time.Second/ticksPerSecond)
	return s.clock()-age < s.tree.Samples[0].At-2*(time.Second/ticksPerSecond)
}

// assign assigns roles again after processes started, ended or renamed themselves.
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
			continue // its command line is gone: keep its role
		}
		p.Role, p.Title = string(tree[i].Role), tree[i].Title
	}
}

// titleOf returns the title that a process set in place of its command line, or "" if
// it set none.
func (f processes) titleOf(pid int) string {
	argv, err := f.Argv(pid)
	if err != nil {
		return ""
	}
	if t := title(argv); strings.Contains(t, "::") && !strings.ContainsAny(t, " /") {
		return t
	}
	return ""
}

// numbers returns the PIDs of a process in each of its PID namespaces, from that of
// this procfs to the innermost (NSpid of proc_pid_status(5)); nil if they cannot
// be read.
func (f procfiles) numbers(pid int) []int {
	status, err := f.status(pid)
	if err != nil {
		return nil
	}
	var numbers []int
	for _, n := range status.NSpids {
		numbers = append(numbers, int(n))
	}
	return numbers
}
