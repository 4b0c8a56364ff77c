package main

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/scraped"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	fleetpage "github.com/rooftop-dev/rooftop/engine/page/fleet"
	"github.com/spf13/cobra"
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
	list, err := past.Fleet(ctx, given, span, nil)
	if err != nil {
		return err
	}
	if err := cli.Print(w, &given.Output, list, cli.Text(fleetpage.Page), document.WriteFleet); err != nil {
		return err
	}
	return cli.Exit(fleetCode(list))
}

// fleetCode returns the exit code of a list: that of the worst server.
func fleetCode(list []fleet.Server) cli.ExitCode {
	code := cli.ExitNothing
	for i := range list {
		switch s := &list[i]; {
		case s.Condition.Ill():
			return cli.ExitUnhealthy
		case s.Unread != "":
		case s.Changes():
			return cli.ExitRecommendation
		case outcomeCode(&s.Diagnosis) == cli.ExitDone:
			code = cli.ExitDone
		}
	}
	if list[0].Unread != "" {
		return cli.ExitUnreachable
	}
	return code
}
