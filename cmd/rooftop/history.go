package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// defaultRuns is how many runs history lists by default: one screen.
const defaultRuns = 20

func newHistory(w *cli.World) *cobra.Command {
	var out cli.Output
	most := defaultRuns
	c := newCommand("history", noArgs, func(c *cobra.Command, _ []string) error {
		if most < 1 {
			return cli.Usagef("history: -n %d: give at least 1", most)
		}
		return history(w, &out, most)
	})
	g := cli.GroupFlags(c)
	f := g.Group("Which")
	f.IntVarP(&most, "number", "n", defaultRuns, "`N` runs at most")
	out.Register(g, "")
	return g.Done()
}

func history(w *cli.World, out *cli.Output, most int) error {
	stored, err := pastruns.Load(w.Env)
	if err != nil {
		return err
	}
	all := len(stored.Runs)
	if n := stored.Unread; n > 0 {
		w.Notef("%s could not be read and %s left out", counted(n, "stored run"), map[bool]string{true: "is", false: "are"}[n == 1])
	}
	lines, err := stored.UnreadJournals()
	if err != nil {
		return err
	}
	for _, j := range lines {
		w.Notef("left out: %s", j.What())
	}
	return cli.Print(w, out, stored.Runs[:min(most, all)], func(to io.Writer, runs []tuning.PastRun, style render.Options) error {
		switch {
		case all == 0 && stored.Unread+len(lines) > 0:
			fmt.Fprintln(to, "No run can be read.")
			return nil
		case all == 0:
			fmt.Fprintln(to, "No run is stored; 'rooftop tune' stores one.")
			return nil
		}
		err := render.Text(to, tuning.History(runs), style)
		if all > len(runs) {
			fmt.Fprintf(to, "%s before these: -n %d lists all\n", counted(all-len(runs), "run"), all)
		}
		return err
	}, document.WriteHistory)
}

func counted(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
