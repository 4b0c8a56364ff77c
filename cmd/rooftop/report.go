package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
)

// reportOptions are the flags of a report of a past run.
type reportOptions struct {
	format string
	file   string
}

func newReport(w *cli.World) *cobra.Command {
	var o reportOptions
	c := newCommand("report", exactly(1, "one RUN", "'rooftop history' lists them, 'last' is the latest"), func(_ *cobra.Command, args []string) error {
		return storedReport(w, args[0], &o)
	})
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return pastruns.Names(w.Env), cobra.ShellCompDirectiveDefault
	}
	g := cli.GroupFlags(c)
	f := g.Group("Output")
	cli.Choice(f, &o.format, "format", "", "`FORMAT`: markdown, json or html (default: by the name of -o, else markdown)", pastruns.Markdown, pastruns.JSON, pastruns.HTML)
	f.StringVarP(&o.file, "output", "o", "", "new `FILE` to write to instead of stdout")
	return g.Done()
}

func storedReport(w *cli.World, name string, o *reportOptions) error {
	r, err := pastruns.Find(w.Env, name)
	if err != nil {
		return err
	}
	text, err := pastruns.Report(&r, cmp.Or(o.format, pastruns.FormatOf(o.file), pastruns.Markdown))
	if err != nil {
		return err
	}
	if o.file == "" {
		_, err = w.Stdout.Write(text)
		return err
	}
	return writeNew(o.file, text)
}

// writeNew writes a file that must not exist: a report may be the only record of a run.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usagef("report: %s exists already; choose another name or remove it", path)
	}
	if err != nil {
		return cli.Usagef("report: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("report %s: %w", path, err)
	}
	return nil
}
