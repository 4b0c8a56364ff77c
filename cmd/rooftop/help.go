package main

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/reference"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/docs"
)

//go:embed help/*.txt
var helpTexts embed.FS

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
		if _, err := settings.Select(args[0]); err == nil && c.Flags().Lookup("scenario") != nil {
			return cli.Usagef("%s takes no argument, but got %q; did you mean --scenario %[2]s?", cli.CommandName(c), args[0])
		}
		return cli.Usagef("%s takes no argument, but got %q; is a -- missing before a flag?", cli.CommandName(c), args[0])
	}
	return nil
}

// exactly requires n arguments. what names them, and next says where to find them.
func exactly(n int, what, next string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return cli.Usagef("%s takes %s, but got %d; %s", strings.TrimPrefix(c.CommandPath(), "rooftop "), what, len(args), next)
		}
		return nil
	}
}

// newHelp returns the command that prints the help of a command, or a page of docs/.
func newHelp(w *cli.World) *cobra.Command {
	c := newCommand("help", nil, func(c *cobra.Command, args []string) error {
		root := c.Root()
		if len(args) == 0 {
			if err := root.Help(); err != nil {
				return err
			}
			_, err := fmt.Fprint(w.Stdout, "\nTopics of 'rooftop help TOPIC':\n", topicList())
			return err
		}
		if found, rest, err := root.Find(args); err == nil && found != root && len(rest) == 0 {
			found.InitDefaultHelpFlag()
			return found.Help()
		}
		name := strings.TrimSuffix(strings.TrimPrefix(strings.Join(args, " "), "docs/"), ".md")
		text, err := fs.ReadFile(docs.Pages, name+".md")
		if err != nil {
			return cli.Usagef("help: %q is neither a command nor a topic; 'rooftop help' lists both", strings.Join(args, " "))
		}
		return cli.Print(w, &cli.Output{Color: "auto"}, string(text), cli.Text(reference.Manual), nil)
	})
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		at, _, err := c.Root().Find(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []cobra.Completion
		for _, sub := range at.Commands() {
			if sub.IsAvailableCommand() {
				list = append(list, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
		}
		if len(args) == 0 {
			for _, t := range topics() {
				list = append(list, cobra.CompletionWithDesc(t.name, t.title))
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// topic is a page of docs/.
type topic struct{ name, title string }

// topics returns the pages in alphabetical order. Those with the name of a command end in .md.
func topics() []topic {
	files, err := fs.Glob(docs.Pages, "*.md")
	if err != nil {
		panic(err) // the pattern is constant
	}
	var list []topic
	for _, file := range files {
		text, _ := fs.ReadFile(docs.Pages, file) // embedded
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		name := strings.TrimSuffix(file, ".md")
		if _, err := fs.Stat(helpTexts, "help/"+name+".txt"); err == nil {
			name = file
		}
		list = append(list, topic{name, title})
	}
	return list
}

func topicList() string {
	var b strings.Builder
	for _, t := range topics() {
		fmt.Fprintf(&b, "  %-15s  %s\n", t.name, t.title)
	}
	return b.String()
}
