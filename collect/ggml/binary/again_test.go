package binary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file is reopened only while it is the one that was read.
func TestAFileIsOpenedAgainWhileItIsTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libggml-cpu.so")
	put := func(to, text string) {
		t.Helper()
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(path, "one")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	image := &Image{Path: "/inside/libggml-cpu.so", Open: path, read: info}
	again := func() error {
		f, err := image.Reopen()
		if err == nil {
			err = f.Close()
		}
		return err
	}
	if err := again(); err != nil {
		t.Errorf("the same file: %v", err)
	}
	later := info.ModTime().Add(time.Second)
	for name, change := range map[string]func(){
		"written":  func() { put(path, "two") },
		"longer":   func() { put(path, "longer") },
		"replaced": func() { put(path+".new", "one"); _ = os.Rename(path+".new", path) },
		"gone":     func() { _ = os.Remove(path) },
	} {
		put(path, "one")
		if image.read, err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
		change()
		_ = os.Chtimes(path, later, later)
		if err := again(); err == nil || !strings.Contains(err.Error(), image.Path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
