package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/scraped"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	fleetpage "github.com/rooftop-dev/rooftop/engine/page/fleet"
)

func newFleet(w *cli.World) *cobra.Command {
	given := attach.Options{Env: w.Env, Ceiling: attach.PhysicalCeiling}
	var past scraped.Options
	c := newCommand("fleet", noArgs, func(c *cobra.Command, _ []string) error {
		return showFleet(c.Context(), w, &given, &past)
	})
	g := cli.GroupFlags(c)
	given.Flags = c.Flags()
	past.Register(g.Group("The servers"))
	given.RegisterUnread(g)
	given.Output.Register(g, "")
	g.Done()
	return c
}

func showFleet(ctx context.Context, w *cli.World, given *attach.Options, past *scraped.Options) error {
	span, err := past.Span(time.Now())
	switch {
	case err != nil:
		return err
	case past.Prometheus == "":
		return cli.Usagef("fleet: give --prometheus URL, the Prometheus that scrapes the servers")
	}
	if err := given.Check(); err != nil {
		return err
	}
	if err := given.KnownGPU(); err != nil {
		return err
	}
	found, err := past.Servers(ctx, span)
	if err != nil {
		return err
	}
	list := make([]fleet.Server, len(found))
	for i := range found {
		list[i].Name = found[i].Name
		if list[i].Diagnosis, err = scraped.Diagnose(given, past.Prometheus, &found[i], span, nil); err != nil {
			return err
		}
	}
	fleet.Rank(list)
	if err := cli.Print(w, &given.Output, list, cli.Text(fleetpage.Page), document.WriteFleet); err != nil {
		return err
	}
	if list[0].Condition.Ill() {
		return cli.Exit(cli.ExitUnhealthy)
	}
	return cli.Exit(outcomeCode(&list[0].Diagnosis))
}
