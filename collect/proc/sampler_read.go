package proc

import (
	"bytes"
	"math"
	"time"
)

// statLine is what a look needs of /proc/PID/stat (proc_pid_stat(5)).
type statLine struct {
	comm         []byte // within the buffer that was parsed
	state        byte
	ppid         int
	minor, major uint64
	cpu, reaped  time.Duration
	threads      int
	start        uint64
	kernel       bool // a thread of the kernel itself
}

// parseStat reads /proc/PID/stat. A name may hold anything, brackets and spaces
// too: it ends at the last bracket.
func parseStat(b []byte) (line statLine, ok bool) {
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from || len(b) < to+3 {
		return statLine{}, false
	}
	line.comm, line.state = b[from+1:to], b[to+2]
	rest := b[to+3:]
	// From the parent, field 4, to the start, field 22. Some between may be negative,
	// and none that is needed.
	var field [22 - 4 + 1]uint64
	for i := range field {
		if field[i], rest, ok = nextNumber(rest); !ok {
			return statLine{}, false
		}
	}
	at := func(n int) uint64 { return field[n-4] }
	line.ppid, line.minor, line.major = int(min(at(4), math.MaxInt32)), at(10), at(12)
	line.cpu, line.reaped = ticksTime(at(14), at(15)), ticksTime(at(16), at(17))
	line.threads, line.start = int(min(at(20), math.MaxInt32)), at(22)
	line.kernel = at(9)&kernelThread != 0
	return line, true
}

// NameOf is the name of a process by its /proc/PID/stat, and whether it is a thread of the
// kernel itself; ok is false where that is no such text.
func NameOf(stat []byte) (name string, kernel, ok bool) {
	line, ok := parseStat(stat)
	return string(line.comm), line.kernel, ok
}

// kernelThread is PF_KTHREAD of a process's flags (include/linux/sched.h).
const kernelThread = 0x00200000

// ticksTime adds two times in clock ticks; it does not overflow.
func ticksTime(a, b uint64) time.Duration {
	const most = math.MaxInt64 / uint64(time.Second/ticksPerSecond) / 2
	return time.Duration(min(a, most)+min(b, most)) * (time.Second / ticksPerSecond)
}

// nextNumber reads a number and the blanks before it; negative ones count as 0.
func nextNumber(b []byte) (n uint64, rest []byte, ok bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n') {
		b = b[1:]
	}
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if n > (math.MaxUint64-9)/10 {
			return 0, b, false
		}
		n = n*10 + uint64(b[i]-'0')
	}
	if negative {
		n = 0
	}
	return n, b[i:], i > 0
}

// parseStatm reads the resident pages of /proc/PID/statm (proc_pid_statm(5)). stat
// tells them too; from Linux 6.17 on only statm adds up the per-CPU parts of the
// count, which on a large machine hold many megabytes.
func parseStatm(b []byte) (pages int64, ok bool) {
	_, b, ok = nextNumber(b)
	if !ok {
		return 0, false
	}
	n, _, ok := nextNumber(b)
	return int64(min(n, 1<<40)), ok
}

// parseField reads the number after a key at the beginning of a line, as
// /proc/PID/io, status and smaps_rollup write them ("read_bytes: 4096").
func parseField(b []byte, key string) (uint64, bool) {
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(line) > len(key) && line[len(key)] == ':' && string(line[:len(key)]) == key {
			n, _, ok := nextNumber(line[len(key)+1:])
			return n, ok
		}
	}
	return 0, false
}

// parseSchedstat reads the time that a thread waited for a CPU, the second number
// of /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst).
func parseSchedstat(b []byte) (waited time.Duration, ok bool) {
	_, b, ok = nextNumber(b)
	if !ok {
		return 0, false
	}
	n, _, ok := nextNumber(b)
	return time.Duration(min(n, math.MaxInt64)), ok
}

// appendNumbers appends the positive numbers of a list.
func appendNumbers(to []int, b []byte) []int {
	for {
		n, rest, ok := nextNumber(b)
		if !ok {
			return to
		}
		if n > 0 && n <= math.MaxInt32 {
			to = append(to, int(n))
		}
		b = rest
	}
}
