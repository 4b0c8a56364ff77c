package serverdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// mounted is a small file system of its own.
func mountedFS(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("rooftop", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("NOT CHECKED: a full and a read-only file system; one of the test's own needs root: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

func TestFullDisk(t *testing.T) {
	t.Run("refused before anything is touched", func(t *testing.T) {
		_, err := OpenStore(filepath.Join(mountedFS(t, "size=2m"), "servers"), server(t), "")
		var state *StateError
		if !errors.As(err, &state) || !strings.Contains(err.Error(), "less than 4 MiB is free") {
			t.Errorf("got %v", err)
		}
	})
	// A disk that fills up while a run goes on does not keep it from being written
	// down to its end: the room was held for that.
	t.Run("while a run goes on", func(t *testing.T) {
		dir := mountedFS(t, "size=6m")
		s := open(t, dir, server(t))
		write(t, s, journal.Record{Kind: journal.Begin})
		fill, err := os.Create(filepath.Join(dir, "fill"))
		must(t, err)
		for err == nil {
			_, err = fill.Write(make([]byte, 4096))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		fill.Close()
		name := ""
		for range 100 {
			write(t, s, journal.Record{Kind: journal.Intent, Text: strings.Repeat("x", 500)}, journal.Record{Kind: journal.Reverted})
			name, err = s.Keep(&launcher.Launch{Argv: []string{"a"}, Env: []string{strings.Repeat("x", 10000)}})
			must(t, err)
		}
		if _, err := ReadLaunch(s.dir, name); err != nil {
			t.Error(err)
		}
		must(t, s.End(0, ""))
		records, err := Records(s.Dir())
		if err != nil || len(records) != 202 {
			t.Errorf("%d records, %v", len(records), err)
		}
	})
}

func TestReadOnlyStateDirectory(t *testing.T) {
	dir := mountedFS(t, "size=8m")
	must(t, os.Mkdir(filepath.Join(dir, "servers"), 0o700))
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err := OpenStore(filepath.Join(dir, "servers"), server(t), "")
	var state *StateError
	if !errors.As(err, &state) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v", err)
	}
	// What cannot be written can still be looked at.
	if list, err := Unread(filepath.Join(dir, "servers")); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestWhatDoesNotEndIsNotRead: a FIFO and a device in place of the files of a server.
func TestWhatDoesNotEndIsNotRead(t *testing.T) {
	for _, name := range []string{journalName, earlierName, identityName, launchPrefix + "0.json", lockName} {
		for how, put := range map[string]func(path string) error{
			"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			dir := t.TempDir()
			must(t, writeIdentity(dir, server(t)))
			path := filepath.Join(dir, name)
			_ = os.Remove(path)
			must(t, put(path))
			done := make(chan error)
			go func() {
				_, launch := ReadLaunch(dir, name)
				_, doubt, err := ReadState(dir)
				s, open := OpenUnfinished(dir, "")
				if open == nil {
					open = s.Release()
				}
				_, _, _ = readShort(path), Knows(dir, journal.Process{}), doubt
				done <- errors.Join(launch, err, open)
			}()
			select {
			case err := <-done:
				if name != lockName && (err == nil || !strings.Contains(err.Error(), path+" is not a regular file")) {
					t.Errorf("%s in place of %s: %v", how, name, err)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s in place of %s: it hangs", how, name)
			}
		}
	}
}
