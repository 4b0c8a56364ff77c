package proc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFilesOfAServerAreReadAsItsUser checks that files are read with the rights of the server's
// user, who may link them to files of root.
func TestFilesOfAServerAreReadAsItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: that root reads nothing through a user's links; only root can be led")
	}
	const nobody = 65534
	base, err := os.MkdirTemp("", "rooftop-read-") // every user reaches it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	in := func(name string) string { return filepath.Join(base, name) }
	if err := errors.Join(
		os.Chmod(base, 0o755), os.MkdirAll(in("closed/open"), 0o755), os.Chmod(in("closed"), 0o700),
		os.WriteFile(in("closed/open/c.yaml"), []byte("secret"), 0o644), os.WriteFile(in("private"), []byte("secret"), 0o600), os.WriteFile(in("public"), []byte("text"), 0o644),
		os.WriteFile(in("own"), []byte("text"), 0o600), os.Chown(in("own"), nobody, nobody), os.Symlink(in("own"), in("own link")),
		os.Symlink(in("private"), in("link")), os.Symlink("/proc/self/cwd/c.yaml", in("magic")), os.Symlink(in("closed"), in("dir")),
		syscall.Mkfifo(in("FIFO"), 0o666), os.Symlink(in("FIFO"), in("FIFO link")), os.Symlink("/dev/zero", in("device")), os.Link(in("private"), in("second name")),
	); err != nil {
		t.Fatal(err)
	}
	t.Chdir(in("closed/open"))
	server := exec.Command("sleep", "600")
	server.Dir = "/"
	server.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	f, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"public": "text", "own": "text", "own link": "text",
		"private": "", "link": "", "magic": "", "dir/open/c.yaml": "", "second name": "", "FIFO": "", "FIFO link": "", "device": "",
	} {
		text, _, err := f.serverFile(server.Process.Pid, "/", in(name), 100)
		if string(text) != want || (err == nil) != (want != "") {
			t.Errorf("%s: read %q, %v", name, text, err)
		}
	}
}
