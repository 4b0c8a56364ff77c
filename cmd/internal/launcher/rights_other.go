//go:build !linux

package launcher

import "os"

// Do calls do: rooftop restarts servers only on Linux.
func (o Owner) Do(do func() error) error { return do() }

func openFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}
