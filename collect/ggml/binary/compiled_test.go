package binary

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// toolchain is a C compiler with its tools.
type toolchain struct{ arch, prefix string }

// native makes code for this machine, cross for the other architecture.
var (
	native = toolchain{runtime.GOARCH, ""}
	cross  = map[string]toolchain{"amd64": {"arm64", "aarch64-linux-gnu-"}, "arm64": {"amd64", "x86_64-linux-gnu-"}}[runtime.GOARCH]
)

// compile builds the fake runtime. Without a compiler it skips the test and names what was not
// checked.
func (c toolchain) compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	gcc, err := exec.LookPath(c.prefix + "gcc")
	if err != nil || c.arch == "" || runtime.GOOS != "linux" {
		t.Skipf("NOT CHECKED: what is read from compiled code for %s (there is no %sgcc)", c.arch, c.prefix)
	}
	out := filepath.Join(t.TempDir(), name)
	key := gcc + " " + strings.Join(flags, " ")
	if had, ok := compiled[key]; ok {
		if err := os.WriteFile(out, had, 0o700); err != nil {
			t.Fatal(err)
		}
		return out
	}
	args := append([]string{"-o", out, filepath.Join("testdata", "fake.c")}, flags...)
	if text, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", gcc, strings.Join(args, " "), err, text)
	}
	if compiled[key], err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// compiled holds what compile built, by compiler and flags.
var compiled = map[string][]byte{}

func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return native.compile(t, name, flags...)
}

// stripped returns a copy of a file without its symbol table.
func (c toolchain) stripped(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if text, err := exec.Command(c.prefix+"strip", "-s", "-o", out, path).CombinedOutput(); err != nil {
		t.Skipf("NOT CHECKED: stripped files (strip: %v %s)", err, text)
	}
	return out
}

func stripped(t *testing.T, path string) string {
	t.Helper()
	return native.stripped(t, path)
}

// compiledLayout returns the layout of the structures by the compiler.
func compiledLayout(t *testing.T, path string) Layout {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	o, err := readObject(f)
	if err != nil {
		t.Fatal(err)
	}
	b := o.read(o.symbols["GGML_FAKE_OFFSETS"].address, 14*4)
	at := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	l := Layout{Size: at(12), Slots: at(13)}
	for i, f := range l.fields() {
		*f = at(i)
	}
	return l
}

var compiledNames = Names{
	Ops: []string{"NONE", "DUP", "ADD", "MUL_MAT", "UNARY", "GLU"}, Unary: []string{"ABS", "SGN", "SILU"}, GLU: []string{"REGLU", "GEGLU", "SWIGLU"},
	Types: builtinTypes()[:9],
}

