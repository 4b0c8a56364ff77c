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

// mayImport says which rooms of this module each room may import: imports run
// one way. The longest matching prefix decides.
var mayImport = map[string][]string{
	"catalog":         {},
	"engine":          {"engine/figure", "engine/roofline", "engine/verdict", "engine/stat", "engine/launch", "catalog"},
	"engine/journal":  {},
	"engine/stat":     {},
	"engine/launch":   {},
	"engine/roofline": {"engine/stat", "catalog"},
	"engine/verdict":  {"engine/stat", "catalog"},
	"engine/optrace":  {"engine/stat", "catalog"},
	// What sources recorded on one clock: they fill its types.
	"engine/capture":   {"engine", "engine/figure", "engine/roofline", "engine/stat", "catalog"},
	"rules":            {"engine", "engine/roofline", "engine/stat", "catalog"},
	"collect":          {},
	"collect/promtext": {"collect", "engine", "engine/stat", "engine/launch", "catalog"},
	"collect/":         {"collect", "collect/promtext", "engine", "engine/capture", "engine/stat", "engine/launch", "catalog"},
	// Who has the CPUs beside a runtime that is traced.
	"collect/proc": {"collect", "collect/promtext", "engine", "engine/capture", "engine/optrace", "engine/stat", "engine/launch", "catalog"},
	// Operators of GGML runtimes: recorded events, and the files that they come from.
	"collect/ggml":  {"collect", "collect/ggml/binary", "engine/optrace", "engine/stat"},
	"collect/ggml/": {"engine/optrace", "engine/stat"},
	// What this machine's cores and memory can do at most.
	"collect/roof":  {"collect", "engine/optrace", "engine/stat"},
	"engine/figure": {"engine/stat"},
	"tui":           {"tui", "tui/", "engine", "engine/figure", "engine/roofline", "engine/verdict", "engine/stat", "engine/optrace"},
	"cmd":           {"tui", "tui/", "collect", "collect/", "rules", "engine", "engine/", "catalog", "cmd/internal/"},
	// The simulator shares no code with the model that is scored on it; it reads
	// a command line with the parser that everything here reads one with.
	"cmd/internal/vllmsim": {"catalog", "engine/launch", "cmd/internal/vllmsim", "cmd/internal/vllmsim/"},
}

// pure rooms reach no clock, file, socket, environment or global random source.
var pure = []string{"catalog", "engine", "rules"}

// effects are the packages, and the names of otherwise harmless ones, that a
// pure room must not use.
var effects = map[string][]string{
	"os": nil, "net": nil, "net/http": nil, "os/exec": nil, "os/signal": nil, "syscall": nil,
	"math/rand": nil, "math/rand/v2": {"Int", "IntN", "Float64", "Perm", "Shuffle", "N", "NormFloat64", "ExpFloat64", "Uint64"},
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"log":  nil, "crypto/rand": nil,
}

// only names packages that one room alone may import.
var only = map[string][]string{
	"github.com/prometheus/common/expfmt":   {"collect/promtext"},
	"github.com/NVIDIA/go-nvml/pkg/nvml":    {"collect/gpu"},
	"github.com/prometheus/procfs":          {"collect/proc"},
	"charm.land/bubbletea/v2":               {"tui", "cmd/rooftop"},
	"charm.land/lipgloss/v2":                {"tui"},
	"charm.land/bubbles/v2":                 {"tui"},
	"github.com/charmbracelet/x":            {"tui"},
	"github.com/charmbracelet/colorprofile": {"tui"},
	"github.com/spf13/cobra":                {"cmd/rooftop"},
	// Who may open a connection: the client that keeps to the address it was
	// given, the load generator, and what sends a run to the collector of
	// --otlp-endpoint. Others may name addresses (cmd/rooftop, collect/proc) or status
	// codes (collect/vllm).
	"net/http": {"collect", "cmd/internal/vllmsim", "cmd/internal/otlp"},
	// What attaches to a running process, and what reads its instructions.
	"github.com/cilium/ebpf": {"collect/ggml"},
	"golang.org/x/arch":      {"collect/ggml/binary"},
	// The SDK reads the environment: one room keeps it from having a say.
	"go.opentelemetry.io":        {"cmd/internal/otlp"},
	"google.golang.org/protobuf": {"cmd/internal/otlp"},
	// OTLP goes over HTTP: gRPC is 5 MB that nothing calls, and these bring it.
	"google.golang.org/grpc":                                            {},
	"go.opentelemetry.io/proto/otlp/collector":                          {},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp":   {},
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp": {},
	// cmd/internal/apply keeps two tuners apart with a socket of this machine that has
	// no address.
	"net": {"collect", "cmd/rooftop", "cmd/internal/vllmsim", "cmd/internal/apply"},
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

// inAny says whether a room is one of these or lies below one.
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
		{"engine/roofline", "engine", false},
		{"collect/gpu", "collect/vllm", false},
		{"collect/gpu", "collect/promtext", true},
		{"cmd/internal/vllmsim", "engine/roofline", false},
		{"cmd/rooftop", "cmd/internal/report", true},
		{"tui", "collect/vllm", false},
		{"rules", "engine/roofline", true},
	} {
		if got := allowed(c.room, c.imported); got != c.want {
			t.Errorf("%s importing %s: allowed = %v, want %v", c.room, c.imported, got, c.want)
		}
	}
}
