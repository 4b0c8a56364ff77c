package launcher

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Do calls do with the rights to files of the owner, if this process is root and the owner is
// somebody else; otherwise it only calls do. Whatever names and links the owner puts in the way,
// do reads and writes nothing that the owner could not. It must not start programs or goroutines,
// which do not have these rights.
func (o Owner) Do(do func() error) error {
	if os.Geteuid() != 0 || o.UID <= 0 {
		return do()
	}
	done := make(chan error, 1)
	go func() {
		// The thread is not unlocked, so that it ends with this goroutine, and its rights with it.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the first thread cannot end: use another one
			defer runtime.UnlockOSThread()
			done <- o.Do(do)
			return
		}
		if err := o.assumeFiles(); err != nil {
			done <- fmt.Errorf("rights of user %d: %w", o.UID, err)
			return
		}
		done <- do()
	}()
	return <-done
}

// assumeFiles gives the calling thread the owner's rights to files, and no others.
func (o Owner) assumeFiles() error {
	if err := unix.Setgroups(o.Groups); err != nil {
		return err
	}
	_ = unix.Setfsgid(o.GID) // these two do not report errors
	_ = unix.Setfsuid(o.UID)
	if gid, _ := unix.SetfsgidRetGid(-1); gid != o.GID || fileUser() != o.UID {
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

// openFile is os.OpenFile. With the rights of another user it follows no link of /proc, by which
// that user would come to what only this process has open.
func openFile(path string, flag int, perm os.FileMode) (*os.File, error) {
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
