package atomicfile

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("rooftop", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NOT CHECKED: a file on a full disk; one of the test's own needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "a")
	must(t, Write(path, 0o600, text("old")))
	err := Write(path, 0o600, text(strings.Repeat("x", 2<<20)))
	if want := "write " + path + ": no space left in " + dir + "; free some, or choose another place"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	holds(t, path, "old")
}
