package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width that help is wrapped to, in cells.
const helpWidth = 80

// flagGroups lists a command's flags in its help under headings, in the order in
// which they were registered: an alphabet says nothing of what belongs together.
type flagGroups struct {
	command *cobra.Command
	titles  []string
	sets    []*pflag.FlagSet
}

// groupFlags gives a command grouped help. Flags are registered on its groups,
// and join the command's own with done.
func groupFlags(c *cobra.Command) *flagGroups {
	g := &flagGroups{command: c}
	c.Flags().SortFlags = false
	c.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStdout(), g.usage())
		return err
	})
	return g
}

// group returns the flags under a title, which it adds at the end.
func (g *flagGroups) group(title string) *pflag.FlagSet {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	g.titles, g.sets = append(g.titles, title), append(g.sets, f)
	return f
}

// done makes the flags of all groups flags of the command.
func (g *flagGroups) done() {
	for _, f := range g.sets {
		g.command.Flags().AddFlagSet(f)
	}
}

// usage is what stands after a command's description.
func (g *flagGroups) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "USAGE\n  %s\n", g.command.UseLine())
	if g.command.Example != "" {
		fmt.Fprintf(&b, "\nEXAMPLES\n%s\n", g.command.Example)
	}
	for i, f := range g.sets {
		fmt.Fprintf(&b, "\n%s\n%s", strings.ToUpper(g.titles[i]), f.FlagUsagesWrapped(helpWidth))
	}
	return b.String()
}
