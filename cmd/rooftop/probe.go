package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/proberun"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

func newProbe(w *cli.World) *cobra.Command {
	var o proberun.Options
	g := cli.GroupFlags(newCommand("probe", probeArgs, func(c *cobra.Command, _ []string) error { return o.Probe(c.Context(), w) }))
	o.Env = w.Env
	o.RegisterProbe(g)
	return g.Done()
}

func newObserve(w *cli.World) *cobra.Command {
	var o proberun.Options
	g := cli.GroupFlags(newCommand("observe", noArgs, func(c *cobra.Command, _ []string) error { return o.Observe(c.Context(), w) }))
	o.Env = w.Env
	o.RegisterObservation(g)
	return g.Done()
}

// probeArgs rejects arguments, with a hint for common mistakes.
func probeArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.Contains(args[0], "://"):
		return cli.Usagef("probe takes the server's address with a flag: %s", launch.Line("--url", args[0]))
	}
	return noArgs(c, args)
}
