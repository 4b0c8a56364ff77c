package main

import (
	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/proberun"
)

func newLoad(w *cli.World) *cobra.Command {
	o := proberun.NewLoad(w)
	c := newCommand("load", noArgs, func(c *cobra.Command, _ []string) error { return o.Run(c.Context(), w) })
	g := cli.GroupFlags(c)
	o.Register(g)
	g.Done()
	return c
}
