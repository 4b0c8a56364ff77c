//go:build unix

package binary

import (
	"os"
	"syscall"
)

// inodeOf is the number of a file on its file system, 0 where that is not known.
func inodeOf(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, nil
	}
	return 0, nil
}
