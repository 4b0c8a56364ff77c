//go:build !linux

package proc

import "os"

// AsUser calls do: processes are read only on Linux.
func AsUser(_, _ int, _ []int, do func() error) error { return do() }

// OpenFile is [os.OpenFile].
func OpenFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}