// builds returns the compiler flags for the fake runtime, by name: as different as compilers
// make them.
func (c toolchain) builds() map[string][]string {
	protection := "-fcf-protection="
	if c.arch == "arm64" {
		protection = "-mbranch-protection="
	}
	all := map[string][]string{
		"O2, as in 2024-06": {"-O2", "-shared", "-fPIC", "-DGRADIENT"},
		"O2, a fork":        {"-O2", "-shared", "-fPIC", "-DFORK"},
		"O2, packed":        {"-O2", "-shared", "-fPIC", "-Wl,-z,pack-relative-relocs"},
		"O2, without PIC":   {"-O2", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-fno-plt"},
		"Os":                {"-Os", "-shared", "-fPIC"},
		"O0, unprotected":   {"-O0", "-shared", "-fPIC", protection + "none"},
		"O3, protected":     {"-O3", "-shared", "-fPIC", protection + map[string]string{"amd64": "full", "arm64": "standard"}[c.arch]},
	}
	if c.arch != "amd64" {
		delete(all, "O2, without PIC") // llama_process jumps to addresses that it loads
		delete(all, "O2, packed")      // not every linker for arm64 can
	}
	return all
}

func TestCompiledRuntimesAreReadAsTheCompilerSays(t *testing.T) { checkBuilds(t, native) }

func TestCompiledRuntimesOfTheOtherArchitectureAreReadToo(t *testing.T) { checkBuilds(t, cross) }

func checkBuilds(t *testing.T, c toolchain) {
	for name, flags := range c.builds() {
		t.Run(name, func(t *testing.T) {
			path := c.compile(t, "libggml.so", flags...)
			for _, file := range []string{path, c.stripped(t, path)} {
				r, err := FromFile(file)
				if err != nil {
					t.Fatal(err)
				}
				want := compiledLayout(t, path)
				want.From = "accessors"
				if strings.Contains(name, "as in 2024") {
					want.From = "version table"
				}
				if d := cmp.Diff(want, r.Layout); d != "" {
					t.Errorf("%s: layout: %s", file, d)
				}
				if d := cmp.Diff(compiledNames, r.Names); d != "" {
					t.Errorf("%s: names: %s", file, d)
				}
				if r.Version != "0.99.1" || r.Images[0].BuildID == "" {
					t.Errorf("version %q, build-id %q", r.Version, r.Images[0].BuildID)
				}
				if len(r.Gaps) > map[string]int{"arm64": 1}[c.arch] { // what probes cost there
					t.Errorf("gaps: %+v", r.Gaps)
				}
				c.checkPlaces(t, file, r, strings.Contains(name, "O2") || strings.Contains(name, "O3"))
			}
		})
	}
}

// A statically linked program contains resolved pointers.
func TestAStaticProgramIsRead(t *testing.T) {
	main := filepath.Join(t.TempDir(), "main.c")
	if err := os.WriteFile(main, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := compile(t, "server", "-O2", "-no-pie", "-fno-pie", main)
	r, err := FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := compiledLayout(t, path)
	want.From = "accessors"
	if d := cmp.Diff(want, r.Layout); d != "" {
		t.Errorf("layout: %s", d)
	}
	if d := cmp.Diff(compiledNames, r.Names); d != "" {
		t.Errorf("names: %s", d)
	}
	if r.Images[0].Role != roleProgram || r.Hook != PointOp {
		t.Errorf("role %q, hook %d", r.Images[0].Role, r.Hook)
	}
	native.checkPlaces(t, path, r, true)
	if _, err := FromFile(stripped(t, path)); err == nil || !strings.Contains(err.Error(), "no function of GGML") {
		t.Errorf("without any symbol: %v", err)
	}
}

func TestOperatorsAreFoundWithoutAnySymbol(t *testing.T) {
	for name, flag := range map[string]string{"relocations": "-Wl,-z,nopack-relative-relocs", "packed": "-Wl,-z,pack-relative-relocs"} {
		path := compile(t, "libggml.so", "-O2", "-shared", "-fPIC", flag)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		o, err := readObject(f)
		if err != nil {
			t.Fatal(err)
		}
		o.symbols = map[string]symbol{}
		n, gaps := o.names()
		if d := cmp.Diff(compiledNames.Ops, n.Ops); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if len(gaps) != 1 || gaps[0].What != "number formats" || len(n.Types) == 0 {
			t.Errorf("%s: %+v", name, gaps)
		}
		_ = f.Close()
	}
}

// checkPlaces compares every place with the binutils: a probe sits on an instruction, at the
// file offset of its symbol.
func (c toolchain) checkPlaces(t *testing.T, path string, r *Runtime, jumps bool) {
	t.Helper()
	points := map[Point]int{}
	for _, p := range r.Places {
		points[p.Point]++
		if !c.disassembly(t, path)[p.Address+p.Site.Offset] {
			t.Errorf("%s+%d lies within an instruction", p.Symbol, p.Site.Offset)
		}
		if file := fileOffset(t, path, p.Address); file != p.File {
			t.Errorf("%s lies at %#x of the file, not at %#x", p.Symbol, file, p.File)
		}
		if p.Site.Cheap && (strings.Contains(p.Site.Instruction, "nop") && p.Site.Offset > 0 || p.Site.Cost >= costStepped) {
			t.Errorf("%s+%d %s for %v", p.Symbol, p.Site.Offset, p.Site.Instruction, p.Site.Cost)
		}
	}
	for _, want := range []Point{PointOp, PointOpFused, PointGraph, PointGraphReturn, PointBarrier, PointBarrierReturn, PointTensorSet, PointDecode, PointEncode} {
		if points[want] != 1 {
			t.Errorf("point %d has %d places", want, points[want])
		}
	}
	ends := map[Point]map[string]bool{}
	for _, p := range r.Places {
		if p.Point == PointCallEnd {
			if ends[p.Ends] == nil {
				ends[p.Ends] = map[string]bool{}
			}
			ends[p.Ends][p.Symbol] = true
		}
	}
	if len(ends[PointDecode]) != 1 || len(ends[PointEncode]) != 1 || !ends[PointProcess]["llama_process"] {
		t.Errorf("calls end at %v", ends)
	}
	// Optimised, it jumps to what does the work.
	if n := len(ends[PointProcess]); jumps && n != 3 {
		t.Errorf("llama_process ends in %d functions: %v", n, ends[PointProcess])
	}
}

func fileOffset(t *testing.T, path string, address uint64) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, s := range f.Sections {
		if s.Name == ".text" && address >= s.Addr && address < s.Addr+s.Size {
			return address - s.Addr + s.Offset
		}
	}
	t.Fatalf("%#x is not in .text", address)
	return 0
}
