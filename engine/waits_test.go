package engine

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// waiting lists the packages whose waits for others must each have an end.
var waiting = []string{
	"cmd/internal/apply", "cmd/internal/launcher", "cmd/internal/serverdir", "cmd/internal/session", "cmd/internal/autopilot",
	"cmd/internal/kube", "cmd/internal/mcpserver", "collect/ggml",
}

const waitsTable = "docs/dev/waits.md"

// calls that wait without a limit of their own, by their kind.
var waits = map[string]string{
	"time.Sleep": "poll", "syscall.Wait4": "wait", "syscall.Flock": "lock", "unix.Flock": "lock", "unix.Poll": "wait", "unix.EpollWait": "wait",
	"context.Background": "background", "context.WithoutCancel": "background",
	"exec.Command": "command", "exec.CommandContext": "command", "http.Get": "http", "http.Post": "http", "http.NewRequest": "http",
	"net.Dial": "dial", "godbus.Dial": "dial", "io.Copy": "read", "io.ReadAll": "read", "json.NewDecoder": "read", "bufio.NewReader": "read", "bufio.NewScanner": "read",
	"os.Open": "open", "os.OpenFile": "open", "os.ReadFile": "open",
}

// methods do so too, by name and number of arguments.
var methods = map[string]string{"Wait/0": "wait", "Accept/0": "wait", "CombinedOutput/0": "command", "RLock/0": "lock", "Dial/1": "dial"}

// TestEveryWaitHasAnEnd compares the waits in the code with the table of what ends them.
func TestEveryWaitHasAnEnd(t *testing.T) {
	found := map[string]int{}
	for _, dir := range waiting {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
				err = findWaits(path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", waitsTable))
	if err != nil {
		t.Fatal(err)
	}
	listed := listedWaits(t, string(text))
	for _, at := range slices.Sorted(maps.Keys(found)) {
		if listed[at] != found[at] {
			t.Errorf("%s: %d waits, and %s lists %d: what ends it if the other side dies or stops? Give it an end, a limit and a sentence, and list it", at, found[at], waitsTable, listed[at])
		}
	}
	for _, at := range slices.Sorted(maps.Keys(listed)) {
		if found[at] == 0 {
			t.Errorf("%s lists %s, and there is no such wait: remove it there", waitsTable, at)
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d waits were found: the search is broken", len(found))
	}
}

// listedWaits reads the first two columns of the table: places, as `apply/process.go reaped`, and the kind.
func listedWaits(t *testing.T, text string) map[string]int {
	listed := map[string]int{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], ".go ") {
			continue
		}
		if len(cells) != 7 || slices.ContainsFunc(cells[1:6], func(c string) bool { return strings.TrimSpace(c) == "" }) {
			t.Errorf("%s: a row needs five cells: %s", waitsTable, line)
		}
		file := ""
		for _, place := range strings.Split(strings.Trim(cells[1], " `"), ", ") {
			words := strings.Fields(place)
			if strings.HasSuffix(words[0], ".go") {
				file, words = words[0], words[1:]
			}
			for _, name := range words {
				name, times, many := strings.Cut(name, "×")
				n := 1
				if many {
					_, _ = fmt.Sscan(times, &n)
				}
				listed[file+" "+name+" "+strings.TrimSpace(cells[2])] += n
			}
		}
	}
	return listed
}

// findWaits counts the waits of a file by function and kind.
func findWaits(path string, found map[string]int) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		return err
	}
	short := strings.TrimPrefix(strings.TrimPrefix(filepath.ToSlash(path), "../"), "cmd/internal/")
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		w := &waitFinder{limits: assigns(fn.Body, "WaitDelay"), selected: map[ast.Node]bool{}, note: func(kind string) { found[short+" "+fn.Name.Name+" "+kind]++ }}
		ast.Inspect(fn.Body, w.visit)
	}
	return nil
}

// assigns reports whether a function sets a field.
func assigns(body ast.Node, field string) (yes bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, left := range a.Lhs {
				s, ok := left.(*ast.SelectorExpr)
				yes = yes || ok && s.Sel.Name == field
			}
		}
		return true
	})
	return yes
}

type waitFinder struct {
	limits   bool              // programs that the function starts have a WaitDelay
	selected map[ast.Node]bool // what a select waits for, together with other things
	note     func(kind string)
}

func (w *waitFinder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.SelectStmt:
		w.choice(n)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW && !w.selected[n] {
			w.note("receive")
		}
	case *ast.SendStmt:
		if !w.selected[n] {
			w.note("send")
		}
	case *ast.CompositeLit:
		switch typeName(n.Type) {
		case "exec.Cmd":
			w.command()
		case "http.Client":
			w.note("http")
		}
	case *ast.CallExpr:
		w.call(n)
	}
	return true
}

// choice notes a select whose only case may never come.
func (w *waitFinder) choice(s *ast.SelectStmt) {
	for _, one := range s.Body.List {
		if c := one.(*ast.CommClause).Comm; c != nil {
			ast.Inspect(c, func(n ast.Node) bool {
				if n != nil {
					w.selected[n] = len(s.Body.List) > 1
				}
				return true
			})
		}
	}
}

func (w *waitFinder) command() {
	if !w.limits {
		w.note("command")
	}
}

func (w *waitFinder) call(c *ast.CallExpr) {
	name := typeName(c.Fun)
	if kind := waits[name]; kind == "command" && name != "exec.Command" {
		w.command()
	} else if kind != "" {
		if !w.selected[c] {
			w.note(kind)
		}
	} else if s, ok := c.Fun.(*ast.SelectorExpr); ok {
		if kind := methods[fmt.Sprintf("%s/%d", s.Sel.Name, len(c.Args))]; kind != "" {
			w.note(kind)
		}
	}
	// Directly within a limit, an endless context has one.
	if strings.HasPrefix(name, "context.WithTimeout") || strings.HasPrefix(name, "context.WithDeadline") {
		if inner, ok := c.Args[0].(*ast.CallExpr); ok {
			w.selected[inner] = true
		}
	}
}

// typeName returns a qualified name: "exec.Cmd".
func typeName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}
