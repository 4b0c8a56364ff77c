//go:build e2e

package binary

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realFile is a file of a real runtime; without it the test says what was not checked.
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

// realRuntimes are builds of different ages and makers.
var realRuntimes = []struct {
	name, variable, pattern string
	version                 string
	ops, unary, glu, types  int
	size                    int
	stripped                bool
}{
	{"node-llama-cpp 3.22.1", "ROOFTOP_E2E_GGML", "ggml-a/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-cpu-sapphirerapids.so", "0.25.1", 101, 22, 7, 43, 336, false},
	{"node-llama-cpp 3.6.0", "ROOFTOP_E2E_GGML", "ggml-b/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-cpu-sapphirerapids.so", "", 83, 14, 0, 36, 336, false},
	{"llama.node 1.7.15", "ROOFTOP_E2E_GGML", "ggml-c/node_modules/@fugood/node-llama-linux-x64/index.node", "0.18.0", 101, 22, 6, 43, 352, true},
	{"xllamacpp", "ROOFTOP_E2E_LLAMACPP", "venv/lib/python3*/site-packages/xllamacpp/xllamacpp.abi3.so", "0.26.0", 101, 22, 7, 43, 336, false},
}

func TestE2ERealRuntimesAreReadWithoutATable(t *testing.T) {
	for _, c := range realRuntimes {
		t.Run(c.name, func(t *testing.T) {
			r, err := FromFile(realFile(t, c.variable, c.pattern))
			if err != nil {
				t.Fatal(err)
			}
			want := knownLayouts[0].layout
			want.Size, want.From = c.size, "accessors"
			if d := cmp.Diff(want, r.Layout); d != "" {
				t.Errorf("layout: %s", d)
			}
			if r.Version != c.version || len(r.Names.Ops) != c.ops || len(r.Names.Unary) != c.unary || len(r.Names.GLU) != c.glu {
				t.Errorf("version %q, %d operators, %d unary, %d GLU", r.Version, len(r.Names.Ops), len(r.Names.Unary), len(r.Names.GLU))
			}
			if d := differing(r.Names.Types); d != "" || len(r.Names.Types) != c.types {
				t.Errorf("%d types, %q differs", len(r.Names.Types), d)
			}
			if r.Images[0].Stripped != c.stripped || r.Images[0].BuildID == "" || r.Images[0].Arch != "amd64" {
				t.Errorf("%+v", *r.Images[0])
			}
			if r.Hook != PointOp {
				t.Errorf("hook %d", r.Hook)
			}
			for _, p := range r.Places {
				if (p.Point == PointOp || p.Point == PointGraph || p.Point == PointDecode) && (!p.Site.Cheap || p.Pushed != 0) {
					t.Errorf("%s+%d %s is not a cheap site", p.Symbol, p.Site.Offset, p.Site.Instruction)
				}
			}
		})
	}
}
