//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// namespaceOf is the environment variable with the program to start and trace, for this test
// run in its own PID and mount namespaces.
const namespaceOf = "ROOFTOP_TEST_NAMESPACE"

// inNamespace starts the program, traces it and prints the result: PIDs here differ from those
// that BPF programs see.
func inNamespace(program string) error {
	if err := errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		return err
	}
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Process.Kill()
	line := make([]byte, 64)
	if _, err := out.Read(line); err != nil { // ready
		return err
	}
	r, err := layouts.FromProcess(cmd.Process.Pid)
	if err != nil {
		return err
	}
	s, err := Open(r, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.SetDetail(optrace.LevelTensor); err != nil {
		return err
	}
	if _, err := io.WriteString(in, "decode 2 5 1 0\n"); err != nil {
		return err
	}
	if _, err := out.Read(line); err != nil { // done
		return err
	}
	s.drain()
	var said []string
	for _, e := range of(s.decoder.out.takeUntil(1<<62), optrace.OpBegin) {
		said = append(said, text(s.Tables(), e))
	}
	fmt.Printf("pid %d, first namespace %v\n%s\n", cmd.Process.Pid, inFirstNamespace(), strings.Join(said, "\n"))
	return nil
}

// In a container with its own PIDs the target is found and its memory read.
func TestE2EPIDNamespace(t *testing.T) {
	b := build(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), namespaceOf+"="+b.program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("NOT CHECKED: a PID namespace of its own (%v %s)", err, out)
	}
	if !strings.Contains(string(out), "first namespace false") {
		t.Errorf("%s", out)
	}
	for _, want := range sequence[1:] {
		if strings.Count(string(out), want) != 2 {
			t.Errorf("no %q twice in\n%s", want, out)
		}
	}
}
