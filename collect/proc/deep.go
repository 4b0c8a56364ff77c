package proc

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// extras are the readings of a process that only slow and deep samples take.
type extras struct {
	read, written, pss, voluntary, involuntary, wait stat.Opt
}

// thread holds the last counters read for a thread.
type thread struct {
	voluntary, involuntary uint64
	wait                   time.Duration
}

// readExtras reads the slower part of a sample for every member.
func (s *Sampler) readExtras(deep bool) {
	for _, m := range s.members {
		m.extra = extras{}
		s.readIO(m)
		if deep {
			s.readPSS(m)
			s.readThreads(m)
		}
	}
}

// attachExtras moves the slower readings from the members into a sample.
func (s *Sampler) attachExtras(look []capture.ProcessSample) {
	byIndex := make(map[int]*member, len(s.members))
	for _, m := range s.members {
		byIndex[m.index] = m
	}
	for i := range look {
		p := &look[i]
		m := byIndex[p.Process]
		if m == nil {
			continue
		}
		x := m.extra
		p.ReadBytes, p.WrittenBytes, p.PSSBytes = x.read, x.written, x.pss
		p.VoluntarySwitches, p.InvoluntarySwitches, p.RunWaitSeconds = x.voluntary, x.involuntary, x.wait
		m.extra = extras{}
	}
}

// readIO reads the bytes read from and written to storage. Only the process's user and
// root may read them (proc_pid_io(5)).
func (s *Sampler) readIO(m *member) {
	if m.io < 0 {
		return
	}
	n, err := unix.Pread(m.io, s.buf, 0)
	if err != nil {
		return
	}
	if v, ok := parseField(s.buf[:n], "read_bytes:"); ok {
		m.extra.read = stat.Some(float64(v))
	}
	if v, ok := parseField(s.buf[:n], "write_bytes:"); ok {
		m.extra.written = stat.Some(float64(v))
	}
}

// readPSS reads the proportional set size (PSS) in bytes. A zombie has none.
func (s *Sampler) readPSS(m *member) {
	if m.zombie {
		m.extra.pss = stat.Some(0)
		return
	}
	fd, err := openRead(m.dir + "/smaps_rollup")
	if err != nil {
		return
	}
	n, err := unix.Pread(fd, s.buf, 0)
	_ = unix.Close(fd)
	if err != nil {
		return
	}
	if kib, ok := parseField(s.buf[:n], "Pss:"); ok {
		m.extra.pss = stat.Some(float64(kib) * 1024)
	}
}

// readThreads sums context switches and CPU wait over the threads of a process. The
// kernel reports both per thread only, so a thread that ended since an earlier sample
// counts with its last reading.
func (s *Sampler) readThreads(m *member) {
	if m.zombie || !s.threadsOf(m) {
		return
	}
	if m.threads == nil {
		m.threads = map[int]*thread{}
	}
	var path [32]byte
	waits := false
	for _, tid := range s.tids {
		base := strconv.AppendInt(path[:0], int64(tid), 10)
		n, err := s.readAt(m.task, string(append(base, "/status"...)))
		if err != nil {
			continue
		}
		voluntary, ok1 := parseField(s.buf[:n], "voluntary_ctxt_switches:")
		involuntary, ok2 := parseField(s.buf[:n], "nonvoluntary_ctxt_switches:")
		if !ok1 || !ok2 {
			continue
		}
		now := thread{voluntary: voluntary, involuntary: involuntary}
		if n, err = s.readAt(m.task, string(append(base, "/schedstat"...))); err == nil {
			var ok bool
			now.wait, ok = parseSchedstat(s.buf[:n])
			waits = waits || ok
		}
		m.recordThread(tid, now)
	}
	if len(m.threads) == 0 {
		return
	}
	var sum thread
	for _, t := range m.threads {
		sum.voluntary += t.voluntary
		sum.involuntary += t.involuntary
		sum.wait += t.wait
	}
	m.extra.voluntary, m.extra.involuntary = stat.Some(float64(sum.voluntary)), stat.Some(float64(sum.involuntary))
	if waits {
		m.extra.wait = stat.Some(sum.wait.Seconds())
	}
}

// recordThread stores the counters of a thread. Counters that fell show that a new thread
// reused the ID: the counters of the previous thread stay in the sum under a negative
// key, which no thread has.
func (m *member) recordThread(tid int, now thread) {
	if old := m.threads[tid]; old != nil && (now.voluntary < old.voluntary || now.involuntary < old.involuntary) {
		m.threads[-len(m.threads)-1] = old
	}
	m.threads[tid] = &now
}
