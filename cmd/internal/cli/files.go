package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/catalog"
)

// fifoWithin is how long Open waits for a program that writes to a FIFO.
var fifoWithin = 10 * time.Second

// Open opens a file that the user named, for reading. A FIFO that no program writes to within 10 s is empty: opening
// it like other files would wait forever.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	switch info, err := f.Stat(); {
	case err == nil && info.IsDir():
		_ = f.Close()
		return nil, fmt.Errorf("%s is a directory", path)
	case err == nil && info.Mode()&fs.ModeNamedPipe != 0:
		awaitWriter(f)
	}
	return f, nil
}

// awaitWriter returns once a FIFO has something to read, or its writer has come and gone.
func awaitWriter(f *os.File) {
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) {
		for end := time.Now().Add(fifoWithin); time.Now().Before(end); {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(fifoWithin.Milliseconds()))
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
}

// ReadFile reads a file of at most limit bytes. It fails if the file is larger.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A device or a pipe does not report its size.
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is larger than %d KiB", path, limit>>10)
	}
	return text, err
}

// StateDir returns the directory for the user's persistent state.
func StateDir(env func(string) (string, bool)) (string, error) {
	// Relative paths are ignored (XDG base directories).
	if dir, ok := env("XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return dir, nil
	}
	if home, ok := env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state"), nil
	}
	return "", errors.New("no state directory: neither XDG_STATE_HOME nor HOME is an absolute path")
}

// MaxTries limits how many numbered names are tried for a new file.
const MaxTries = 100

// Numbered returns the name for try n: with a number from the second try on.
func Numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

// StampLayout is the format of times in file names.
const StampLayout = "20060102-150405"

// MaxCatalogFile limits the size of a user's catalog, in bytes.
const MaxCatalogFile = 1 << 20

// UserCatalog returns the built-in catalog, extended by the user's file if path is not "", and the
// text of that file.
func UserCatalog(path string) (*catalog.Catalog, string, error) {
	c := catalog.Default()
	if path == "" {
		return c, "", nil
	}
	text, err := ReadFile(path, MaxCatalogFile)
	if err != nil {
		return nil, "", Usagef("--catalog: %w", err)
	}
	if c, err = c.With(bytes.NewReader(text), path); err != nil {
		return nil, "", Usagef("--catalog: %w", err)
	}
	return c, string(text), nil
}
