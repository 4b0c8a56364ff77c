package proc

import (
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

// isProc reports whether a file belongs to a procfs, rather than having been mounted
// over one of its files.
func isProc(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
