package proc

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock returns the user and system time of a process, ended threads included,
// with nanosecond resolution; false if there is no such process. It reads the clock
// of clock_getcpuclockid(3), whose ID is the complement of the PID shifted left by 3,
// combined with CPUCLOCK_SCHED (include/linux/posix-timers.h).
//
// The ticks of /proc/PID/stat are the same time truncated to 10 ms, an error of a tenth
// of a core over 200 ms, and cost five times as much to read. A thread that runs on
// another CPU counts up to the scheduler's last tick there.
func cpuClock(pid int) (time.Duration, bool) {
	const sched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// numberedEntries appends to a list the numeric names in an open directory. It
// rewinds the directory first.
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

// appendEntries parses linux_dirent64 records (getdents(2)): inode and offset of 8
// bytes each, record length in 2, type in 1, then the name up to a NUL.
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

// isProc reports whether a file belongs to a procfs, rather than having been mounted
// over one of its files.
func isProc(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
