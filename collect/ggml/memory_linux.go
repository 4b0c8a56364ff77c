//go:build amd64 || arm64

package ggml

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// readMemory reads a process's memory: /proc/PID/mem without a file to keep.
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

// read reads the target's memory. Events of another PID namespace carry numbers that
// mean nothing here: the runtime's own is the right one.
func (s *Session) read(pid int32, addr uint64, to []byte) error {
	target := int(pid)
	if s.runtime.PID != 0 {
		target = s.runtime.PID
	}
	err := readMemory(target, addr, to)
	if err != nil {
		s.noteMemory(err)
	}
	return err
}

// mapping is a line of /proc/PID/maps.
type mapping struct {
	start, end uint64
	offset     uint64 // of start in the file
	execute    bool
	path       string
}

// mappings are the mapped files of a process.
func mappings(pid int) ([]mapping, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	return parseMappings(raw), nil
}

// parseMappings reads /proc/PID/maps (proc_pid_maps(5)); lines without a file are left
// out.
func parseMappings(raw []byte) []mapping {
	var all []mapping
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[4] == "0" {
			continue
		}
		var m mapping
		if _, err := fmt.Sscanf(f[0], "%x-%x", &m.start, &m.end); err != nil {
			continue
		}
		if _, err := fmt.Sscanf(f[2], "%x", &m.offset); err != nil {
			continue
		}
		m.execute = len(f[1]) > 2 && f[1][2] == 'x'
		m.path = strings.Join(f[5:], " ")
		all = append(all, m)
	}
	return all
}

// deleted is what the kernel writes behind the path of a file that is no longer there.
const deleted = " (deleted)"

// Of struct ggml_backend (ggml-backend-impl.h): guid, then the interface, whose first
// member is get_name.
const backendGetName = 8

// backendName finds what a backend is called. get_name of most returns a constant
// string, which its code shows; else it is the file in which the function lies.
func (s *Session) backendName(pid int32, addr uint64) string {
	var word [8]byte
	if s.read(pid, addr+backendGetName, word[:]) != nil {
		return ""
	}
	function := binary.LittleEndian.Uint64(word[:])
	var body [16]byte
	if s.read(pid, function, body[:]) == nil {
		if at, ok := constantReturned(body[:], function); ok {
			if name := s.text(pid, at); name != "" {
				return name
			}
		}
	}
	target := int(pid)
	if s.runtime.PID != 0 {
		target = s.runtime.PID
	}
	maps, err := mappings(target)
	if err != nil {
		return ""
	}
	for _, m := range maps {
		if m.execute && function >= m.start && function < m.end {
			return backendOfFile(m.path)
		}
	}
	return ""
}

// backendOfFile is the backend's name in that of its library: libggml-cuda.so is CUDA.
func backendOfFile(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), deleted)
	name, _, _ = strings.Cut(name, ".so")
	if rest, ok := strings.CutPrefix(name, "libggml-"); ok {
		rest, _, _ = strings.Cut(rest, "-")
		return strings.ToUpper(rest)
	}
	return name
}

// maxText is the longest name of a backend.
const maxText = 64

// text reads a string of printable characters; "" where there is none.
func (s *Session) text(pid int32, addr uint64) string {
	raw := make([]byte, maxText)
	if s.read(pid, addr, raw) != nil {
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

// constantReturned is the address that a function of x86-64 returns that does nothing
// else: [endbr64] lea rax, [rip+x]; ret.
func constantReturned(code []byte, at uint64) (uint64, bool) {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) {
		code, at = code[4:], at+4
	}
	if len(code) < 8 || !bytes.HasPrefix(code, []byte{0x48, 0x8d, 0x05}) || code[7] != 0xc3 {
		return 0, false
	}
	return at + 7 + uint64(int64(int32(binary.LittleEndian.Uint32(code[3:])))), true
}
