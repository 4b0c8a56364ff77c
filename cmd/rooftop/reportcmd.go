package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
)

// reportOptions are the flags of a report of a past run.
type reportOptions struct {
	format string
	file   string
}

// storedFormats are the formats of a report with the extension of its file.
var storedFormats = []struct{ name, ext string }{
	{report.FormatMarkdown, ".md"}, {report.FormatJSON, ".json"}, {report.FormatHTML, ".html"},
}

func newReport(w *world) *cobra.Command {
	var o reportOptions
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "One past run as Markdown, JSON or HTML",
		Long: `Writes the report of a stored run. RUN is its number in 'rooftop history', its
name or the beginning of one, 'last', or the path of its directory or of its
report.json.

The HTML is one file with its plots inside, which needs nothing else; the JSON
is rooftop.run/v1. Of a run that was killed there is the journal alone: what it
says is written, as Markdown, HTML or rooftop.history/v1.`,
		Example: "  rooftop report last\n  rooftop report 3 --format html -o run.html\n  rooftop report last --format json | jq .gain",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("report needs one RUN; 'rooftop history' lists them, 'last' is the latest")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return runNames(w), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c.Flags().Changed("format")); err != nil {
				return err
			}
			return storedReport(w, args[0], &o)
		},
	}
	g := groupFlags(c)
	f := g.group("Output")
	f.StringVar(&o.format, "format", report.FormatMarkdown, "`FORMAT`: markdown, json or html (default that of -o, else markdown)")
	f.Lookup("format").DefValue = ""
	f.StringVarP(&o.file, "output", "o", "", "new `FILE` to write to instead of stdout")
	g.done()
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{report.FormatMarkdown, report.FormatJSON, report.FormatHTML}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// check settles the format: as asked for, else as the file is named.
func (o *reportOptions) check(given bool) error {
	var names []string
	for _, f := range storedFormats {
		names = append(names, f.name)
		if !given && strings.EqualFold(filepath.Ext(o.file), f.ext) {
			o.format = f.name
		}
	}
	if !slices.Contains(names, o.format) {
		return usage("report: --format is %s or %s, not %q", strings.Join(names[:len(names)-1], ", "), names[len(names)-1], o.format)
	}
	return nil
}

func storedReport(w *world, name string, o *reportOptions) error {
	r, err := findRun(w, name)
	if err != nil {
		return err
	}
	text, err := rendered(&r, o.format)
	if err != nil {
		return fail(exitError, err)
	}
	if o.file == "" {
		_, err := w.stdout.Write(text)
		if err != nil {
			return fail(exitError, err)
		}
		return nil
	}
	return writeNew(o.file, text)
}

// rendered is the report of a run as it was written when the run ended, or where
// that is not there, what is stored.
func rendered(r *report.PastRun, format string) ([]byte, error) {
	if !r.Journal {
		i := slices.IndexFunc(storedFormats, func(f struct{ name, ext string }) bool { return f.name == format })
		text, err := readFile(filepath.Join(r.Path, reportBase+storedFormats[i].ext), maxReport)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	var b bytes.Buffer
	err := report.WritePastRun(&b, r, format)
	return b.Bytes(), err
}

// writeNew writes a file that must not exist: a report may be all that is left of a
// run.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage("report: %s exists already; choose another name or remove it", path)
	}
	if err != nil {
		return usage("report: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fail(exitError, fmt.Errorf("report %s: %w", path, err))
	}
	return nil
}
