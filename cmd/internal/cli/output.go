package cli

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Output controls how a command prints.
type Output struct {
	Verbose bool
	JSON    bool
	Plain   bool
	Color   string
	ASCII   bool
}

// Register adds the output flags. more describes what -v adds; "" is without -v.
func (o *Output) Register(g *FlagGroups, more string) {
	f := g.Group("Output")
	if more != "" {
		f.BoolVarP(&o.Verbose, "verbose", "v", false, "also print "+more)
	}
	f.BoolVar(&o.JSON, "json", false, "one JSON document instead of text")
	f.BoolVar(&o.Plain, "plain", false, "no colour, no cursor movement, no progress line")
	Choice(f, &o.Color, "color", "auto", "`WHEN` to use colour: auto, always or never; NO_COLOR is honoured", "auto", "always", "never")
	f.BoolVar(&o.ASCII, "ascii", false, "use only ASCII characters; the default with TERM=linux or LC_ALL=C")
}

// OneForm returns a usage error if the command line asks for two forms of output. A variable gives way to the flag.
func OneForm(c *cobra.Command) error {
	on := func(name string) bool {
		f := c.Flags().Lookup(name)
		return OnCommandLine(f) && f.Value.String() == "true"
	}
	if on("json") && on("plain") {
		return Usagef("%s: --json and --plain are two forms of output: give one", CommandName(c))
	}
	return nil
}

// Style returns how to print on stdout.
func (o *Output) Style(w *World) render.Options {
	width, tty := Terminal(w.Stdout)
	if !tty {
		width = 80
	}
	noColor, set := w.Env("NO_COLOR")
	term, _ := w.Env("TERM")
	locale, _ := w.Env("LC_ALL")
	colour := tty && term != "dumb" && !(set && noColor != "")
	switch o.Color {
	case "always":
		colour = true
	case "never":
		colour = false
	}
	return render.Options{
		Width:   min(width, 120),
		Color:   colour && !o.Plain,
		ASCII:   o.ASCII || term == "linux" || locale == "C" || locale == "POSIX",
		Verbose: o.Verbose,
	}
}

// Print writes a value to stdout in one write, as text or as a JSON document.
func Print[T any](w *World, o *Output, v T, text func(io.Writer, T, render.Options) error, document func(io.Writer, T) error) error {
	var b bytes.Buffer
	var err error
	if o.JSON {
		err = document(&b, v)
	} else {
		err = text(&b, v, o.Style(w))
	}
	if err != nil {
		return err
	}
	_, err = w.Stdout.Write(b.Bytes())
	return err
}

// Document writes a value as a JSON document.
func Document[T any](w io.Writer, v T) error { return document.Write(w, v) }

// Text returns a text writer for a function that builds a page.
func Text[T any](build func(T) *page.Page) func(io.Writer, T, render.Options) error {
	return func(w io.Writer, v T, style render.Options) error { return render.Text(w, build(v), style) }
}
