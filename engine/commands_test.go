package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A command as a text shows it, up to a value that the code puts into it. \x00 is the value.
var commandWithValue = regexp.MustCompile(`(^|[^\w.-])(rooftop (catalog|ceiling|compare|demo|diagnose|doctor|explain|exporter|fleet|history|load|mcp|observe|probe|recover|replay|report|rules|sim|trace|tune)|kubectl [a-z]+|docker [a-z]+|systemctl [a-z]+|journalctl|curl|gzip|kill|sudo [a-z]+)( [\w./=-]+)*[ =]'?\x00`)

// verbs are the verbs of a format that print text; numbers are safe in a shell.
var verbs = regexp.MustCompile(`%(\[\d+\])?[-+# 0]*\d*[sqv]`)

// TestEveryCommandIsQuoted checks that only launch.Line puts a name into a command that the user may copy: a label
// of a Prometheus server, a unit or a file can be called `x'; rm -rf ~; echo '`.
func TestEveryCommandIsQuoted(t *testing.T) {
	files := 0
	for _, dir := range []string{"catalog", "cmd", "collect", "engine", "rules", "tui"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				text, deeper := textOf(n)
				if m := commandWithValue.FindString(text); m != "" {
					t.Errorf("%s: %q puts a value into a command without quoting it: use launch.Line", fset.Position(n.Pos()), strings.ReplaceAll(m, "\x00", "…"))
				}
				return deeper
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 500 {
		t.Errorf("only %d files were found: the search is broken", files)
	}
}

// textOf returns the text that an expression makes, with \x00 for each value, and whether parts of the expression
// may make texts of their own.
func textOf(n ast.Node) (text string, deeper bool) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op != token.ADD {
			return "", true
		}
		left, _ := textOf(n.X)
		right, _ := textOf(n.Y)
		return left + right, !strings.Contains(left+right, " ")
	case *ast.ParenExpr:
		return textOf(n.X)
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		if n.Kind != token.STRING || err != nil {
			return "", true
		}
		return text, true
	case *ast.CallExpr:
		for _, arg := range n.Args {
			if lit, ok := arg.(*ast.BasicLit); ok && len(n.Args) > 1 && lit.Kind == token.STRING && strings.Contains(lit.Value, "%") {
				format, err := strconv.Unquote(lit.Value)
				if err == nil {
					return verbs.ReplaceAllString(format, "\x00"), true
				}
			}
		}
		return "\x00", true
	case ast.Expr:
		return "\x00", true
	}
	return "", true
}
