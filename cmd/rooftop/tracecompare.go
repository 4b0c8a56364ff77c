package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

func newTraceCompare(w *world) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Two traces held against each other, operator by operator",
		Long: `Reads two traces, recordings ('rooftop trace --save') or documents ('rooftop
trace --json'), and says what differs: of two builds, thread counts,
quantisations, machines. What is not comparable is told, with its reason.

EXIT CODES
  0  compared
  1  any other error
  2  the command line is off, or a file is no such trace
  4  not comparable`,
		Example: "  rooftop trace --save one.jsonl.gz\n  rooftop trace --json > two.json\n  rooftop trace compare one.jsonl.gz two.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("trace compare takes two traces, but got %d; make them with 'rooftop trace --save FILE%s'", len(args), recordingSuffix)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := fromEnvironment(c.Flags(), w.env); err != nil {
				return err
			}
			if err := out.check(); err != nil {
				return err
			}
			return compareTraces(w, &out, args[0], args[1])
		},
	}
	g := groupFlags(c)
	out.register(g, "operators that hardly differ")
	g.done()
	return c
}

func compareTraces(w *world, out *output, a, b string) error {
	var sides [2]*report.Trace
	for i, path := range []string{a, b} {
		t, err := readTraced(path)
		if err != nil {
			return err
		}
		sides[i] = t
	}
	result := report.CompareTraces(buildVersion(), a, b, sides[0], sides[1])
	var err error
	if out.json {
		err = report.WriteTraceCompareJSON(w.stdout, result)
	} else {
		err = report.WriteTraceCompare(w.stdout, result, out.style(w))
	}
	if err != nil {
		return fail(exitError, err)
	}
	if len(result.Refused) > 0 {
		return exit(exitNothing)
	}
	return nil
}

// readTraced reads the figures of a recording, or of a document: which it is the file
// itself says, whatever it is called.
func readTraced(path string) (*report.Trace, error) {
	f, err := openTraced(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if packed := []byte{0x1f, 0x8b}; bytes.HasPrefix(f.head, packed) || strings.HasSuffix(path, recordingSuffix) && !bytes.HasPrefix(f.head, []byte("{")) {
		r, err := readRecording(path)
		if err != nil {
			return nil, err
		}
		return (&traced{recording: r, summary: optrace.Analyze(r)}).document(), nil
	}
	if schema := schemaOf.FindSubmatch(f.head); schema == nil || string(schema[1]) != report.TraceSchema {
		if other, known := foreignOf(f.head, path); known {
			return nil, usage("trace compare: %s %s; what is compared are recordings (--save) and documents (--json) of traces", path, other)
		}
	}
	t, err := report.ReadTrace(io.LimitReader(f, maxDocument))
	if err != nil {
		return nil, usage("trace compare: %w", fmt.Errorf("%s: %w", path, err))
	}
	return t, nil
}
