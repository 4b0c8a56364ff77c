package launcher

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Files that are replaced by what never ends or never begins are refused, and do not hang a change or a revert.
func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "server.yaml")
	must(t, os.WriteFile(path, []byte("port: 1\n"), 0o600))
	f, err := ReadFile(path)
	must(t, err)
	replaced := map[string]func() error{
		"a FIFO":    func() error { return syscall.Mkfifo(path, 0o600) },
		"a device":  func() error { return os.Symlink("/dev/zero", path) },
		"a folder":  func() error { return os.Mkdir(path, 0o700) },
		"too large": func() error { return os.WriteFile(path, make([]byte, launch.MaxConfigBytes+1), 0o600) },
	}
	for name, replace := range replaced {
		must(t, os.Remove(path))
		must(t, replace())
		want := path + " is not a regular file"
		if name == "too large" {
			want = path + " has "
		}
		if _, err := ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s is read: %v", name, err)
		}
		if same, err := f.Unchanged(); err == nil || same {
			t.Errorf("%s is unchanged: %v, %v", name, same, err)
		}
		if name == "too large" || name == "a folder" {
			continue
		}
		if _, err := OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			t.Errorf("%s is opened for writing", name)
		}
	}
	must(t, os.RemoveAll(path))
	must(t, syscall.Mkfifo(path, 0o600))
	if err := f.Replace(); err != nil {
		t.Errorf("replace a FIFO: %v", err)
	}
	if same, err := f.Unchanged(); err != nil || !same {
		t.Errorf("replaced: %v, %v", same, err)
	}
}

// TestAnAccessControlListStays: a new file has none, and its group would be permitted what the list's mask is.
func TestAnAccessControlListStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.yaml")
	if err := os.WriteFile(path, []byte("port: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Replaceable(); err != nil {
		t.Fatalf("without a list: %v", err)
	}
	list := []byte{2, 0, 0, 0} // linux/posix_acl_xattr.h; then the tag, the permissions and the user of each entry
	for _, e := range [][3]uint32{{0x01, 6, 1<<32 - 1}, {0x02, 4, 1234}, {0x04, 0, 1<<32 - 1}, {0x10, 4, 1<<32 - 1}, {0x20, 0, 1<<32 - 1}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", list, 0); err != nil {
		t.Skipf("NOT CHECKED: that a file with an access control list is not replaced: %v", err)
	}
	if err := f.Replaceable(); err == nil || !strings.Contains(err.Error(), "has an access control list") {
		t.Errorf("with a list: %v", err)
	}
}
