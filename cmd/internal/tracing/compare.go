package tracing

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
	tracepage "github.com/rooftop-dev/rooftop/engine/page/trace"
)

// maxDocument limits the size of a trace document, in bytes.
const maxDocument = 1 << 30

// Compare compares two traces and prints the differences.
func Compare(w *cli.World, out *cli.Output, a, b string) error {
	var sides [2]*tracepage.Trace
	for i, path := range []string{a, b} {
		t, err := readTraced(path)
		if err != nil {
			return err
		}
		sides[i] = t
	}
	result := tracepage.Compare(cli.Version(), a, b, sides[0], sides[1])
	if err := cli.Print(w, out, result, func(to io.Writer, c *tracepage.Comparison, style render.Options) error {
		return render.Text(to, c.Page(style.Verbose), style)
	}, document.WriteTraceComparison); err != nil {
		return err
	}
	if len(result.Refused) > 0 {
		return cli.Exit(cli.ExitNothing)
	}
	return nil
}

// readTraced reads a recording or a document. The content decides which one it is, not the name.
func readTraced(path string) (*tracepage.Trace, error) {
	f, err := openSniffed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if packed := []byte{0x1f, 0x8b}; bytes.HasPrefix(f.head, packed) || strings.HasSuffix(path, Suffix) && !bytes.HasPrefix(f.head, []byte("{")) {
		r, err := readRecording(path)
		if err != nil {
			return nil, err
		}
		return (&traced{recording: r, summary: tally.Analyze(r)}).document(), nil
	}
	if schema := schemaOf.FindSubmatch(f.head); schema == nil || string(schema[1]) != document.TraceSchema {
		if other, known := identify(f.head, path); known {
			return nil, cli.Usagef("trace compare: %s %s; give recordings (--save) or documents (--json) of traces", path, other)
		}
	}
	t, err := document.ReadTrace(io.LimitReader(f, maxDocument))
	if err != nil {
		return nil, cli.Usagef("trace compare: %w", fmt.Errorf("%s: %w", path, err))
	}
	return t, nil
}
