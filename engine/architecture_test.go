package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rooftop-dev/rooftop/"

// mayImport lists the packages of this module that each package may import. Imports go one way, down this list. The longest
// matching prefix applies; a trailing slash stands for the packages below.
var mayImport = map[string][]string{
	"catalog": {},
	"engine":  {"engine", "engine/", "catalog"},
	"rules":   {"engine", "engine/", "catalog"},
	// Sources never import each other: they share only the HTTP client and the parser of package collect, and the reader of
	// engines' pages.
	"collect":  {"engine", "engine/", "catalog"},
	"collect/": {"collect", "collect/enginepage", "engine", "engine/", "catalog"},
	// The load generator sends its requests with the client of probes.
	"collect/loadgen": {"collect/probe", "engine", "engine/", "catalog"},
	"collect/ggml":    {"collect", "collect/ggml/binary", "engine/", "catalog"},
	"tui":             {"tui", "tui/", "engine", "engine/", "catalog"},
	"cmd":             {"tui", "tui/", "collect", "collect/", "rules", "engine", "engine/", "catalog", "docs", "cmd/internal/"},
	// The simulator shares no code with the model that is tested on it, except for the parser of command lines.
	"cmd/internal/sim/vllmsim": {"catalog", "engine/launch", "cmd/internal/sim/vllmsim", "cmd/internal/sim/vllmsim/"},
}

// pure packages use no clock, file, socket, environment or global random source.
var pure = []string{"catalog", "engine", "rules"}

// effects are the packages, and names in otherwise harmless packages, that a pure package must not use.
var effects = map[string][]string{
	"os": nil, "net": nil, "net/http": nil, "os/exec": nil, "os/signal": nil, "syscall": nil,
	"math/rand": nil, "math/rand/v2": {"Int", "IntN", "Float64", "Perm", "Shuffle", "N", "NormFloat64", "ExpFloat64", "Uint64"},
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"log":  nil, "crypto/rand": nil,
}

// only lists packages that may be imported by one package alone.
var only = map[string][]string{
	"github.com/prometheus/common/expfmt":   {"collect", "cmd/internal/exporter"},
	"github.com/prometheus/client_golang":   {"collect/prometheus", "cmd/internal/exporter"},
	"github.com/NVIDIA/go-nvml":             {"collect/gpu"},
	"github.com/prometheus/procfs":          {"collect/proc"},
	"github.com/coreos/go-systemd":          {"cmd/internal/apply/systemd"},
	"github.com/godbus/dbus":                {"cmd/internal/apply/systemd"},
	"k8s.io/client-go":                      {"cmd/internal/kube"},
	"k8s.io/apimachinery":                   {"cmd/internal/kube"},
	"charm.land":                            {"tui", "cmd/rooftop"},
	"charm.land/lipgloss/v2":                {"tui"},
	"charm.land/bubbles/v2":                 {"tui"},
	"github.com/charmbracelet/x":            {"tui", "cmd/internal"}, // widths of text for terminals
	"github.com/charmbracelet/colorprofile": {"tui", "cmd/rooftop"},
	"github.com/spf13/cobra":                {"cmd/rooftop", "cmd/internal/cli"},
	"github.com/modelcontextprotocol":       {"cmd/internal/mcpserver"}, // on stdin and stdout alone: it can also listen
	// Only these open connections: the client restricted to its given address, the load generator, Docker's on a socket of this machine, the API server's of --kube, and Prometheus' of --prometheus. The exporter answers one. Others may refer to addresses (cmd/rooftop, collect/proc) or status codes (collect/enginepage).
	"net/http": {"collect", "cmd/internal/sim/vllmsim", "cmd/internal/apply/docker", "cmd/internal/kube", "collect/prometheus", "cmd/internal/exporter"},
	// Only these attach to a running process or read its instructions.
	"github.com/cilium/ebpf": {"collect/ggml"},
	"golang.org/x/arch":      {"collect/ggml/binary"},
	// cmd/internal/serverdir keeps two tuners apart with a socket of this machine without an address.
	"net": {"collect", "cmd/internal/apply/docker", "cmd/internal/exporter", "cmd/internal/kube", "cmd/rooftop", "cmd/internal/attach", "cmd/internal/autopilot", "cmd/internal/sim/vllmsim", "cmd/internal/serverdir", "cmd/internal/programtest"},
}

func TestRoomsKeepTheirWalls(t *testing.T) {
	root := ".."
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		room := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../")))
		checkFile(t, path, room)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d files were looked at: the walk is broken", files)
	}
}

func checkFile(t *testing.T, path, room string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	imported := map[string]string{} // local name to path
	for _, spec := range f.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		local := name[strings.LastIndex(name, "/")+1:]
		if local == "v2" {
			local = "rand"
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imported[local] = name
		if inside, ok := strings.CutPrefix(name, module); ok && !allowed(room, inside) {
			t.Errorf("%s: %s must not import %s", path, room, inside)
		}
		for guarded, rooms := range only {
			below := strings.Contains(guarded, ".") && strings.HasPrefix(name, guarded+"/")
			if (name == guarded || below) && !inAny(room, rooms) {
				t.Errorf("%s: only %s may import %s", path, strings.Join(rooms, " and "), guarded)
			}
		}
		if names, forbidden := effects[name]; forbidden && names == nil && inAny(room, pure) {
			t.Errorf("%s: %s is pure and must not import %s", path, room, name)
		}
	}
	if !inAny(room, pure) {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if statement, ok := n.(*ast.GoStmt); ok {
			t.Errorf("%s: %s is pure and must not start a goroutine", fset.Position(statement.Pos()), room)
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		for _, name := range effects[imported[id.Name]] {
			if sel.Sel.Name == name {
				t.Errorf("%s: %s is pure and must not use %s.%s", fset.Position(sel.Pos()), room, id.Name, name)
			}
		}
		return true
	})
}

// inAny reports whether a package is one of these or below one.
func inAny(room string, rooms []string) bool {
	for _, r := range rooms {
		if room == r || strings.HasPrefix(room, r+"/") {
			return true
		}
	}
	return false
}

func allowed(room, imported string) bool {
	longest, rules := -1, []string(nil)
	for prefix, list := range mayImport {
		match := room == prefix || strings.HasPrefix(room, strings.TrimSuffix(prefix, "/")+"/")
		if match && len(prefix) > longest {
			longest, rules = len(prefix), list
		}
	}
	for _, r := range rules {
		if imported == r || strings.HasSuffix(r, "/") && strings.HasPrefix(imported, r) {
			return true
		}
	}
	return false
}

func TestTheWallsStopABreach(t *testing.T) {
	for _, c := range []struct {
		room, imported string
		want           bool
	}{
		{"engine", "collect/vllm", false},
		{"engine", "rules", false},
		{"engine/roofline", "rules", false},
		{"collect/gpu", "collect/vllm", false},
		{"collect/gpu", "collect", true},
		{"cmd/internal/sim/vllmsim", "engine/roofline", false},
		{"cmd/rooftop", "cmd/internal/render", true},
		{"tui", "collect/vllm", false},
		{"rules", "engine/roofline", true},
	} {
		if got := allowed(c.room, c.imported); got != c.want {
			t.Errorf("%s importing %s: allowed = %v, want %v", c.room, c.imported, got, c.want)
		}
	}
}
