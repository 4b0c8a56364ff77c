package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// slowEvery is how often a [Sampler] searches for new processes and reads what costs
// more than CPU time, memory and thread counts.
const slowEvery = 500 * time.Millisecond

// maxWalkInterval is the longest time between two searches for children while no
// process appears to have started.
const maxWalkInterval = 5 * time.Second

// Sampler samples a process tree repeatedly at little cost. It keeps the descriptors of
// stat and statm open; they return ESRCH once their process is gone, so a reused PID
// is never mistaken for the previous process.
//
// A process joins the tree when it is found as a child of a member and stays until it
// ends, even if its parent ends first and init or a subreaper adopts it. A process
// whose parent ended before any sample found it (a daemon's double fork within half
// a second) is not part of the tree.
//
// A Sampler must be used by one goroutine at a time.
type Sampler struct {
	fs    FS
	clock func() time.Duration
	root  int
	page  int64

	members []*member // parents before children
	tree    capture.Tree
	first   bool
	next    time.Duration // when the next slow sample is due
	partial bool          // some processes could not be read
	stale   bool          // roles must be assigned again
	own     bool          // rooftop itself is a descendant of the root
	// listener is the PID that listens on the server's port, 0 if unknown.
	listener int
	moved    bool // a member has a new parent
	exact    bool // CPU clocks of processes can be read, see [cpuClock]
	// lastStarted returns a text that changes when a process or thread starts, or "" if the
	// system has none. lastSeen is that text at the previous check, walked the time of the
	// last search for children.
	lastStarted func() string
	lastSeen    string
	walked      time.Duration
	group       *group

	buf []byte
}

// member is a living process of the tree.
type member struct {
	index, pid int
	ticks      uint64
	ppid       int
	parent     int // index
	own        Process
	zombie     bool
	exact      bool // its CPU clock is read
	compared   bool // that clock was compared with stat

	stat, statm int // descriptors, -1 not open
	dir         string
	wait        stat.Opt // time its threads waited for a CPU, read by deep samples
}

// NewSampler returns a sampler of a process and its descendants. clock returns the
// offset from the capture's origin; it decides when the slower part of a sample is
// due. The error wraps [ErrNotFound] or [ErrPermission].
func (f FS) NewSampler(root int, clock func() time.Duration) (*Sampler, error) {
	s := &Sampler{fs: f, clock: clock, root: root, page: int64(os.Getpagesize()), first: true, exact: f.ownNumbers(), buf: make([]byte, 64<<10)}
	s.lastStarted = s.lastPID
	m, err := s.open(root)
	switch {
	case denied(err) || errors.Is(err, unix.ENOENT) && f.hidden(root, err):
		return nil, fmt.Errorf("%w: process %d belongs to %s; run rooftop as that user or as root", ErrPermission, root, f.owner(root))
	case err != nil:
		return nil, fmt.Errorf("%w %d: check --pid, or leave it out to find the server by its port: %w", ErrNotFound, root, err)
	}
	m.index, m.parent = 0, 0
	s.members = []*member{m}
	s.tree = capture.Tree{Root: root, CPUs: f.cpus()}
	s.group = f.newGroup(root)
	return s, nil
}

// Sample reads CPU time, memory and threads of each known process and appends them to
// [Sampler.Tree]. Every half second it also searches for new children.
func (s *Sampler) Sample() { s.sample(false) }

// Deep samples what Sample reads, the time that threads waited for a CPU, and the control
// group. It is meant for the start and the end of a capture, because it reads a file of
// each thread.
func (s *Sampler) Deep() { s.sample(true) }

// Tree returns all samples so far. It shares its memory with the sampler until the
// next sample.
func (s *Sampler) Tree() capture.Tree { return s.tree }

// Listener sets the PID that listens on the server's port. That process gets the role
// of the server, whatever its name.
func (s *Sampler) Listener(pid int) { s.listener, s.stale = pid, true }

