package binary

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// procRoot is the mount point of procfs.
const procRoot = "/proc"

// FromProcess reads the runtime that a running process has mapped. The files are opened as the
// process sees them, in its own mount namespace, even if they were deleted or replaced since.
// It fails if the process does not exist or cannot be read, and with [ErrNoRuntime] if it has
// not mapped GGML.
func FromProcess(pid int) (*Runtime, error) { return FromProcessIn(procRoot, pid) }

// FromProcessIn is [FromProcess] with another root than /proc.
func FromProcessIn(root string, pid int) (*Runtime, error) {
	p := process{filepath.Join(root, strconv.Itoa(pid))}
	files, err := p.files()
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, explain(root, err))
	}
	var sources []source
	var gaps []optrace.Gap
	var hidden []string // files with code that cannot be read
	for i := range files {
		if !files[i].code {
			continue
		}
		s, err := p.source(&files[i])
		if errors.Is(cmp.Or(err, readable(s)), fs.ErrPermission) {
			hidden = append(hidden, files[i].path)
		}
		if err != nil {
			if isRuntimeName(filepath.Base(files[i].path)) {
				gaps = append(gaps, lostFile(files[i].path, err))
			}
			continue
		}
		sources = append(sources, s)
	}
	found, err := newRuntimes(sources)
	if err != nil && len(gaps) > 0 {
		return nil, &unreadError{fmt.Sprintf("process %d: %s: %s; %s", pid, gaps[0].What, gaps[0].Why, gaps[0].Next)}
	}
	if err != nil && len(hidden) > 0 {
		return nil, unread(pid, hidden)
	}
	if i := slices.IndexFunc(sources, containsGGML); err != nil && i >= 0 {
		return nil, fmt.Errorf("process %d: %w", pid, &hiddenError{sources[i].path})
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w among its mapped files; give the process that computes (a server's child, say), or wait until it has loaded a model", pid, err)
	}
	for _, r := range found {
		r.PID = pid
		// Another copy than the one with llama.cpp computes other models.
		if r == found[0] || r.loadsGGUF() {
			r.Model = model(files)
		}
		r.Gaps = slices.Concat(gaps, r.Gaps)
	}
	return found[0], nil
}

// loadsGGUF reports whether a runtime has llama.cpp, which loads GGUF files.
func (r *Runtime) loadsGGUF() bool {
	return slices.ContainsFunc(r.Places, func(p Place) bool { return p.Point == PointDecode || p.Point == PointProcess })
}

// explain returns what to do about a process that cannot be read.
func explain(root string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such process")
	case errors.Is(err, fs.ErrPermission):
		return unreadable(root)
	}
	return plain(err)
}

// unreadError means that the files of a runtime are mapped but cannot be read.
type unreadError struct{ text string }

func (e *unreadError) Error() string { return e.text }

// Unwrap returns [ErrNoRuntime], because none was found.
func (e *unreadError) Unwrap() error { return ErrNoRuntime }

// readable returns why the file of a source cannot be opened, nil if it can.
func readable(s source) error {
	f, err := openRegular(s.open)
	if err != nil {
		return err
	}
	return f.Close()
}

// unread returns the error if no runtime was found in readable files, and others are
// unreadable. It names the one that is named like a runtime, or else the first.
func unread(pid int, hidden []string) error {
	file, others := hidden[0], ""
	if i := slices.IndexFunc(hidden, func(path string) bool { return strings.Contains(path, "llama") || strings.Contains(path, "ggml") }); i >= 0 {
		file = hidden[i]
	}
	if n := len(hidden) - 1; n == 1 {
		others = ", nor can 1 other file with code"
	} else if n > 1 {
		others = fmt.Sprintf(", nor can %d other files with code", n)
	}
	return &unreadError{fmt.Sprintf("process %d: unknown whether it uses GGML: the mapped file %s cannot be read%s; run as root, or as a user who may read it", pid, file, others)}
}

func lostFile(path string, err error) optrace.Gap {
	if errors.Is(err, fs.ErrPermission) {
		return optrace.Gap{
			What: path, Why: "it is mapped but cannot be opened: " + plain(err).Error(),
			Next: "run as root, or as a user who may read it",
		}
	}
	return optrace.Gap{
		What: path, Why: "it was deleted or replaced since the process mapped it, and the mapped one cannot be opened: " + plain(err).Error(),
		Next: "run as root, or restart the process",
	}
}

// process is the folder of one process under /proc.
type process struct{ folder string }

func (p process) files() ([]mapping, error) {
	f, err := os.Open(filepath.Join(p.folder, "maps"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readMaps(f)
}

// errReplaced means that a path leads to another file than the mapped one.
var errReplaced = errors.New("another file has its name now")

// source returns how to open a mapped file: by its path if that is the same file (as for most,
// and in a chroot), by its path in the process's mount namespace, or else through the mapping
// itself. Devices in a namespace are not compared, because overlay file systems report others.
func (p process) source(m *mapping) (source, error) {
	inside := filepath.Join(p.folder, "root", m.path)
	id, err := identityOf(inside)
	if !m.deleted {
		if outside, err := identityOf(m.path); err == nil && outside == m.identity {
			return source{m.path, m.path}, nil
		}
		if err == nil && (id.inode == m.inode || id.inode == 0) {
			return source{m.path, inside}, nil
		}
	}
	if err == nil {
		err = errReplaced
	}
	exe := filepath.Join(p.folder, "exe")
	if to, e := os.Readlink(exe); e == nil && strings.TrimSuffix(to, deletedSuffix) == m.path {
		if id, e := identityOf(exe); e == nil && id.inode == m.inode {
			return source{m.path, exe}, nil
		}
	}
	for _, r := range m.ranges {
		path := filepath.Join(p.folder, "map_files", r.name)
		f, e := os.Open(path)
		if e == nil {
			return source{m.path, path}, f.Close()
		}
		err = e
	}
	return source{}, err
}

// model returns the path of the largest mapped GGUF file, "" if there is none: a model that was
// read into memory is not visible.
func model(files []mapping) string {
	path, most := "", uint64(0)
	for i := range files {
		if strings.HasSuffix(strings.ToLower(files[i].path), ".gguf") && files[i].bytes > most {
			path, most = files[i].path, files[i].bytes
		}
	}
	return path
}
