package main

import (
	"encoding/json"
	"fmt"
	"io"
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
	styles := []render.Options{{Width: 80}, {Width: 60}, {Width: 120}, {Width: 80, Verbose: true}, {Width: 80, ASCII: true}, {Width: 80, Color: true}}
	for pattern, page := range map[string]func(r io.Reader, w io.Writer, o render.Options) error{
		"trace-*.json": func(r io.Reader, w io.Writer, o render.Options) error {
			s := &optrace.Summary{}
			if err := json.NewDecoder(r).Decode(s); err != nil {
				return err
			}
			return render.Text(w, trace.Report(s, o.Verbose), o)
		},
	} {
		files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "recordings", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			of := styles
			if name != "trace-dense" && name != "trace-moe" {
				of = styles[:1] // the others differ only in their text
			}
			t.Run(name, func(t *testing.T) {
				var b strings.Builder
				for _, o := range of {
					f, err := os.Open(file)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					fmt.Fprintf(&b, "=== %+v\n", o)
					if err := page(f, &b, o); err != nil {
						t.Fatal(err)
					}
				}
				checkCorpus(t, inCorpus("document/"+name+".txt"), b.String())
			})
		}
	}
}
