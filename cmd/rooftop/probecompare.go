package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
)

// maxDocument bounds a document that is read: an hour of a large tree at 50 ms.
const maxDocument = 1 << 30

func newProbeCompare(w *world) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Two probes held against each other, or refused as not comparable",
		Long: `Reads two rooftop.probe/v1 documents ('rooftop probe --save FILE') and says what
differs: times, rates, CPU and energy for each token, with the interval that the
scatter of their requests leaves. Documents of other models, prompts, lengths or
numbers of clients are not comparable: every reason is told, and no direction.

WORDS
  faster, slower  the whole 95 % interval is on that side of no change
  no difference   no change is in the interval, and all of it within ±10 %
  cannot tell     neither: it needs more requests, or fewer at a time

EXIT CODES
  0  compared
  1  any other error
  2  the command line is off, or a file is no such document
  4  not comparable`,
		Example: "  rooftop probe --repeat 30 --save before.json\n  rooftop probe --repeat 30 --save after.json\n  rooftop probe compare before.json after.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("probe compare takes two documents, but got %d; make them with 'rooftop probe --save FILE'", len(args))
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
			return compareProbes(w, &out, args[0], args[1])
		},
	}
	g := groupFlags(c)
	out.register(g, "how many values and groups figures rest on")
	g.done()
	return c
}

func compareProbes(w *world, out *output, a, b string) error {
	var sides [2]*report.Probe
	for i, path := range []string{a, b} {
		p, err := readProbe(path)
		if err != nil {
			return err
		}
		sides[i] = p
	}
	result := report.CompareProbes(buildVersion(), a, b, sides[0], sides[1])
	var err error
	if out.json {
		err = report.WriteProbeCompareJSON(w.stdout, result)
	} else {
		err = report.WriteProbeCompare(w.stdout, result, out.style(w))
	}
	if err != nil {
		return fail(exitError, err)
	}
	if len(result.Refused) > 0 {
		return exit(exitNothing)
	}
	return nil
}

func readProbe(path string) (*report.Probe, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage("%w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, usage("%w", err)
	case info.IsDir():
		return nil, usage("%s is a directory", path)
	case info.Size() > maxDocument:
		return nil, usage("%s is larger than %d MiB", path, maxDocument>>20)
	}
	p, err := report.ReadProbe(f)
	if err != nil {
		return nil, usage("%w", fmt.Errorf("%s: %w", path, err))
	}
	return p, nil
}
