package main

import (
	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/proberun"
)

func newLoad(w *cli.World) *cobra.Command {
	o := proberun.NewLoad(w)
	g := cli.GroupFlags(newCommand("load", noArgs, func(c *cobra.Command, _ []string) error { return o.Run(c.Context(), w) }))
	o.Register(g)
	return g.Done()
}
