package binary

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Candidate is a running process that has mapped a GGML runtime.
type Candidate struct {
	PID     int
	Command string // its command line, arguments separated by spaces
}

// maxCommand is the number of bytes of a command line that are read.
const maxCommand = 4096

// Find lists the processes that have mapped a GGML runtime, by PID. Processes that cannot be
// read are left out. The root is "/proc", or a folder with the same structure.
func Find(root string) ([]Candidate, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, plain(err)
	}
	seen := map[string]bool{} // whether a file contains a runtime
	var found []Candidate
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 0 {
			continue
		}
		p := process{filepath.Join(root, e.Name())}
		if c, ok := p.candidate(pid, seen); ok {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b Candidate) int { return a.PID - b.PID })
	return found, nil
}

// candidate reports whether a process has mapped a runtime. seen caches the result per file for
// all processes.
func (p process) candidate(pid int, seen map[string]bool) (Candidate, bool) {
	files, err := p.files()
	if err != nil {
		return Candidate{}, false
	}
	for i := range files {
		m := &files[i]
		if !m.code {
			continue
		}
		key := m.device + " " + strconv.FormatUint(m.inode, 10) + m.path
		holds, known := seen[key]
		if !known {
			holds = p.holds(m)
			seen[key] = holds
		}
		if holds {
			return Candidate{PID: pid, Command: p.command()}, true
		}
	}
	return Candidate{}, false
}

// holds reports whether a mapped file belongs to a GGML runtime.
func (p process) holds(m *mapping) bool {
	s, err := p.source(m)
	if err != nil {
		return isRuntimeName(filepath.Base(m.path))
	}
	one, err := openPart(s)
	if err != nil {
		return false
	}
	defer one.close()
	return true
}

func (p process) command() string {
	f, err := os.Open(filepath.Join(p.folder, "cmdline"))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, maxCommand)
	n, _ := f.Read(b)
	return strings.TrimSpace(strings.ReplaceAll(string(b[:n]), "\x00", " "))
}
