package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func variables(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.Index(pairs, name)
		if i < 0 || i%2 == 1 {
			return "", false
		}
		return pairs[i+1], true
	}
}

func TestStateDir(t *testing.T) {
	for _, c := range []struct {
		name string
		env  func(string) (string, bool)
		want string
	}{
		{"given", variables("XDG_STATE_HOME", "/state", "HOME", "/home/me"), "/state"},
		{"relative", variables("XDG_STATE_HOME", "state", "HOME", "/home/me"), "/home/me/.local/state"},
		{"at home", variables("HOME", "/home/me"), "/home/me/.local/state"},
		{"nowhere", variables(), ""},
	} {
		got, err := StateDir(c.env)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// TestOpenEnds checks that a FIFO without a writer and an endless device are files like others.
func TestOpenEnds(t *testing.T) {
	defer func(within time.Duration) { fifoWithin = within }(fifoWithin)
	fifoWithin = time.Millisecond
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(fifo, 1<<10); len(text) > 0 || err != nil {
		t.Errorf("a FIFO: %q, %v", text, err)
	}
	fifoWithin = time.Hour
	go func() { _ = os.WriteFile(fifo, []byte("late"), 0) }()
	if text, err := ReadFile(fifo, 1<<10); string(text) != "late" || err != nil {
		t.Errorf("a FIFO: %q, %v", text, err)
	}
	for path, want := range map[string]string{"/dev/zero": "larger than 1 KiB", t.TempDir(): "is a directory"} {
		if _, err := ReadFile(path, 1<<10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
