//go:build amd64 || arm64

package ggml

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// readMemory reads a process's memory, like /proc/PID/mem but without an open file.
func readMemory(pid int, addr uint64, to []byte) error {
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(to)}}
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if err != nil {
		return err
	}
	if n != len(to) {
		return errNoMemory
	}
	return nil
}

// targetMemory reads the memory of a target. Events from another PID namespace carry PIDs that
// are invalid here, so the PID of the runtime is used if there is one.
type targetMemory struct {
	pid  int // of the runtime, 0 if unknown
	gaps *gaps
}

func (t targetMemory) process(pid int32) int { return cmp.Or(t.pid, int(pid)) }

func (t targetMemory) read(pid int32, addr uint64, to []byte) error {
	err := readMemory(t.process(pid), addr, to)
	if errors.Is(err, os.ErrPermission) {
		t.gaps.add(optrace.Gap{
			What: "names and types of weights", Why: "the target's memory cannot be read: " + err.Error(),
			Next: "run as root, or with CAP_SYS_PTRACE",
		})
	}
	return err
}

// backendGetName is the offset of get_name in struct ggml_backend (ggml-backend-impl.h): guid,
// then the interface, of which it is the first member.
const backendGetName = 8

// backendName returns the name of a backend. get_name of most backends returns a constant
// string, whose address its code contains; otherwise the name comes from the file that contains
// the function.
func (t targetMemory) backendName(pid int32, addr uint64) string {
	var word [8]byte
	if t.read(pid, addr+backendGetName, word[:]) != nil {
		return ""
	}
	function := binary.LittleEndian.Uint64(word[:])
	var body [16]byte
	if t.read(pid, function, body[:]) == nil {
		if at, ok := constantReturned(body[:], function); ok {
			if name := t.text(pid, at); name != "" {
				return name
			}
		}
	}
	maps, _ := layouts.Mappings(t.process(pid))
	for _, m := range maps {
		if m.Code && function >= m.Begin && function < m.End {
			return backendOfFile(m.Path)
		}
	}
	return ""
}

// backendOfFile returns the backend's name by that of its library: libggml-cuda.so is CUDA.
func backendOfFile(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".so")
	if rest, ok := strings.CutPrefix(name, "libggml-"); ok {
		rest, _, _ = strings.Cut(rest, "-")
		return strings.ToUpper(rest)
	}
	return name
}

// maxText is the length of the longest name of a backend.
const maxText = 64

// text reads a string of printable characters, "" if there is none.
func (t targetMemory) text(pid int32, addr uint64) string {
	raw := make([]byte, maxText)
	if t.read(pid, addr, raw) != nil {
		return ""
	}
	n := bytes.IndexByte(raw, 0)
	if n <= 0 {
		return ""
	}
	for _, c := range raw[:n] {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return string(raw[:n])
}

// constantReturned returns the address that an x86-64 function returns if it does nothing else:
// [endbr64] lea rax, [rip+x]; ret.
func constantReturned(code []byte, at uint64) (uint64, bool) {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) {
		code, at = code[4:], at+4
	}
	if len(code) < 8 || !bytes.HasPrefix(code, []byte{0x48, 0x8d, 0x05}) || code[7] != 0xc3 {
		return 0, false
	}
	return at + 7 + uint64(int64(int32(binary.LittleEndian.Uint32(code[3:])))), true
}
