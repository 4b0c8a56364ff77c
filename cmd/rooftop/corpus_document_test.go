package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
)

// TestCorpusOfDocuments compares pages of traces that no command line can reproduce,
// because they are printed while measuring.
func TestCorpusOfDocuments(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"absent", "counted", "cut", "dense", "hostile", "interfered", "moe"} {
		text := readFile(t, filepath.Join("..", "..", "testdata", "recordings", "trace-"+name+".json"))
		s := &optrace.Summary{}
		must(t, json.Unmarshal(text, s))
		for _, o := range []render.Options{{Width: 80}, {Width: 80, Verbose: true}} {
			if o.Verbose && name != "dense" && name != "moe" { // the others differ only in their text
				continue
			}
			fmt.Fprintf(&b, "=== %s %+v\n", name, o)
			must(t, render.Text(&b, trace.Report(s, o.Verbose), o))
		}
	}
	checkCorpus(t, inCorpus("trace/documents.txt"), b.String())
}
