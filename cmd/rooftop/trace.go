package main

import (
	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/tracing"
)

func newTrace(w *cli.World) *cobra.Command {
	o := tracing.New(w)
	c := newCommand("trace", traceArgs, func(c *cobra.Command, args []string) error { return o.Run(c.Context(), w, args...) })
	g := cli.GroupFlags(c)
	o.Register(g)
	g.Done()
	c.AddCommand(newTraceRoof(w))
	return c
}

// traceArgs accepts at most one name or recording.
func traceArgs(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("trace takes one name or recording, but got %d", len(args))
	}
	return nil
}

func newTraceRoof(w *cli.World) *cobra.Command {
	var out cli.Output
	c := newCommand("trace-roof", func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cli.Usagef("trace roof takes no name, but got %q; a process of that name is traced with --pid N", args[0])
		}
		return nil
	}, func(c *cobra.Command, _ []string) error { return tracing.MeasurePeak(c.Context(), w, &out) })
	g := cli.GroupFlags(c)
	out.Register(g, "every number of threads")
	g.Done()
	return c
}
