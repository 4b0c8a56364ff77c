//go:build unix

package binary

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// identityOf returns the device and inode of a file.
func identityOf(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, nil
	}
	device := uint64(s.Dev) //nolint:gosec,unconvert // its type differs by system
	return identity{fmt.Sprintf("%02x:%02x", unix.Major(device), unix.Minor(device)), s.Ino}, nil
}
