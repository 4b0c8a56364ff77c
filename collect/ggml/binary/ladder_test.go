package binary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exporting compiles the fake runtime so that it exports only the patterns of a linker's
// version script, and strips it.
func exporting(t *testing.T, name, global, hidden string, flags ...string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "exports")
	if err := os.WriteFile(script, []byte("{ global: "+global+" local: "+hidden+" };\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return stripped(t, compile(t, name, append([]string{"-O2", "-shared", "-fPIC", "-Wl,--version-script=" + script}, flags...)...))
}

func TestTheHookIsTheBestThatTheFilesHave(t *testing.T) {
	const fused = "ggml_compute_forward_rms_norm_mul_fused"
	for name, c := range map[string]struct {
		path    func() string
		hook    Point
		counts  map[Point]int
		mention string // of a gap
	}{
		"all operators and fused ones": {func() string {
			return compile(t, "libggml.so", "-O2", "-shared", "-fPIC", "-DEACH", "-DOLD")
		}, PointOp, map[Point]int{PointOp: 1, PointOpFused: 1, PointOpOld: 0, PointOpEach: 0}, ""},
		"the local function of old builds": {func() string {
			return compile(t, "libggml.so", "-O2", "-shared", "-fPIC", "-DEACH", "-DOLD", "-Dggml_cpu_extra_compute_forward=other", "-D"+fused+"=another")
		}, PointOpOld, map[Point]int{PointOpOld: 1, PointOpEach: 0}, ""},
		"it and a copy of it": {func() string {
			return compile(t, "libggml.so", "-O2", "-shared", "-fPIC", "-DEACH", "-DOLD", `-DCOPY=".constprop.0"`, "-Dggml_cpu_extra_compute_forward=other", "-D"+fused+"=another")
		}, PointOpOld, map[Point]int{PointOpOld: 2, PointOpEach: 0}, ""},
		"a piece of it alone": {func() string {
			return compile(t, "libggml.so", "-O2", "-shared", "-fPIC", `-DCOPY=".part.0"`, "-Dggml_cpu_extra_compute_forward=other", "-D"+fused+"=another")
		}, PointOpOld, map[Point]int{PointOpOld: 1}, ""},
		"a piece that it goes through": {func() string {
			return compile(t, "libggml.so", "-O2", "-shared", "-fPIC", "-DOLD", `-DCOPY=".part.0"`, "-Dggml_cpu_extra_compute_forward=other", "-D"+fused+"=another")
		}, PointOpOld, map[Point]int{PointOpOld: 1}, ""},
		"operators in steps": {func() string {
			return compile(t, "libggml.so", "-O2", "-shared", "-fPIC", "-DGRADIENT", "-DTIMES", "-DOLD", "-Dggml_cpu_extra_compute_forward=other", "-D"+fused+"=another")
		}, PointGraph, map[Point]int{PointGraph: 1, PointOpOld: 0}, "before June 2024"},
		"single operators": {func() string {
			return exporting(t, "libggml.so", "*;", "ggml_cpu_extra_compute_forward;", "-DEACH", "-DOLD")
		}, PointOpEach, map[Point]int{PointOpEach: 2, PointOpFused: 0}, "bypass"},
		"graphs alone": {func() string {
			return exporting(t, "libggml.so", "*;", "ggml_cpu_extra_compute_forward; "+fused+";")
		}, PointGraph, map[Point]int{PointGraph: 1, PointOpFused: 0}, "trace at the level graph"},
		"calls alone": {func() string {
			return exporting(t, "libllama.so", "llama_*;", "*;")
		}, PointGraph, map[Point]int{PointGraph: 0, PointDecode: 1}, "no CPU backend"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := FromFile(c.path())
			if err != nil {
				t.Fatal(err)
			}
			if r.Hook != c.hook {
				t.Errorf("hook %d, want %d", r.Hook, c.hook)
			}
			counts := map[Point]int{}
			for _, p := range r.Places {
				counts[p.Point]++
			}
			for point, want := range c.counts {
				if counts[point] != want {
					t.Errorf("point %d has %d places, want %d", point, counts[point], want)
				}
			}
			said := false
			for _, g := range r.Gaps {
				said = said || strings.Contains(g.Why+g.Next, c.mention)
			}
			if said != (c.mention != "" || len(r.Gaps) > 0) {
				t.Errorf("gaps: %+v, want one that says %q", r.Gaps, c.mention)
			}
		})
	}
}

