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

// slowEvery is how often a [Sampler] looks for new processes and reads what costs
// more than CPU time, memory and threads.
const slowEvery = 500 * time.Millisecond

// walkAtLeast is how long nobody needs to have begun before children are looked for
// all the same.
const walkAtLeast = 5 * time.Second

// Sampler looks at a process tree again and again, at little cost: descriptors of
// stat and statm stay open, and answer ESRCH once their process is gone, so that a
// PID used again is never taken for its predecessor.
//
// A process belongs to the tree from the moment it is found as a child of a member
// for as long as it lives, also where its parent ends before it and init or a
// subreaper takes it over. A process whose parent ended before any look found it
// (a daemon's double fork within half a second) is not of the tree.
//
// A Sampler is used by one goroutine at a time.
type Sampler struct {
	fs    FS
	clock func() time.Duration
	root  int
	page  int64

	members []*member // parents before children
	tree    capture.Tree
	first   bool
	next    time.Duration // the next slow look is due
	partial bool
	stale   bool // roles are to be assigned again
	own     bool // rooftop itself is below the root
	// listener is the process that listens on the server's port, 0 unknown.
	listener int
	moved    bool // a member has another parent
	exact    bool // CPU clocks of processes can be read, see [cpuClock]
	// begun tells what changes when a process or thread begins, "" where that is not
	// known; lastBegun is what it told before the last walk, which was at walked.
	begun     func() string
	lastBegun string
	walked    time.Duration
	group     *group

	buf  []byte
	tids []int
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
	compared   bool // that clock was held against stat

	stat, statm, io, task int // descriptors, -1 not open
	dir                   string
	extra                 extras
	threads               map[int]*thread // of deep looks
}

// NewSampler prepares to look at a process and its descendants. clock tells the
// offset from the capture's origin; it decides when the slower part of a look is
// due. The error wraps [ErrNotFound] or [ErrPermission].
func (f FS) NewSampler(root int, clock func() time.Duration) (*Sampler, error) {
	s := &Sampler{fs: f, clock: clock, root: root, page: int64(os.Getpagesize()), first: true, exact: f.ownNumbers(), buf: make([]byte, 64<<10)}
	s.begun = s.lastNumber
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

// Sample looks at the tree: CPU time, memory, threads and page faults of each
// process that is known; where half a second has passed since it last happened,
// also new children, storage I/O and the control group. The sample is kept for
// [Sampler.Tree].
func (s *Sampler) Sample() { s.look(false) }

// Deep looks at everything: what Sample does, and PSS, context switches and
// waiting for a CPU. It is for the opening and the closing of a capture: PSS costs
// the kernel a walk over all pages of each process.
func (s *Sampler) Deep() { s.look(true) }

// Tree is what was seen so far. It shares its memory with the sampler until the
// next look.
func (s *Sampler) Tree() capture.Tree { return s.tree }

// Listener tells which process listens on the server's port: in the tree it is the
// server, whatever it is called.
func (s *Sampler) Listener(pid int) { s.listener, s.stale = pid, true }

// Own tells that rooftop itself runs below the process that was asked for, as where
// that is the shell it was started from. What rooftop uses is not the server's: it and
// what it starts are left out of the tree.
func (s *Sampler) Own() bool { return s.own }

// Close closes the descriptors. What [Sampler.Tree] returns stays.
func (s *Sampler) Close() {
	for _, m := range s.members {
		m.close()
	}
	s.members = nil
}

func (m *member) close() {
	for _, fd := range []*int{&m.stat, &m.statm, &m.io, &m.task} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

func (s *Sampler) look(deep bool) {
	begin := s.clock()
	slow := deep || s.first || begin >= s.next
	// The first look ends with the CPU times and the others begin with them, so that
	// they lie next to the run.
	early := slow && s.first
	out := capture.TreeSample{Walked: slow}
	if early {
		s.walk(nil)
		s.extras(deep)
	}
	hot := s.clock()
	out.Processes = make([]capture.ProcessSample, 0, len(s.members))
	err := s.read(&out.Processes)
	out.At = (hot + s.clock()) / 2
	if slow && !early && err == nil {
		s.walk(&out.Processes)
		s.extras(deep)
	}
	if slow {
		s.next = begin + slowEvery
		s.attach(out.Processes)
		if s.stale {
			s.assign()
		}
		s.readGroup(out.At)
	}
	s.first = false
	out.Partial = s.partial
	if err != nil {
		out.Error, out.Processes = err.Error(), nil
	}
	s.settle(out)
	out.Took = s.clock() - begin
	s.tree.Samples = append(s.tree.Samples, out)
}

// settle notes when processes joined and left.
func (s *Sampler) settle(out capture.TreeSample) {
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

// unseen marks moments that are not known yet.
const unseen = time.Duration(-1 << 63)

// read takes the cheap part of a look at every member, and drops those that are
// gone.
func (s *Sampler) read(out *[]capture.ProcessSample) error {
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

// readMember reads one process. The CPU clock goes by the PID; that stat answers
// on its descriptor afterwards proves that the PID had not been used again.
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
		m.compared, exact = true, exact && near(cpu, line.cpu)
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
	p := capture.ProcessSample{
		Process: m.index, Parent: m.parent, CPU: cpu, Reaped: line.reaped, Threads: line.threads,
		MinorFaults: stat.Some(float64(line.minor)), MajorFaults: stat.Some(float64(line.major)),
	}
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

// near tells whether a CPU clock and the ticks of stat are of the same process and
// of the same accounting: the kernel makes both of the same sum of run time
// (kernel/sched/cputime.c, cputime_adjust), and cuts the latter to ticks. The
// reader may be held up between the two while many threads run.
func near(clock, ticks time.Duration) bool {
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

// indexOf is the member with a PID, or its own index where none has it.
func (s *Sampler) indexOf(pid, own int) int {
	for _, m := range s.members {
		if m.pid == pid {
			return m.index
		}
	}
	return own
}

// open opens the files of a process. Its index and parent are for the caller.
func (s *Sampler) open(pid int) (*member, error) {
	m := &member{pid: pid, dir: s.fs.path(pid), stat: -1, statm: -1, io: -1, task: -1, exact: s.exact}
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
	// Another user's I/O may not be read: the rest may.
	m.io, _ = openRead(m.dir + "/io")
	return m, nil
}

// hidden tells of a process whose files cannot be opened whether it is there all the
// same: of another user, with hidepid (proc(5)), or beyond what we may have open.
func (f FS) hidden(pid int, err error) bool {
	ended := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, errGone)
	return !ended || f.ownNumbers() && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
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

// ownNumbers tells whether this procfs numbers processes as our own system calls
// do: it does not in a fixture, or where the host's /proc is mounted in a
// container.
func (f FS) ownNumbers() bool {
	self, err := os.Readlink(f.root + "/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// cpus counts the CPUs of the machine, 0 where that cannot be read.
func (f FS) cpus() int {
	text, err := readFile(f.root + "/stat")
	if err != nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if len(line) > 3 && strings.HasPrefix(line, "cpu") && line[3] >= '0' && line[3] <= '9' {
			n++
		}
	}
	return n
}

// uptime is the time since boot, which the starts of processes count from; ok is
// false where it cannot be read.
func (f FS) uptime() (up time.Duration, ok bool) {
	text, err := readFile(f.root + "/uptime")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(fields[0], 64)
	return time.Duration(seconds * float64(time.Second)), err == nil
}
