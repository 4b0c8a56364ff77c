//go:build e2e

package binary

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realFile returns a file of a real runtime. Without it the test is skipped and names what was
// not checked.
func realFile(t *testing.T, variable, pattern string) string {
	t.Helper()
	root := os.Getenv(variable)
	if root == "" {
		t.Skipf("NOT CHECKED: %s (%s is not set)", pattern, variable)
	}
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(found) == 0 {
		t.Skipf("NOT CHECKED: %s (not in %s)", pattern, root)
	}
	return found[0]
}

// realRuntime is a build with its expected properties: layout by the table of GGML's history,
// counts from its headers, sites by objdump.
type realRuntime struct {
	name, variable, pattern string
	version                 string
	ops, unary, glu, types  int
	since                   string // the layout's
	size                    int    // of a tensor
	from                    string // where the layout is read
	sites                   []string
	gap                     string // what has to be said of it
}

const npmX64 = "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/"

var realRuntimes = []realRuntime{
	{
		name: "node-llama-cpp 3.22.1", variable: "ROOFTOP_E2E_GGML", pattern: "npm-new/" + npmX64 + "libggml-cpu-sapphirerapids.so",
		version: "0.25.1", ops: 101, unary: 22, glu: 7, types: 43, since: "2024-11", size: 336, from: "accessors",
		sites: []string{
			"ggml_cpu_extra_compute_forward+4 push %r13", "ggml_compute_forward_rms_norm_mul_fused+17 push %rbp", "ggml_graph_compute+4 push %r14",
			"ggml_barrier+14 je .+0x3e", "llama_decode+4 push %r12", "llama_decode+22 jbe .+0x1c", "llama_encode+21 jne .+0x9",
		},
	},
	{
		name: "node-llama-cpp 3.6.0", variable: "ROOFTOP_E2E_GGML", pattern: "npm-old/" + npmX64 + "libggml-cpu-sapphirerapids.so",
		ops: 83, unary: 14, types: 36, since: "2024-11", size: 336, from: "accessors",
		sites: []string{
			"ggml_cpu_extra_compute_forward+4 push %r13", "ggml_graph_compute+4 push %r14", "ggml_barrier+13 je .+0x3f",
			"llama_decode+4 push %r12", "llama_decode+52 jne .+0xa", "llama_encode+583 retq",
		},
	},
	{
		name: "llama.node 1.7.15", variable: "ROOFTOP_E2E_GGML", pattern: "npm-static/node_modules/@fugood/node-llama-linux-x64/index.node",
		version: "0.18.0", ops: 101, unary: 22, glu: 6, types: 43, since: "2024-11", size: 352, from: "accessors",
		sites: []string{
			"ggml_cpu_extra_compute_forward+0 push %r15", "ggml_graph_compute+0 push %rbp", "ggml_graph_compute+8442 retq",
			"llama_decode+0 push %rbx", "llama_decode+16 jb .+0x1c",
		},
		gap: "ggml_barrier is empty in this build",
	},
	{
		name: "xllamacpp", variable: "ROOFTOP_E2E_LLAMACPP", pattern: "venv/lib/python3*/site-packages/xllamacpp/xllamacpp.abi3.so",
		version: "0.26.0", ops: 101, unary: 22, glu: 7, types: 43, since: "2024-11", size: 336, from: "accessors",
		sites: []string{
			"ggml_cpu_extra_compute_forward+0 push %r13", "ggml_graph_compute+0 push %r14", "ggml_graph_compute+202 retq", "ggml_barrier+7 je .+0x7",
			"llama_decode+18 jbe .+0x1c", "llama_process+2 je .+0xc", "llama_process+14 retq",
		},
	},
	{
		name: "Debian sid", variable: "ROOFTOP_E2E_GGML", pattern: "debian/root/usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-cpu-sapphirerapids.so",
		since: "2024-11", size: 336, from: "accessors", // sid moves: counts are not pinned
	},
	{
		name: "node-llama-cpp 3.2.0", variable: "ROOFTOP_E2E_GGML", pattern: "npm-oldest/" + npmX64 + "libggml.so",
		ops: 81, unary: 14, types: 36, since: "2024-06", size: 336, from: "version table",
		sites: []string{"ggml_compute_forward+0 push %r13", "ggml_graph_compute+4 push %r14", "llama_decode+52 jne .+0xa"},
	},
	{
		name: "node-llama-cpp 3.22.1 for arm64", variable: "ROOFTOP_E2E_GGML", pattern: "npm-arm64/node_modules/@node-llama-cpp/linux-arm64/bins/linux-arm64/libggml-cpu-armv8.2_1.so",
		version: "0.25.1", ops: 101, unary: 22, glu: 7, types: 43, since: "2024-11", size: 336, from: "accessors",
		sites: []string{
			"ggml_compute_forward_rms_norm_mul_fused+40 cbz x2, .+0x564", "ggml_barrier+12 b.eq .+0x44",
			"ggml_graph_compute+724 ret", "llama_decode+24 b.cc .+0x20", "llama_encode+20 cbz w0, .+0x20",
		},
	},
}

