package proc

import (
	"bytes"
	"math"
	"time"
)

// statLine holds the fields that a sample needs of /proc/PID/stat (proc_pid_stat(5)).
type statLine struct {
	comm        []byte // points into the parsed buffer
	state       byte
	ppid        int
	cpu, reaped time.Duration
	threads     int
	start       uint64
	kernel      bool // a kernel thread
}

// parseStat parses /proc/PID/stat. The name may contain any character, parentheses and
// spaces included, and ends at the last parenthesis.
func parseStat(b []byte) (line statLine, ok bool) {
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from || len(b) < to+3 {
		return statLine{}, false
	}
	line.comm, line.state = b[from+1:to], b[to+2]
	rest := b[to+3:]
	// Fields 4 (parent) to 22 (start time). Only fields that are not used can be negative.
	var field [22 - 4 + 1]uint64
	for i := range field {
		if field[i], rest, ok = nextNumber(rest); !ok {
			return statLine{}, false
		}
	}
	at := func(n int) uint64 { return field[n-4] }
	line.ppid = int(min(at(4), math.MaxInt32))
	line.cpu, line.reaped = ticksTime(at(14), at(15)), ticksTime(at(16), at(17))
	line.threads, line.start = int(min(at(20), math.MaxInt32)), at(22)
	line.kernel = at(9)&kernelThread != 0
	return line, true
}

// kernelThread is PF_KTHREAD of a process's flags (include/linux/sched.h).
const kernelThread = 0x00200000

// ticksTime returns the sum of two times in clock ticks, saturating instead of
// overflowing.
func ticksTime(a, b uint64) time.Duration {
	const most = math.MaxInt64 / uint64(time.Second/ticksPerSecond) / 2
	return time.Duration(min(a, most)+min(b, most)) * (time.Second / ticksPerSecond)
}

// nextNumber parses a decimal number after optional blanks and returns the text after
// it. Negative numbers are returned as 0.
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

// parseStatm returns the resident pages in /proc/PID/statm (proc_pid_statm(5)). stat has
// them too, but since Linux 6.17 only statm includes the per-CPU parts of the count,
// which are many megabytes on a large machine.
func parseStatm(b []byte) (pages int64, ok bool) {
	_, b, ok = nextNumber(b)
	if !ok {
		return 0, false
	}
	n, _, ok := nextNumber(b)
	return int64(min(n, 1<<40)), ok
}

// parseField returns the number after a key at the start of a line. The key includes its
// separator: "nr_periods " in cpu.stat.
func parseField(b []byte, key string) (uint64, bool) {
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		if len(line) >= len(key) && string(line[:len(key)]) == key {
			n, _, ok := nextNumber(line[len(key):])
			return n, ok
		}
		b = rest
	}
	return 0, false
}
