package gpu

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setter matches the names of NVML's functions that change something, in Go's
// spelling (DeviceSetPowerManagementLimit, SetGpuLockedClocks, …) and in C's.
var setter = regexp.MustCompile(`^(nvml)?(Device|Gpm|System|Vgpu|VgpuInstance|VgpuType|Unit|Event|GpuInstance|ComputeInstance)?` +
	`(Set|Reset|Clear|Create|Destroy|Freeze|Modify|Remove|Validate|Activate|Register|PowerSmoothing|Workload|GpmSet)[A-Z]`)

// nvmlAllowed are the package-level functions and conversions of go-nvml that
// this package uses: everything else goes through the narrow interfaces.
var nvmlAllowed = []string{"New", "WithLibraryPath", "Return", "ValueType"}

// changes lists the calls and names in a file by which NVML would change a GPU.
func changes(name string, src any) ([]string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	report := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if setter.MatchString(n.Sel.Name) {
				report(n, n.Sel.Name)
			}
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, id := range m.Names {
					if setter.MatchString(id.Name) {
						report(id, id.Name)
					}
				}
			}
		case *ast.CallExpr:
			s, isSelector := n.Fun.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			if pkg, isName := s.X.(*ast.Ident); isName && pkg.Name == "nvml" && !slices.Contains(nvmlAllowed, s.Sel.Name) {
				report(n, "nvml."+s.Sel.Name)
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && setter.MatchString(strings.Trim(n.Value, "`\"")) {
				report(n, n.Value)
			}
		}
		return true
	})
	return found, nil
}

// TestOnlyGetters walks the package's source, all build tags included.
func TestOnlyGetters(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found, err := changes(f, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range found {
			t.Errorf("%s: NVML is only read", what)
		}
		if strings.Contains(string(src), `go-nvml/pkg/nvml"`) {
			read++
		}
		if strings.Contains(string(src), "unsafe") || strings.Contains(string(src), `import "C"`) {
			t.Errorf("%s reaches around go-nvml", f)
		}
	}
	if read < 3 {
		t.Errorf("%d files import go-nvml: the walk looks in the wrong place", read)
	}
}