func TestPartsThatLieBesideAFileAreFound(t *testing.T) {
	folder := tree{t, t.TempDir()}
	in := func(name string) string { return filepath.Join(folder.root, name) }
	const backend = "ggml_graph_compute; ggml_cpu_*; ggml_compute_*; ggml_barrier;"
	folder.copy(exporting(t, "cpu", backend, "*;"), in("libggml-cpu-zen4.so"))
	folder.copy(exporting(t, "cpu", backend, "*;"), in("libggml-cpu-haswell.so"))
	folder.copy(exporting(t, "base", "*;", backend+" llama_*;"), in("libggml-base.so"))
	folder.copy(exporting(t, "llama", "llama_*;", "*;"), in("libllama.so.0.5"))
	folder.copy(exporting(t, "other", "*;", "nothing;"), in("plugin.so"))
	folder.write(in("libggml-broken.so"), "half a file")
	r, err := FromFile(in("libggml-cpu-zen4.so"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, i := range r.Images {
		found = append(found, i.Role+" "+filepath.Base(i.Path))
	}
	if got, want := strings.Join(found, ", "), "cpu backend libggml-cpu-zen4.so, base libggml-base.so, llama libllama.so.0.5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if r.Hook != PointOp || !r.Layout.Complete() || len(r.Names.Ops) != len(compiledNames.Ops) {
		t.Errorf("hook %d, %+v, %d operators", r.Hook, r.Layout, len(r.Names.Ops))
	}
	if len(r.Gaps) != 1 || !strings.Contains(r.Gaps[0].What, "libggml-broken.so") {
		t.Errorf("%+v", r.Gaps)
	}
	r, err = FromFile(in("libllama.so.0.5"))
	if err != nil || r.Hook != PointGraph || !strings.Contains(r.Gaps[0].Why, "2 variants of it lie beside libllama.so.0.5") {
		t.Errorf("from the library of models: %v, %+v", err, r)
	}
	below := filepath.Join(folder.root, "ggml", "backends0", "libggml-cpu-zen4.so")
	folder.copy(in("libggml-cpu-zen4.so"), below)
	folder.link("libggml-base.so", in("libggml-base.so.0"))
	if r, err = FromFile(below); err != nil || len(r.Images) != 3 || len(r.Gaps) != 1 {
		t.Errorf("from a folder of backends: %v, %+v", err, r)
	}
	alone := tree{t, t.TempDir()}
	alone.copy(in("libggml-cpu-zen4.so"), filepath.Join(alone.root, "libggml-cpu.so"))
	if r, err = FromFile(filepath.Join(alone.root, "libggml-cpu.so")); err != nil || r.Layout.Complete() || len(r.Gaps) != 1 {
		t.Errorf("without the base: %v, %+v", err, r)
	}
}

func TestASecondCopyIsNamed(t *testing.T) {
	library := compile(t, "libggml.so", "-O2", "-shared", "-fPIC")
	found, err := newRuntimes([]source{{"/a.so", library}, {"/b.so", library}})
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for part, want := range map[string]string{found[1].Gaps[0].What: "/a.so", found[1].Gaps[0].Next: "--file /a.so", found[1].Gaps[0].Why: "/b.so"} {
		if !strings.Contains(part, want) {
			t.Errorf("the other copy: %q, want %q", part, want)
		}
	}
	if r := found[0]; len(r.Images) != 1 || len(r.Gaps) != 1 || !strings.Contains(r.Gaps[0].What, "/b.so") || !strings.Contains(r.Gaps[0].Why, "/a.so") {
		t.Errorf("%+v, %v", r, err)
	}
}