// Own reports whether rooftop itself is a descendant of the root, as when the root is the
// shell that started rooftop. The tree leaves out rooftop and its children, because
// the server does not use what they use.
func (s *Sampler) Own() bool { return s.own }

// Close closes the descriptors. The result of [Sampler.Tree] stays valid.
func (s *Sampler) Close() {
	for _, m := range s.members {
		m.close()
	}
	s.members = nil
}

func (m *member) close() {
	for _, fd := range []*int{&m.stat, &m.statm} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

func (s *Sampler) sample(deep bool) {
	begin := s.clock()
	slow := deep || s.first || begin >= s.next
	// The first sample reads CPU times last and the others read them first, so that they
	// are closest to the measured run.
	early := slow && s.first
	out := capture.TreeSample{Walked: slow}
	if early {
		s.walk(nil)
		s.readWaits(deep)
	}
	hot := s.clock()
	out.Processes = make([]capture.ProcessSample, 0, len(s.members))
	err := s.readMembers(&out.Processes)
	out.At = (hot + s.clock()) / 2
	if slow && !early && err == nil {
		s.walk(&out.Processes)
		s.readWaits(deep)
	}
	if slow {
		s.next = begin + slowEvery
		if s.stale {
			s.assign()
		}
	}
	if deep {
		s.attachWaits(out.Processes)
		s.readGroup(out.At)
	}
	s.first = false
	out.Partial = s.partial
	if err != nil {
		out.Error, out.Processes = err.Error(), nil
	}
	s.recordMembership(out)
	out.Took = s.clock() - begin
	s.tree.Samples = append(s.tree.Samples, out)
}

// recordMembership sets when processes joined and left the tree.
func (s *Sampler) recordMembership(out capture.TreeSample) {
	for _, p := range out.Processes {
		if q := &s.tree.Processes[p.Process]; q.Joined == unseen {
			q.Joined = out.At
		}
	}
	for i := range s.tree.Processes {
		q := &s.tree.Processes[i]
		if q.Gone && q.Left == unseen {
			q.Left = out.At
			if q.Joined == unseen {
				q.Joined = out.At
			}
		}
	}
}

// unseen marks times that are not known yet.
const unseen = time.Duration(-1 << 63)

// readMembers reads the cheap part of a sample for every member and removes members that
// ended. It fails if the root cannot be read or no member is left.
func (s *Sampler) readMembers(out *[]capture.ProcessSample) error {
	living := s.members[:0]
	var failed error
	for _, m := range s.members {
		p, err := s.readMember(m)
		switch {
		case err == nil:
			*out = append(*out, p)
		case errors.Is(err, errGone):
			m.close()
			s.tree.Processes[m.index].Gone = true
			s.tree.Processes[m.index].Left = unseen
			s.stale = true
			continue
		case m.pid == s.root && m.index == 0:
			failed = fmt.Errorf("read process %d: %w", m.pid, err)
		}
		living = append(living, m)
	}
	clear(s.members[len(living):])
	s.members = living
	if failed == nil && len(living) == 0 {
		failed = fmt.Errorf("process %d and all that it started have ended", s.root)
	}
	return failed
}

var errGone = errors.New("the process has ended")

// readMember reads one process. The CPU clock is addressed by PID; a successful read of
// the open stat descriptor afterwards proves that the PID was not reused.
func (s *Sampler) readMember(m *member) (capture.ProcessSample, error) {
	cpu, exact := time.Duration(0), m.exact
	if exact {
		cpu, exact = cpuClock(m.pid)
	}
	line, err := s.readStat(m.stat)
	if err != nil {
		return capture.ProcessSample{}, err
	}
	if !m.compared {
		m.compared, exact = true, exact && clocksAgree(cpu, line.cpu)
	}
	if m.exact = exact; !exact {
		cpu = line.cpu
	}
	if string(line.comm) != m.own.Comm {
		m.own.Comm = string(line.comm)
		s.tree.Processes[m.index].Comm = m.own.Comm
		s.stale = true
	}
	if line.ppid != m.ppid {
		m.ppid = line.ppid
		m.parent = s.indexOf(line.ppid, m.index)
		s.stale, s.moved = true, true
	}
	p := capture.ProcessSample{Process: m.index, Parent: m.parent, CPU: cpu, Reaped: line.reaped, Threads: line.threads}
	m.own.State = State([]byte{line.state})
	m.zombie = line.state == 'Z' || line.state == 'X'
	if m.zombie && p.Threads <= 1 {
		p.Threads = 0
	}
	if n, err := unix.Pread(m.statm, s.buf, 0); err == nil {
		if pages, ok := parseStatm(s.buf[:n]); ok {
			p.RSSBytes = pages * s.page
		}
	}
	return p, nil
}

// clocksAgree reports whether a CPU clock and the ticks of stat belong to the same process
// and accounting. The kernel derives both from the same run time
// (kernel/sched/cputime.c, cputime_adjust) and truncates the latter to ticks. The
// tolerance allows for a delay between the two reads while many threads run.
func clocksAgree(clock, ticks time.Duration) bool {
	return (clock - ticks).Abs() < time.Second+max(clock, ticks)/10
}

func (s *Sampler) readStat(fd int) (statLine, error) {
	n, err := unix.Pread(fd, s.buf, 0)
	if errors.Is(err, unix.ESRCH) || err == nil && n == 0 {
		return statLine{}, errGone
	}
	if err != nil {
		return statLine{}, err
	}
	line, ok := parseStat(s.buf[:n])
	if !ok {
		return statLine{}, fmt.Errorf("its stat is not what proc_pid_stat(5) says: %q", s.buf[:min(n, 80)])
	}
	return line, nil
}

// indexOf returns the index of the member with a PID, or own if no member has it.
func (s *Sampler) indexOf(pid, own int) int {
	for _, m := range s.members {
		if m.pid == pid {
			return m.index
		}
	}
	return own
}

// open opens the files of a process. The caller sets the index and the parent.
func (s *Sampler) open(pid int) (*member, error) {
	m := &member{pid: pid, dir: s.fs.path(pid), stat: -1, statm: -1, exact: s.exact}
	var err error
	if m.stat, err = openRead(m.dir + "/stat"); err != nil {
		return nil, err
	}
	line, err := s.readStat(m.stat)
	if err != nil {
		m.close()
		return nil, err
	}
	m.ticks, m.ppid = line.start, line.ppid
	m.own = Process{PID: pid, PPID: line.ppid, Ticks: line.start, Comm: string(line.comm), State: State([]byte{line.state})}
	if m.statm, err = openRead(m.dir + "/statm"); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// hidden reports whether a process exists although opening its files failed: it belongs
// to another user, hidepid (proc(5)) hides it, or our descriptor limit is reached.
func (f procfiles) hidden(pid int, err error) bool {
	return !ended(err) && !errors.Is(err, errGone) || f.ownNumbers() && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

func openRead(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		default:
			return fd, nil
		}
	}
}

// ownNumbers reports whether the PIDs of this procfs are those of our own system calls. They
// are not in a fixture, or if the host's /proc is mounted in a container.
func (f procfiles) ownNumbers() bool {
	self, err := os.Readlink(f.root + "/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// cpus returns the number of CPUs of the machine, 0 if it cannot be read.
func (f procfiles) cpus() int {
	st, err := f.mount.Stat()
	if err != nil {
		return 0
	}
	return len(st.CPU)
}

// uptime returns the time since boot, from which process start times count; ok is
// false if it cannot be read.
func (f procfiles) uptime() (up time.Duration, ok bool) {
	text, err := readFile(f.root + "/uptime")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(fields[0], 64)
	return time.Duration(seconds * float64(time.Second)), err == nil
}
