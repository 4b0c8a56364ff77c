package binary

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tree is a folder with the structure of /proc.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) tree { return tree{t, t.TempDir()} }

func (p tree) path(pid int, names ...string) string {
	return filepath.Join(append([]string{p.root, strconv.Itoa(pid)}, names...)...)
}

func (p tree) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p tree) link(to, path string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		p.t.Fatal(err)
	}
}

// mapped returns a line of a list of mappings.
func (p tree) mapped(begin uint64, protection, file, as string) string {
	p.t.Helper()
	id, err := identityOf(file)
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprintf("%x-%x %s 00000000 ff:ff %d                   %s\n", begin, begin+0x1000, protection, id.inode, as)
}

func (p tree) copy(from, to string) {
	p.t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(to, string(b))
}

func TestAProcessIsReadInItsOwnMountNamespace(t *testing.T) {
	library := compile(t, "libggml.so", "-O2", "-shared", "-fPIC")
	p := newTree(t)
	inside := p.path(7, "root", "app", "libggml-cpu.so")
	p.copy(library, inside)
	p.write(p.path(7, "maps"), p.mapped(0x7f0000000000, "r-xp", inside, "/app/libggml-cpu.so")+
		p.mapped(0x7f0000010000, "r--s", inside, "/models/tiny.gguf")+p.mapped(0x7f0000020000, "r-xp", inside, "/lib/gone.so"))
	r, err := FromProcessIn(p.root, 7)
	if err != nil {
		t.Fatal(err)
	}
	if r.PID != 7 || r.Model != "/models/tiny.gguf" || r.Hook != PointOp || len(r.Images) != 1 || len(r.Gaps) != 0 {
		t.Errorf("%+v", r)
	}
	if i := r.Images[0]; i.Path != "/app/libggml-cpu.so" || i.Open != inside {
		t.Errorf("path %q, opened as %q", i.Path, i.Open)
	}
}

// A list of mappings has the files of a chroot with their paths outside of it.
func TestFilesOfAChrootAreReadByTheirNamesOutside(t *testing.T) {
	library := compile(t, "libggml.so", "-O2", "-shared", "-fPIC")
	id, err := identityOf(library)
	if err != nil {
		t.Fatal(err)
	}
	p := newTree(t)
	line := p.mapped(0x7f0000000000, "r-xp", library, library)
	p.write(p.path(7, "maps"), strings.Replace(line, "ff:ff", id.device, 1))
	r, err := FromProcessIn(p.root, 7)
	if err != nil || r.Images[0].Open != library {
		t.Errorf("%+v, %v", r, err)
	}
	// The same name on another device is another file.
	p.write(p.path(8, "maps"), line)
	if r, err := FromProcessIn(p.root, 8); !errors.Is(err, ErrNoRuntime) {
		t.Errorf("%+v, %v", r, err)
	}
}

// A library that was upgraded while the process runs is read as it is mapped, not from its
// path.
func TestReplacedFilesAreReadThroughTheMapping(t *testing.T) {
	library := compile(t, "libggml.so", "-O2", "-shared", "-fPIC")
	other := compile(t, "libggml.so", "-O2", "-shared", "-fPIC", "-DFORK")
	for name, mark := range map[string]string{"deleted": " (deleted)", "replaced": ""} {
		p := newTree(t)
		p.copy(other, p.path(7, "root", "app", "libggml-cpu.so"))
		p.write(p.path(7, "maps"), p.mapped(0x7f0000000000, "r-xp", library, "/app/libggml-cpu.so"+mark))
		if _, err := FromProcessIn(p.root, 7); !errors.Is(err, ErrNoRuntime) || !strings.Contains(err.Error(), "deleted or replaced") {
			t.Errorf("%s, mapping cannot be opened: %v", name, err)
		}
		p.link(library, p.path(7, "map_files", "7f0000000000-7f0000001000"))
		r, err := FromProcessIn(p.root, 7)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Layout.Name != compiledLayout(t, library).Name {
			t.Errorf("%s: the file that has its name now was read", name)
		}
		if want := p.path(7, "map_files", "7f0000000000-7f0000001000"); r.Images[0].Open != want {
			t.Errorf("%s: opened as %q, want %q", name, r.Images[0].Open, want)
		}
	}
}

func TestADeletedProgramIsReadThroughExe(t *testing.T) {
	program := compile(t, "server", "-O2", "-shared", "-fPIC")
	p := newTree(t)
	deleted := filepath.Join(p.root, "server"+deletedSuffix) // what the kernel's link says
	p.copy(program, deleted)
	p.link(deleted, p.path(7, "exe"))
	p.write(p.path(7, "maps"), p.mapped(0x400000, "r-xp", deleted, deleted))
	r, err := FromProcessIn(p.root, 7)
	if err != nil {
		t.Fatal(err)
	}
	if r.Images[0].Open != p.path(7, "exe") || r.Images[0].Path != filepath.Join(p.root, "server") {
		t.Errorf("%+v", *r.Images[0])
	}
}

