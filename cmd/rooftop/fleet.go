package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/scraped"
	"github.com/rooftop-dev/rooftop/collect/prometheus"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	fleetpage "github.com/rooftop-dev/rooftop/engine/page/fleet"
)

// atOnce is the number of servers whose pages are read at once. More load a Prometheus server, and hold
// more pages in memory: some 10 MB for each.
const atOnce = 4

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
	list, err := diagnoseFleet(ctx, given, past, span)
	if err != nil {
		return err
	}
	if err := cli.Print(w, &given.Output, list, cli.Text(fleetpage.Page), document.WriteFleet); err != nil {
		return err
	}
	if list[0].Condition.Ill() {
		return cli.Exit(cli.ExitUnhealthy)
	}
	return cli.Exit(outcomeCode(&list[0].Diagnosis))
}

// diagnoseFleet diagnoses the servers that were scraped in a time, what to look at first on top.
func diagnoseFleet(ctx context.Context, given *attach.Options, past *scraped.Options, span prometheus.Range) ([]fleet.Server, error) {
	source, found, err := past.Open(ctx, span)
	if err != nil {
		return nil, err
	}
	list := make([]fleet.Server, len(found))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, t := range found {
		group.Go(func() (err error) {
			list[i].Name = t.Name
			list[i].Diagnosis, err = past.Diagnose(ctx, source, t, span, given, nil)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	fleet.Rank(list)
	return list, nil
}
