package binary

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// source is a file that may belong to a runtime: path is the target's path, open the one by
// which this process opens it.
type source struct{ path, open string }

// Limits of the search for the other files of a runtime. Debian keeps backends two folders
// below the libraries.
const (
	maxSiblings = 4096 // files per folder
	maxFolders  = 3
)

// FromFile reads a runtime from the given file and those beside it with the parts that it lacks
// (libggml-base.so, libllama.so and others). It fails if the file cannot be read, is not a
// 64-bit ELF file, or contains nothing of GGML.
func FromFile(path string) (*Runtime, error) {
	given, err := openPart(source{path, path})
	if errors.Is(err, ErrNoRuntime) && containsGGML(source{path, path}) {
		return nil, &hiddenError{path}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give the path of a GGML library (libggml-cpu.so) or of the program that holds one", path, err)
	}
	complete, backend := given.complete(), given.hasBackend()
	given.close()
	sources := []source{{path, path}}
	var gaps []optrace.Gap
	if !complete {
		more, variants := siblings(path, backend)
		sources = append(sources, more...)
		if variants > 1 {
			gaps = append(gaps, optrace.Gap{
				What: "the CPU backend", Why: fmt.Sprintf("%d variants of it lie beside %s, and a file does not show which one a process loads", variants, filepath.Base(path)),
				Next: "give the variant's file, or the process",
			})
		}
	}
	found, err := newRuntimes(sources)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := found[max(0, slices.IndexFunc(found, func(r *Runtime) bool {
		return slices.ContainsFunc(r.Images, func(i *Image) bool { return i.Path == path })
	}))]
	r.Gaps = append(gaps, r.Gaps...)
	return r, nil
}

// siblings returns the libraries of GGML and llama.cpp beside a file, each once, and the number
// of CPU backends. A backend is included only if it is the only one and none is given. Folders
// of backends ("ggml", "backends0") have the libraries above them.
func siblings(path string, given bool) (found []source, variants int) {
	had := map[string]bool{}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		had[real] = true
	}
	var backends []source
	folder := filepath.Dir(path)
	for range maxFolders {
		for _, file := range libraries(folder) {
			real, err := filepath.EvalSymlinks(file)
			if err != nil || had[real] {
				continue
			}
			had[real] = true
			if strings.HasPrefix(filepath.Base(file), backendPrefix) {
				backends = append(backends, source{file, file})
			} else {
				found = append(found, source{file, file})
			}
		}
		if name := filepath.Base(folder); name != "ggml" && !strings.HasPrefix(name, "backends") {
			break
		}
		folder = filepath.Dir(folder)
	}
	if given {
		return found, 0
	}
	if len(backends) == 1 {
		found = append(found, backends...)
	}
	return found, len(backends)
}

// libraries returns the files of a folder that are named like those of a runtime.
func libraries(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries[:min(len(entries), maxSiblings)] {
		if (e.Type().IsRegular() || e.Type()&os.ModeSymlink != 0) && isRuntimeName(e.Name()) {
			found = append(found, filepath.Join(folder, e.Name()))
		}
	}
	return found
}

// backendPrefix is the prefix of the names of CPU backends, of which a folder may have one for
// each kind of CPU.
const backendPrefix = "libggml-cpu"

// isRuntimeName reports whether a file is named like a library of GGML or llama.cpp.
func isRuntimeName(name string) bool {
	name = strings.ToLower(name)
	if !strings.Contains(name, ".so") && !strings.HasSuffix(name, ".node") {
		return false
	}
	return strings.HasPrefix(name, "libggml") || strings.HasPrefix(name, "libllama") || strings.Contains(name, "llama") && strings.HasSuffix(name, ".node")
}

// opened is a part with its open file.
type opened struct {
	part
	file io.Closer
}

func (p *opened) close() { _ = p.file.Close() }

// ErrNoRuntime means that a file or a process contains nothing of GGML. A process may load its
// libraries later.
var ErrNoRuntime = errors.New("it contains no function of GGML or llama.cpp")

// openPart opens a file of a runtime. It fails with ErrNoRuntime if the file is not one.
func openPart(s source) (*opened, error) {
	f, err := openRegular(s.open)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, errNotELF
	}
	o, err := readObject(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	p := &opened{part: part{object: o}, file: f}
	p.image = &Image{Role: p.role(), Path: s.path, Open: s.open, BuildID: o.buildID, read: info}
	if p.image.Role == "" {
		p.close()
		return nil, ErrNoRuntime
	}
	return p, nil
}

// openRegular opens a regular file. It checks the type first, because opening a device may have
// side effects.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errNotELF
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO may have taken its place
	return f, plain(err)
}