func TestWhatCannotBeTracedSaysWhy(t *testing.T) {
	p := newTree(t)
	p.write(p.path(8, "maps"), "")
	for pid, want := range map[int]string{8: "wait until it has loaded a model", 9: "there is no such process"} {
		if _, err := FromProcessIn(p.root, pid); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strconv.Itoa(pid)) {
			t.Errorf("process %d: %v, want %q", pid, err, want)
		}
	}
	text := filepath.Join(p.root, "notes.txt")
	p.write(text, "no library")
	for path, want := range map[string]string{text: "ELF", filepath.Join(p.root, "none"): "no such file", p.root: "ELF"} {
		if _, err := FromFile(path); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// If GGML was linked into a stripped file with hidden functions, the error says where it is,
// not that there is none.
func TestHiddenGGMLIsNamed(t *testing.T) {
	p := newTree(t)
	maps := func(pid int, library string) {
		in := p.path(pid, "root", "app", "binding.so")
		p.copy(library, in)
		p.write(p.path(pid, "maps"), p.mapped(0x1000, "r-xp", in, "/app/binding.so"))
	}
	library := exporting(t, "binding.so", "nothing;", "*;", `-DHIDDEN="GGML_ASSERT(%s) failed"`)
	maps(7, library)
	_, running := FromProcessIn(p.root, 7)
	_, lying := FromFile(library)
	for where, err := range map[string]error{"/app/binding.so": running, library: lying} {
		if !errors.Is(err, ErrNoRuntime) || !strings.Contains(err.Error(), "GGML is inside "+where) || strings.Contains(err.Error(), "wait until") {
			t.Errorf("%s: %v", where, err)
		}
	}
	maps(8, exporting(t, "other.so", "nothing;", "*;"))
	if _, err := FromProcessIn(p.root, 8); err == nil || strings.Contains(err.Error(), "inside") {
		t.Errorf("of a process without: %v", err)
	}
}

// A file that cannot be opened is not reported as deleted.
func TestAFileThatMayNotBeOpenedIsNamed(t *testing.T) {
	g := lostFile("/app/libggml-cpu.so", &fs.PathError{Op: "open", Path: "/proc/7/map_files/1-2", Err: fs.ErrPermission})
	if strings.Contains(g.Why, "deleted") || !strings.Contains(g.Why, "cannot be opened") || !strings.Contains(g.Next, "root") {
		t.Errorf("%+v", g)
	}
}

func TestRunningServersAreFound(t *testing.T) {
	library := compile(t, "libggml.so", "-O2", "-shared", "-fPIC")
	p := newTree(t)
	for pid, c := range map[int]struct{ as, command string }{
		30: {"/usr/lib/ollama/libggml-cpu-haswell.so", "/usr/bin/ollama\x00runner\x00"},
		4:  {"/app/build/libllama.so", "./llama-server\x00-m\x00a b.gguf\x00"},
	} {
		inside := p.path(pid, "root", c.as)
		p.copy(library, inside)
		p.write(p.path(pid, "maps"), p.mapped(0x7f0000000000, "r-xp", inside, c.as)+p.mapped(0x7f0000010000, "r--s", inside, "/m.gguf"))
		p.write(p.path(pid, "cmdline"), c.command)
	}
	p.write(p.path(5, "maps"), "7f0000000000-7f0000001000 r-xp 00000000 fe:00 3 /usr/lib/libc.so.6\n")
	p.write(p.path(6, "cmdline"), "may not be looked at")
	p.write(filepath.Join(p.root, "self", "maps"), "")
	got, err := Find(p.root)
	want := []Candidate{
		{PID: 4, Command: "./llama-server -m a b.gguf"},
		{PID: 30, Command: "/usr/bin/ollama runner"},
	}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Find(filepath.Join(p.root, "none")); err == nil {
		t.Error("a root that is not there was searched")
	}
}

// If files cannot be read, nothing claims that they contain no runtime.
func TestWhatMayNotBeRead(t *testing.T) {
	for want, hidden := range map[string][]string{
		"process 7: unknown whether it uses GGML: the mapped file /root/a cannot be read; run as root, or as a user who may read it": {"/root/a"},
		"the mapped file /root/xllamacpp.abi3.so cannot be read, nor can 1 other file with code":                                     {"/root/a", "/root/xllamacpp.abi3.so"},
		"the mapped file /root/a cannot be read, nor can 2 other files with code":                                                    {"/root/a", "/root/b", "/root/c"},
	} {
		if err := unread(7, hidden); !strings.Contains(err.Error(), want) || !errors.Is(err, ErrNoRuntime) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
