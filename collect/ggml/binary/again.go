package binary

import (
	"fmt"
	"os"
	"syscall"
)

// Reopen opens the file that the image was read from again, to attach to it. It fails if the
// path names another file by now, or if the file was written since: the old offsets would be in
// the middle of instructions, and a probe there kills any process that runs them. An image that
// was not read from a file is opened without these checks.
func (i *Image) Reopen() (*os.File, error) {
	f, err := os.OpenFile(i.Open, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO may have taken its place
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.Path, plain(err))
	}
	info, err := f.Stat()
	if err == nil && i.read != nil && !sameContent(i.read, info) {
		err = errReplaced
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s was replaced or written since it was read (%w): trace again", i.Path, plain(err))
	}
	return f, nil
}

// sameContent reports whether both describe the same file, not written in between.
func sameContent(then, now os.FileInfo) bool {
	return os.SameFile(then, now) && then.Size() == now.Size() && then.ModTime().Equal(now.ModTime())
}
