package apply

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

// openStream opens the target of a process's standard stream again, with the rights of the process's
// user: another user may have opened it, or the process for something else. It returns nil without an
// error for /dev/null and for a closed stream.
func openStream(pid, fd int, target string, by launcher.Owner) (*os.File, error) {
	if target == "" || target == os.DevNull {
		return nil, nil
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	mode := unix.O_WRONLY
	if fd == 0 {
		mode = unix.O_RDONLY
	}
	if info.Mode().IsRegular() {
		mode |= unix.O_APPEND
	} else if f, err := duplicate(pid, fd, target); err == nil {
		return f, nil
	}
	if strings.HasPrefix(target, "socket:") {
		return nil, errStream
	}
	object, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(object)
	var opened int
	if err := by.Do(func() (err error) {
		// Opening a pipe without a reader or writer would block without end.
		opened, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", object), mode|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		return err
	}); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(opened, false); err != nil {
		_ = unix.Close(opened)
		return nil, err
	}
	return os.NewFile(uintptr(opened), target), nil
}

// duplicate duplicates the descriptor of the process, which needs permission to trace it.
func duplicate(pid, fd int, target string) (*os.File, error) {
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(handle)
	taken, err := unix.PidfdGetfd(handle, fd, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(taken), target), nil
}
