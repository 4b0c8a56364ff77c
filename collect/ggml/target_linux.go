//go:build amd64 || arm64

package ggml

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// lookAgainEvery is how often a process that has not mapped all of a runtime yet is checked.
const lookAgainEvery = 500 * time.Millisecond

// processHandle refers to a process, whose end it shows even if the PID is reused.
type processHandle struct{ fd int }

// openProcess opens a handle of a process. It fails if there is no such process.
func openProcess(pid int) (*processHandle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("process %d does not exist; give a running process", pid)
	case err != nil:
		return nil, fmt.Errorf("open a handle of process %d: %w", pid, err)
	}
	return &processHandle{fd}, nil
}

// ended reports whether the process has ended, false for a nil handle.
func (l *processHandle) ended() bool {
	if l == nil {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

func (l *processHandle) close() error {
	if l == nil {
		return nil
	}
	return unix.Close(l.fd)
}

// firstNamespace is the inode of the initial PID namespace (include/uapi/linux/nsfs.h,
// PROC_PID_INIT_INO).
const firstNamespace = "pid:[4026531836]"

// inFirstNamespace reports whether PIDs of this process are those that BPF programs see.
func inFirstNamespace() bool {
	link, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && link == firstNamespace
}

// OwnPID returns the PID of this process as events have it; 0 in another PID namespace, where
// it is unknown.
func OwnPID() int {
	if !inFirstNamespace() {
		return 0
	}
	return os.Getpid()
}

// checkLate looks for a library with the operators that a process maps late.
func (s *Session) checkLate(now time.Duration) error {
	if s.runtime.PID == 0 || now < s.nextLook || s.runtime.Hook != binary.PointGraph {
		return nil
	}
	s.nextLook = now + lookAgainEvery
	files := mappedFiles(s.runtime.PID)
	if files == s.files {
		return nil
	}
	s.files = files
	r, err := binary.FromProcess(s.runtime.PID)
	if err == nil && r.Hook != binary.PointGraph {
		return s.switchRuntime(r)
	}
	return nil
}

// mappedFiles returns the mapped files of a process with code, one per line.
func mappedFiles(pid int) string {
	maps, _ := binary.Mappings(pid)
	var b strings.Builder
	for _, m := range maps {
		if m.Code {
			b.WriteString(m.Path)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// switchRuntime switches to another runtime.
func (s *Session) switchRuntime(r *binary.Runtime) error {
	if err := s.unloadRuntime(); err != nil {
		return err
	}
	s.runtime = r
	s.hookSeen = false
	if err := s.loadRuntime(); err != nil {
		return s.explain(err)
	}
	s.gaps.add(r.Gaps...)
	return s.SetDetail(s.detail)
}

// describe returns what the files and the machine show of a target.
func describe(r *binary.Runtime) optrace.Target {
	t := optrace.Target{
		PID: r.PID, Layout: r.Layout.From, Model: r.Model, Arch: runtime.GOARCH,
		Kernel: kernelRelease(), CPU: cpuModel(), CPUs: cpusOf(r.PID),
	}
	if r.Version != "" {
		t.Runtime = "ggml " + r.Version
	}
	if r.PID != 0 {
		t.Command = command(r.PID)
	}
	for _, image := range r.Images {
		t.Files = append(t.Files, optrace.File{Role: image.Role, Path: image.Path, BuildID: image.BuildID})
	}
	for i := range r.Places {
		p := &r.Places[i]
		t.Sites = append(t.Sites, p.Site)
		if p.Point == r.Hook && r.Hook != binary.PointGraph && t.Hook == "" {
			t.Hook = p.Symbol
		}
	}
	if r.Hook == binary.PointOpEach {
		t.Hook = "ggml_compute_forward_<op>"
	}
	return t
}

// command returns a process's command line without its secrets, "" if unknown.
func command(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	words := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
	return strings.TrimSpace(strings.Join(withoutSecrets(words), " "))
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// cpuModel returns the CPU's name, "" if unknown (/proc/cpuinfo; arm64 has none there).
func cpuModel() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// cpusOf returns how many CPUs a process may use; PID 0 is this process.
func cpusOf(pid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return runtime.NumCPU()
	}
	return set.Count()
}
