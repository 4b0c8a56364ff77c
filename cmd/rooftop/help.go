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

// done makes the flags of all groups flags of the command, and lets a shell
// complete the values of those that take one of a few.
func (g *flagGroups) done() {
	for _, f := range g.sets {
		g.command.Flags().AddFlagSet(f)
	}
	for _, f := range []struct {
		name   string
		values []string
	}{
		{"theme", []string{"auto", "dark", "light"}},
		{"color", []string{"auto", "always", "never"}},
		{"ceiling", []string{physicalCeiling, classicCeiling}},
	} {
		if g.command.Flags().Lookup(f.name) != nil {
			// The only errors are a flag that is not there and a second function.
			_ = g.command.RegisterFlagCompletionFunc(f.name, cobra.FixedCompletions(f.values, cobra.ShellCompDirectiveNoFileComp))
		}
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
