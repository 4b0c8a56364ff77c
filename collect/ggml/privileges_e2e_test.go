//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// nobody is a user without privileges.
const nobody = 65534

// attemptOf is the environment variable with the process to trace, for this test run as another
// user.
const attemptOf = "ROOFTOP_TEST_ATTEMPT"

// attempt traces a process and prints the result.
func attempt(pid int) {
	for _, r := range Ladder() {
		fmt.Printf("rung %s: %v; %s; %s; %s\n", r.Name, r.OK, r.Found, r.Missing, r.Next)
	}
	r, err := layouts.FromProcess(pid)
	if err != nil { // without the right to read it
		r = &layouts.Runtime{PID: pid}
	}
	s, err := Open(r, Options{})
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	defer s.Close()
	if err := s.SetDetail(optrace.LevelTensor | optrace.DetailSched); err != nil {
		fmt.Println("refused:", err)
		return
	}
	fmt.Println("attached")
	_, _ = fmt.Scanln()
	s.drain()
	kinds := map[optrace.Kind]int{}
	for _, e := range s.decoder.out.takeUntil(1 << 62) {
		kinds[e.Kind]++
	}
	fmt.Printf("operators %d, switches %d, gaps %v\n", kinds[optrace.OpBegin], kinds[optrace.SwitchIn], s.Gaps())
}

// fileCapabilities gives a program CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, like setcap(8)
// (struct vfs_cap_data of include/uapi/linux/capability.h, revision 2, effective).
func fileCapabilities(path string) error {
	var data []byte
	low, high := uint32(1<<unix.CAP_SYS_PTRACE), uint32(1<<(unix.CAP_BPF-32)|1<<(unix.CAP_PERFMON-32))
	for _, word := range []uint32{0x02000001, low, 0, high, 0} {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	return unix.Setxattr(path, "security.capability", data, 0)
}

// as runs this test as nobody with capabilities, those of its file or of its parent's, and
// decodes once it is attached.
func as(t *testing.T, k *known, ofFile bool, caps ...uintptr) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rooftop-ladder")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	self := filepath.Join(dir, "test")
	raw, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	if ofFile {
		if err := fileCapabilities(self); err != nil {
			t.Skipf("NOT CHECKED: capabilities of a file (%v)", err)
		}
	}
	cmd := exec.Command(self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", attemptOf, k.pid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: caps}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("NOT CHECKED: privileges (%v)", err)
	}
	defer cmd.Wait()
	var said bytes.Buffer
	buf := make([]byte, 4096)
	for {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if strings.Contains(said.String(), "attached\n") {
			k.decode(t, 2, 5, 1, 0)
			io.WriteString(in, "\n")
			rest, _ := io.ReadAll(out)
			said.Write(rest)
			return said.String()
		}
		if err != nil {
			return said.String()
		}
	}
}

// Without privileges there is an error instead of an empty trace; two capabilities give a
// complete one.
func TestE2EPrivileges(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	both := []string{"rung privileges: true", "rung programs: true", "attached", "operators 8, switches"}
	if !haveMulti() { // probes one by one are for root
		both = []string{"rung privileges: true", "rung uprobe_multi: false", "refused: not permitted: uprobe_multi", "install Linux 6.6"}
	}
	for name, c := range map[string]struct {
		caps   []uintptr
		want   []string
		ofFile bool
	}{
		"none":    {nil, []string{"rung privileges: false", "refused: not permitted: privileges", "CAP_BPF and CAP_PERFMON", "sudo setcap"}, false},
		"bpf":     {[]uintptr{unix.CAP_BPF}, []string{"rung ring buffer: true", "refused: not permitted", "CAP_PERFMON"}, false},
		"perfmon": {[]uintptr{unix.CAP_PERFMON}, []string{"rung ring buffer: false", "refused: not permitted", "CAP_BPF"}, false},
		"both":    {[]uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE}, both, false},
		"setcap":  {nil, both, true},
	} {
		said := as(t, k, c.ofFile, c.caps...)
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
		if strings.Contains(said, "cannot be read") {
			t.Errorf("%s: %s", name, said)
		}
	}
}
