package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// HelpWidth is the width of help texts, in cells.
const HelpWidth = 80

// FlagGroups lists a command's flags in its help under headings, in the order of registration,
// because alphabetical order separates related flags.
type FlagGroups struct {
	Command *cobra.Command
	titles  []string
	sets    []*pflag.FlagSet
}

// GroupFlags makes a command's help grouped. Flags are registered on the groups, and Done adds them
// to the command.
func GroupFlags(c *cobra.Command) *FlagGroups {
	g := &FlagGroups{Command: c}
	c.Flags().SortFlags = false
	c.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStdout(), g.usage(c))
		return err
	})
	return g
}

// Group appends a group with a title and returns its flags.
func (g *FlagGroups) Group(title string) *pflag.FlagSet {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	g.titles, g.sets = append(g.titles, title), append(g.sets, f)
	return f
}

// Persist adds the flags of all groups to the command and its subcommands, whose help is also
// grouped.
func (g *FlagGroups) Persist() {
	for _, f := range g.sets {
		g.Command.PersistentFlags().AddFlagSet(f)
	}
}

// Done adds the flags of all groups to the command, which it returns, and enables shell completion for flags
// created by Choice.
func (g *FlagGroups) Done() *cobra.Command {
	for _, f := range g.sets {
		g.Command.Flags().AddFlagSet(f)
	}
	completeChoices(g.Command)
	return g.Command
}

// usage returns the part of the help after the description of a command or subcommand.
func (g *FlagGroups) usage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "USAGE\n  %s\n", c.UseLine())
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCOMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s  %s\n", c.Commands()[0].NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nEXAMPLES\n%s\n", c.Example)
	}
	for i, f := range g.sets {
		fmt.Fprintf(&b, "\n%s\n%s", strings.ToUpper(g.titles[i]), f.FlagUsagesWrapped(HelpWidth))
	}
	return b.String()
}

// choice is a flag with a few possible values.
type choice struct {
	value  *string
	values []string
}

// Choice registers a flag with a few possible values. The default may be a different value.
func Choice(f *pflag.FlagSet, p *string, name, value, usage string, values ...string) {
	*p = value
	f.Var(&choice{p, values}, name, usage)
}

// Set implements pflag.Value.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.values, text) {
		return fmt.Errorf("not %s", c.list())
	}
	*c.value = text
	return nil
}

func (c *choice) String() string { return *c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }

// list returns the values as an enumeration in a sentence.
func (c *choice) list() string {
	last := len(c.values) - 1
	return strings.Join(c.values[:last], ", ") + " or " + c.values[last]
}

// FormatTime formats a time as it is typed for a flag: 8s, 30m, 1h, 1h30m.
func FormatTime(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

func completeChoices(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if one, ok := f.Value.(*choice); ok {
			// This fails only for an unknown flag or a second function.
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(one.values, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

// variable annotates a flag whose value came from the environment.
const variable = "rooftop_variable"

// noVariable annotates flags without a variable.
const noVariable = "rooftop_no_variable"

// FromEnvironment sets flags that were not on the command line from ROOFTOP_<NAME>, and marks them,
// because variables are a separate source of values.
func FromEnvironment(f *pflag.FlagSet, env func(string) (string, bool)) error {
	var first error
	f.VisitAll(func(flag *pflag.Flag) {
		name := "ROOFTOP_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		text, ok := env(name)
		if !ok || text == "" || flag.Changed || flag.Name == "help" || first != nil || flag.Annotations[noVariable] != nil {
			return
		}
		if err := f.Set(flag.Name, text); err != nil {
			first = Usagef("the variable %s: %w", name, flagValueError(err))
			return
		}
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[variable] = []string{name}
	})
	return first
}

// WithoutVariable keeps a flag from being set by its variable, which would be meant for something else.
func WithoutVariable(f *pflag.Flag) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[noVariable] = []string{"true"}
}

// FromVariable reports whether the value of a flag came from the environment.
func FromVariable(f *pflag.Flag) bool { return f.Changed && f.Annotations[variable] != nil }

// OnCommandLine reports whether the value of a flag came from the command line. A variable applies
// to every run of a user, and may be meant for another command.
func OnCommandLine(f *pflag.Flag) bool {
	return f != nil && f.Changed && f.Annotations[variable] == nil
}
