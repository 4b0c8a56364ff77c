package main

import (
	"encoding/json"
	"fmt"
	"os"
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
		text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "recordings", "trace-"+name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		s := &optrace.Summary{}
		if err := json.Unmarshal(text, s); err != nil {
			t.Fatal(err)
		}
		for _, o := range []render.Options{{Width: 80}, {Width: 80, Verbose: true}} {
			if o.Verbose && name != "dense" && name != "moe" { // the others differ only in their text
				continue
			}
			fmt.Fprintf(&b, "=== %s %+v\n", name, o)
			if err := render.Text(&b, trace.Report(s, o.Verbose), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkCorpus(t, inCorpus("trace/documents.txt"), b.String())
}