func TestE2ERealRuntimesAreReadWithoutATable(t *testing.T) {
	for _, c := range realRuntimes {
		t.Run(c.name, func(t *testing.T) {
			r, err := FromFile(realFile(t, c.variable, c.pattern))
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, r)
		})
	}
}

func (c *realRuntime) check(t *testing.T, r *Runtime) {
	t.Helper()
	i := slices.IndexFunc(knownLayouts, func(k knownLayout) bool { return k.since == c.since })
	want := knownLayouts[i].layout
	want.Size, want.From = c.size, c.from
	if d := cmp.Diff(want, r.Layout); d != "" {
		t.Errorf("layout: %s", d)
	}
	n := r.Names
	if c.ops > 0 && (r.Version != c.version || len(n.Ops) != c.ops || len(n.Unary) != c.unary || len(n.GLU) != c.glu || len(n.Types) != c.types) {
		t.Errorf("version %q, %d operators, %d unary, %d GLU, %d types", r.Version, len(n.Ops), len(n.Unary), len(n.GLU), len(n.Types))
	}
	for _, name := range []string{"MUL_MAT", "MUL_MAT_ID", "FLASH_ATTN_EXT", "UNARY", "ROPE"} {
		if !slices.Contains(n.Ops, name) {
			t.Errorf("no operator %s among %v", name, n.Ops)
		}
	}
	if d := differing(n.Types); d != "" {
		t.Errorf("the format %s differs", d)
	}
	if r.Images[0].BuildID == "" {
		t.Errorf("%+v", *r.Images[0])
	}
	wantHook := PointOp
	if c.since != "2024-11" {
		wantHook = PointOpOld
	}
	if r.Hook != wantHook {
		t.Errorf("hook %d", r.Hook)
	}
	var sites []string
	for _, p := range r.Places {
		sites = append(sites, siteText(p))
		if p.Point == r.Hook && !p.Site.Cheap {
			t.Errorf("operators are seen at %s, which is not cheap", siteText(p))
		}
	}
	for _, site := range c.sites {
		if !slices.Contains(sites, site) {
			t.Errorf("no probe at %s; there are:\n%s", site, strings.Join(sites, "\n"))
		}
	}
	said := c.gap == ""
	for _, g := range r.Gaps {
		t.Logf("gap: %s: %s", g.What, g.Why)
		said = said || strings.Contains(g.Why, c.gap)
	}
	if !said {
		t.Errorf("gaps: %+v, want one that says %q", r.Gaps, c.gap)
	}
}

func siteText(p Place) string {
	return p.Symbol + "+" + strconv.FormatUint(p.Site.Offset, 10) + " " + p.Site.Instruction
}

// The process is python with llama.cpp's server loaded, without a model.
func TestE2EARealProcessIsRead(t *testing.T) {
	library := realFile(t, "ROOFTOP_E2E_LLAMACPP", "venv/lib/python3*/site-packages/xllamacpp/xllamacpp.abi3.so")
	python := realFile(t, "ROOFTOP_E2E_LLAMACPP", "venv/bin/python")
	c := exec.Command(python, "-c", "import sys, xllamacpp; print('loaded', flush=True); sys.stdin.read()")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = c.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "loaded\n" {
		t.Fatalf("%q, %v", line, err)
	}
	r, err := FromProcess(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(realRuntimes, func(c realRuntime) bool { return c.name == "xllamacpp" })
	realRuntimes[i].check(t, r)
	if r.Images[0].Path != library || r.Images[0].Open != library || len(r.Images) != 1 {
		t.Errorf("%+v", *r.Images[0])
	}
	found, err := Find("/proc")
	j := slices.IndexFunc(found, func(f Candidate) bool { return f.PID == c.Process.Pid })
	if err != nil || j < 0 || !strings.Contains(found[j].Command, "import sys, xllamacpp") {
		t.Errorf("%+v, %v", found, err)
	}
}