// plain removes the path from an error, because callers add it.
func plain(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// hasBackend reports whether the file has the CPU backend, by a function that every version has
// there.
func (p *part) hasBackend() bool {
	_, ok := p.object.function(graphSymbol)
	return ok
}

func (p *part) hasBase() bool {
	_, name := p.object.function("ggml_get_name")
	_, count := p.object.function("ggml_nelements")
	return name || count
}

func (p *part) hasLlama() bool {
	_, ok := p.object.function(decodeSymbol)
	return ok
}

func (p *part) complete() bool { return p.hasBackend() && p.hasBase() && p.hasLlama() }

// role returns the role of a file: "cpu backend", "base", "llama", "program" for more than one
// of these, "" for none.
func (p *part) role() string {
	backend, base, llama := p.hasBackend(), p.hasBase(), p.hasLlama()
	switch {
	case backend && (base || llama) || base && llama:
		return roleProgram
	case backend:
		return roleBackend
	case base:
		return roleBase
	case llama:
		return roleLlama
	}
	return ""
}

// Roles of files.
const (
	roleBackend = "cpu backend"
	roleBase    = "base"
	roleLlama   = "llama"
	roleProgram = "program"
)

// newRuntimes reads the runtimes in some files, each with a gap for every other one. If two
// files have the same part of a runtime, the first counts.
func newRuntimes(sources []source) ([]*Runtime, error) {
	var parts []part
	var gaps []optrace.Gap
	for _, s := range sources {
		p, err := openPart(s)
		if err != nil {
			if isRuntimeName(filepath.Base(s.path)) && !errors.Is(err, ErrNoRuntime) {
				gaps = append(gaps, optrace.Gap{What: s.path, Why: "it could not be read: " + err.Error()})
			}
			continue
		}
		defer p.close()
		parts = append(parts, p.part)
	}
	if len(parts) == 0 {
		return nil, ErrNoRuntime
	}
	var found []*Runtime
	copies, unused := copiesOf(parts)
	for _, copied := range copies {
		r := &Runtime{Layout: emptyLayout(), Hook: PointGraph, Gaps: slices.Clone(gaps)}
		for i := range unused {
			r.Gaps = append(r.Gaps, secondCopy(unused[i].image.Path, copied[0].image.Path))
		}
		r.read(copied)
		found = append(found, r)
	}
	for i, r := range found {
		for _, other := range slices.Concat(found[i+1:], found[:i]) {
			gap := secondCopy(other.Images[0].Path, r.Images[0].Path)
			gap.Next += ": --file " + other.Images[0].Path + " traces it"
			r.Gaps = append(r.Gaps, gap)
		}
	}
	return found, nil
}

// secondCopy returns the gap for a copy other than the traced one.
func secondCopy(path, traced string) optrace.Gap {
	return optrace.Gap{
		What: "a second copy of GGML: " + path, Why: "the same functions are in " + traced + ", which is traced", Next: "operators that go through it are not seen",
	}
}

// read fills a runtime from its open parts.
func (r *Runtime) read(parts []part) {
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(rank(a.image.Role), rank(b.image.Role)) })
	for i := range parts {
		r.Images = append(r.Images, parts[i].image)
	}
	if arch := parts[0].object.arch; processorOf(arch) == nil {
		r.Gaps = append(r.Gaps, optrace.Gap{
			What: "everything", Why: fmt.Sprintf("the runtime is built for %s, an unsupported architecture", arch),
			Next: "trace on amd64 or arm64",
		})
		return
	}
	if parts[0].object.arch != "amd64" {
		r.Gaps = append(r.Gaps, optrace.Gap{
			What: "cost of probes on " + parts[0].object.arch, Why: "measured on amd64 only; the same figures are assumed",
		})
	}
	var gaps []optrace.Gap
	if i := slices.IndexFunc(parts, func(p part) bool { return p.hasBase() }); i >= 0 {
		base := parts[i].object
		r.Layout, gaps = base.layout()
		r.Gaps = append(r.Gaps, gaps...)
		r.Names, gaps = base.names()
		r.Gaps = append(r.Gaps, gaps...)
		r.Version = base.version()
	} else {
		r.Gaps = append(r.Gaps, optrace.Gap{
			What: "names and shapes of operators", Why: "no file with GGML's accessors (ggml_get_name) was found: libggml-base.so is missing beside it, or it was stripped",
			Next: "give the file that lies beside libggml-base.so",
		})
		r.Names.Types = builtinTypes()
	}
	r.Hook, r.Places, gaps = places(parts, &r.Layout)
	r.Lower = lower(parts, r.Hook)
	r.Gaps = append(r.Gaps, gaps...)
}

// rank returns the position of a role in [Runtime.Images].
func rank(role string) int {
	return slices.Index([]string{roleProgram, roleBackend, roleBase, roleLlama}, role)
}
