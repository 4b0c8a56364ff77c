package main

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

//go:embed help/*.txt
var helpTexts embed.FS

// ownFlags annotates a command whose flags have no environment variables, because their names mean
// something else in other commands.
const ownFlags = "rooftop_own_flags"

// newCommand returns a command with use line, summary, description and examples from help/NAME.txt.
func newCommand(name string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	text, err := helpTexts.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // a new command needs a help text
	}
	head, examples, _ := strings.Cut(strings.TrimRight(string(text), "\n"), "\n\nEXAMPLES\n")
	use, rest, _ := strings.Cut(head, "\n")
	short, long, _ := strings.Cut(rest, "\n")
	return &cobra.Command{Use: use, Short: short, Long: strings.TrimLeft(long, "\n"), Example: examples, Args: args, RunE: run}
}

// noArgs rejects arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		if strings.Contains(args[0], "://") && c.Flags().Lookup("url") != nil {
			return cli.Usagef("%s takes no argument, but got %q; did you mean --url %[2]s?", cli.CommandName(c), args[0])
		}
		return cli.Usagef("%s takes no argument, but got %q; is a -- missing before a flag?", cli.CommandName(c), args[0])
	}
	return nil
}

// exactly requires n arguments. what names them, and next tells where to find them.
func exactly(n int, what, next string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return cli.Usagef("%s takes %s, but got %d; %s", strings.TrimPrefix(c.CommandPath(), "rooftop "), what, len(args), next)
		}
		return nil
	}
}
