package main

import (
	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/tracing"
)

func newTrace(w *cli.World) *cobra.Command {
	o := tracing.New(w)
	g := cli.GroupFlags(newCommand("trace", traceArgs, func(c *cobra.Command, args []string) error { return o.Run(c.Context(), w, args...) }))
	o.Register(g)
	return g.Done()
}

// traceArgs accepts at most one name or recording.
func traceArgs(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("trace takes one name or recording, but got %d", len(args))
	}
	return nil
}
