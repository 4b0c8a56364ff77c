//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
)

// runTrace is rooftop trace with these arguments.
func runTrace(t *testing.T, args ...string) []byte {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(testContext(t), path, append([]string{"trace"}, args...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("rooftop trace %s: %v: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return out
}

// TestE2ETraceFiles shows a recording again: with the figures of the live document, and
// files that their readers open.
func TestE2ETraceFiles(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	files := func(of string) []string {
		var flags []string
		for _, f := range []string{"trace", "html", "dot"} {
			flags = append(flags, "--"+f, filepath.Join(dir, of+"."+f))
		}
		return flags
	}
	d := drive(t, "npm-new", gguf.MoE, 1)
	r := beginTrace(t, d, files("live")...)
	r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
	for range 3 {
		d.run(t, tracePrompt, traceTokens)
	}
	r.end(t)
	var live, again map[string]any
	shown := runTrace(t, append([]string{r.file, "--json"}, files("again")...)...)
	if err := errors.Join(json.Unmarshal(r.stdout.Bytes(), &live), json.Unmarshal(shown, &again)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live, again); diff != "" {
		t.Errorf("the recording shown again differs from the live document (-live +again):\n%s", diff)
	}
	for _, of := range []string{"live", "again"} {
		read := func(kind string) []byte {
			text, err := os.ReadFile(filepath.Join(dir, of+"."+kind))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s.%s: %d bytes", of, kind, len(text))
			return text
		}
		chrome(t, read("trace"))
		if dot := string(read("dot")); !strings.HasPrefix(dot, "digraph") || strings.Count(dot, "{") != strings.Count(dot, "}") || !strings.Contains(dot, "MUL_MAT_ID") {
			t.Errorf("%s.dot: %.400s", of, dot)
		}
		page := read("html")
		pictures := inlineSVG.FindAll(page, -1)
		if len(pictures) == 0 || regexp.MustCompile(`(src|href)="https?:`).Match(page) {
			t.Errorf("%s.html has %d pictures, or loads something", of, len(pictures))
		}
		for _, picture := range pictures {
			wellFormed(t, of+".html", bytes.NewReader(picture))
		}
	}
}

var inlineSVG = regexp.MustCompile(`(?s)<svg.*?</svg>`)

// chrome is whether a file is a trace of spans.
func chrome(t *testing.T, text []byte) {
	t.Helper()
	var doc struct {
		TraceEvents []struct {
			Name string
			Ph   string
			Ts   float64
			Dur  float64
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	spans := map[string]int{}
	for _, e := range doc.TraceEvents {
		if e.Ph == "X" && e.Dur >= 0 && e.Ts >= 0 {
			spans[e.Name]++
		}
	}
	if len(doc.TraceEvents) < 3*traceTokens*gguf.MoE.Layers || len(spans) < 10 {
		t.Errorf("%d events of %d names", len(doc.TraceEvents), len(spans))
	}
}

// wellFormed reads XML to its end.
func wellFormed(t *testing.T, name string, r io.Reader) {
	t.Helper()
	elements := 0
	for x := xml.NewDecoder(r); ; {
		token, err := x.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if _, ok := token.(xml.StartElement); ok {
			elements++
		}
	}
	if elements < 2 { // a picture and something in it
		t.Errorf("%s has %d elements", name, elements)
	}
}
