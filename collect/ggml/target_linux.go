//go:build amd64 || arm64

package ggml

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// lookAgainEvery is how often the files of a process are looked at that has not mapped
// all of a runtime yet, and lookAgainFor how long one that became another program has
// for it.
const (
	lookAgainEvery = 500 * time.Millisecond
	lookAgainFor   = 10 * time.Second
)

// lifeline tells of a process's end, also where its PID is used again.
type lifeline struct{ fd int }

// openProcess takes hold of a process.
func openProcess(pid int) (*lifeline, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("there is no process %d (any more); name one that runs", pid)
	case err != nil:
		return nil, fmt.Errorf("take hold of process %d: %w", pid, err)
	}
	return &lifeline{fd}, nil
}

// gone says that the process has ended.
func (l *lifeline) gone() bool {
	if l == nil {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

func (l *lifeline) close() error {
	if l == nil {
		return nil
	}
	return unix.Close(l.fd)
}

// firstNamespace is the inode of the machine's first PID namespace
// (include/uapi/linux/nsfs.h, PROC_PID_INIT_INO).
const firstNamespace = "pid:[4026531836]"

// inFirstNamespace says that PIDs here are those that programs in the kernel see.
func inFirstNamespace() bool {
	link, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && link == firstNamespace
}

// OwnPID is the PID of this process as events have it; 0 where that is not known, since
// PIDs here are not those that programs in the kernel see.
func OwnPID() int {
	if !inFirstNamespace() {
		return 0
	}
	return os.Getpid()
}

// Wait waits until a process has mapped a GGML runtime, for those that load it late. It
// ends with ctx, or when the process ends.
func Wait(ctx context.Context, pid int) (*layouts.Runtime, error) {
	life, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	defer life.close()
	for {
		r, err := layouts.FromProcess(pid)
		if err == nil {
			return r, nil
		}
		if life.gone() {
			return nil, fmt.Errorf("process %d ended before it loaded a GGML runtime", pid)
		}
		timer := time.NewTimer(lookAgainEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("process %d has not loaded a GGML runtime: %w", pid, err)
		case <-timer.C:
		}
	}
}

// becameAnother follows a target that executed another program: to its runtime, if it
// has one in time.
func (s *Session) becameAnother() error {
	pid := s.runtime.PID
	if pid == 0 {
		return nil // watched by file: the next process counts as well
	}
	if err := s.disarm(); err != nil {
		return err
	}
	s.decoder.forgetAll()
	s.again = monotonic() + s.patience
	return nil
}

// checkLate looks for what a process maps late: all of a runtime after it became
// another program, or the library with the operators.
func (s *Session) checkLate(now time.Duration) error {
	if s.runtime.PID == 0 || now < s.nextLook || s.again == 0 && s.runtime.Hook != layouts.PointGraph {
		return nil
	}
	s.nextLook = now + lookAgainEvery
	files := mappedFiles(s.runtime.PID)
	if s.again == 0 && files == s.files {
		return nil
	}
	s.files = files
	r, err := layouts.FromProcess(s.runtime.PID)
	if err == nil && (s.again != 0 || r.Hook != layouts.PointGraph) {
		s.again = 0
		return s.rearm(r)
	}
	if s.again != 0 && now >= s.again {
		s.end = fmt.Errorf("%w: process %d executed %s, which has no GGML runtime after %v; trace it anew when it has",
			ErrGone, s.runtime.PID, command(s.runtime.PID), s.patience)
	}
	return nil
}

// mappedFiles are the files with code that a process has mapped, as one string.
func mappedFiles(pid int) string {
	maps, err := mappings(pid)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, m := range maps {
		if m.execute {
			b.WriteString(m.path)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// rearm watches a runtime in place of the one before.
func (s *Session) rearm(r *layouts.Runtime) error {
	if err := s.disarm(); err != nil {
		return err
	}
	s.runtime = r
	s.hookSeen = false
	if err := s.arm(); err != nil {
		return s.explain(err)
	}
	s.gaps.add(r.Gaps...)
	return s.SetDetail(s.detail)
}

// noteMemory says why what lies in the target's memory is not known.
func (s *Session) noteMemory(err error) {
	if errors.Is(err, os.ErrPermission) {
		s.gaps.add(optrace.Gap{
			What: "names and types of weights", Why: "the target's memory cannot be read: " + err.Error(),
			Next: "run as root, or with CAP_SYS_PTRACE",
		})
	}
}

// describe is what the files and the machine tell of a target.
func describe(r *layouts.Runtime) optrace.Target {
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
		if p.Point == r.Hook && r.Hook != layouts.PointGraph && t.Hook == "" {
			t.Hook = p.Symbol
		}
	}
	if r.Hook == layouts.PointOpEach {
		t.Hook = "ggml_compute_forward_<op>"
	}
	return t
}

// command is a process's command line without its secrets, "" unknown.
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

// cpuModel is the CPU's name (/proc/cpuinfo; arm64 has none there).
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

// cpusOf is how many CPUs a process may use, of this process for PID 0.
func cpusOf(pid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return runtime.NumCPU()
	}
	return set.Count()
}
