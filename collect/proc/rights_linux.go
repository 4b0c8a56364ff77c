package proc

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsUser calls do with the rights to files of a user and groups, if this process is root and the
// user is not; otherwise it only calls do. Whatever names and links the user puts in the way, do
// reads and writes nothing that the user could not. It must not start programs or goroutines,
// which do not have these rights.
func AsUser(uid, gid int, groups []int, do func() error) error {
	if os.Geteuid() != 0 || uid <= 0 {
		return do()
	}
	done := make(chan error, 1)
	go func() {
		// The thread is not unlocked, so that it ends with this goroutine, and its rights with it.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the first thread cannot end: use another one
			defer runtime.UnlockOSThread()
			done <- AsUser(uid, gid, groups, do)
			return
		}
		if err := assumeFiles(uid, gid, groups); err != nil {
			done <- fmt.Errorf("rights of user %d: %w", uid, err)
			return
		}
		done <- do()
	}()
	return <-done
}

// assumeFiles gives the calling thread a user's rights to files, and no others.
func assumeFiles(uid, gid int, groups []int) error {
	if err := unix.Setgroups(groups); err != nil {
		return err
	}
	_ = unix.Setfsgid(gid) // these two do not report errors
	_ = unix.Setfsuid(uid)
	if now, _ := unix.SetfsgidRetGid(-1); now != gid || fileUser() != uid {
		return unix.EPERM
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// fileUser returns the user whose rights to files the calling thread has.
func fileUser() int {
	uid, _ := unix.SetfsuidRetUid(-1)
	return uid
}

// OpenFile is [os.OpenFile]. With the rights of another user it follows no link of /proc, by which
// that user would come to what only this process has open.
func OpenFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	if fileUser() == os.Geteuid() {
		return os.OpenFile(path, flag, perm)
	}
	how := &unix.OpenHow{Flags: uint64(flag | unix.O_CLOEXEC), Mode: uint64(perm), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
