package proc

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock is the user and system time of a process, its ended threads included,
// in nanoseconds: the clock that clock_getcpuclockid(3) names, whose number holds
// the complement of the PID above the bits of "scheduler's time of a process"
// (include/linux/posix-timers.h, CPUCLOCK_SCHED). The ticks of stat are the same
// time cut to 10 ms, which over a span of 200 ms is an error of a tenth of a core;
// the clock costs a fifth of reading stat. A thread that runs on another CPU
// counts up to the scheduler's last tick there. false where there is no such
// process.
func cpuClock(pid int) (time.Duration, bool) {
	const sched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// numberedEntries appends the names of an open directory that are numbers, read
// from its beginning.
func numberedEntries(dir int, buf []byte, to []int) ([]int, error) {
	if _, err := unix.Seek(dir, 0, unix.SEEK_SET); err != nil {
		return to, err
	}
	for {
		n, err := unix.Getdents(dir, buf)
		if err != nil || n <= 0 {
			return to, err
		}
		to = appendEntries(to, buf[:n])
	}
}

// appendEntries reads linux_dirent64 records (getdents(2)): inode and offset of 8
// bytes each, the record's length in 2, its type in 1, and the name up to a NUL.
func appendEntries(to []int, b []byte) []int {
	const header = 19
	for len(b) > header {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size <= header || size > len(b) {
			return to
		}
		name := b[header:size]
		if n, rest, ok := nextNumber(name); ok && n > 0 && n < 1<<31 && (len(rest) == 0 || rest[0] == 0) {
			to = append(to, int(n))
		}
		b = b[size:]
	}
	return to
}

// isProc tells whether a file is the kernel's own of a procfs, and not one that was
// mounted over it.
func isProc(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
