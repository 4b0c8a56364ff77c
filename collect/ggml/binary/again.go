package binary

import (
	"fmt"
	"os"
)

// Again opens the file that the image was read from once more, to attach to it. It fails
// where another one has its name by now, or where the file was written since: offsets of
// the one that was read would lie in the middle of instructions, and a probe there ends
// whoever runs them. An image that was not read from a file is opened as it is.
func (i *Image) Again() (*os.File, error) {
	f, err := os.Open(i.Open)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.Path, plain(err))
	}
	info, err := f.Stat()
	if err == nil && i.read != nil && !sameContent(i.read, info) {
		err = errReplaced
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s was replaced or written since it was read (%w): trace anew", i.Path, plain(err))
	}
	return f, nil
}

// sameContent says that a file is the one it was, and was not written since.
func sameContent(then, now os.FileInfo) bool {
	return os.SameFile(then, now) && then.Size() == now.Size() && then.ModTime().Equal(now.ModTime())
}
