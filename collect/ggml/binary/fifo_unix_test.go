//go:build unix

package binary

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A FIFO that takes the place of a file of the target is not waited for.
func TestAFIFOIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libggml.so")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := openRegular(path); err == nil {
		t.Error("it is opened")
	}
	if _, err := (&Image{Path: path, Open: path, read: read}).Reopen(); !errors.Is(err, errReplaced) {
		t.Errorf("opened again: %v", err)
	}
}
