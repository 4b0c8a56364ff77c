package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/tui"
)

// screenOptions control the look and refresh rate of the screen.
type screenOptions struct {
	Theme   string
	Refresh time.Duration
	Mouse   bool
	// Program adds options of the Bubble Tea program: tests have no terminal.
	Program []tea.ProgramOption
}

// Limits of the time between two frames.
const (
	defaultRefresh = 250 * time.Millisecond
	minRefresh     = 50 * time.Millisecond
	maxRefresh     = 10 * time.Second
)

// defaultScreen returns the options for commands without screen flags.
func defaultScreen() screenOptions {
	return screenOptions{Theme: "auto", Refresh: defaultRefresh, Mouse: true}
}

// Register adds the flags of the screen.
func (o *screenOptions) Register(f *pflag.FlagSet) {
	cli.Choice(f, &o.Theme, "theme", "auto", "`WHICH` colours: auto, dark or light; auto asks the terminal", "auto", "dark", "light")
	f.DurationVar(&o.Refresh, "refresh", defaultRefresh, "`TIME` between two refreshes, 50ms to 10s; use a longer one over a slow connection")
	f.BoolVar(&o.Mouse, "mouse", true, "use the mouse wheel and clicks; shift selects text, --mouse=false leaves the mouse to the terminal")
}

// Check rejects flags that are out of range.
func (o *screenOptions) Check() error {
	if o.Refresh < minRefresh || o.Refresh > maxRefresh {
		return cli.Usagef("--refresh %v: give %v to %v", o.Refresh, minRefresh, maxRefresh)
	}
	return nil
}

// TUI returns the options of package tui.
func (o *screenOptions) TUI(w *cli.World, out *cli.Output) tui.Options {
	options := tui.Options{ASCII: out.Style(w).ASCII, Color: out.Color, Theme: o.Theme, Refresh: o.Refresh, NoMouse: !o.Mouse, Env: w.Env}
	if f, ok := w.Stdin.(*os.File); ok {
		options.Program = append(options.Program, tea.WithInput(f))
	}
	if f, ok := cli.File(w.Stdout); ok {
		options.Program = append(options.Program, tea.WithOutput(f))
	}
	options.Program = append(options.Program, o.Program...)
	return options
}

// screenPossible reports whether a command may use the screen: stdin and stdout are terminals, and no
// other output was requested.
func screenPossible(w *cli.World, out *cli.Output) bool {
	_, stdout := cli.Terminal(w.Stdout)
	kind, _ := w.Env("TERM")
	return possible(out, cli.TerminalInput(w.Stdin), stdout, kind)
}

func possible(out *cli.Output, stdin, stdout bool, term string) bool {
	return !out.JSON && !out.Plain && stdin && stdout && term != "dumb"
}

// screenOff resets what a screen sets: the alternate screen, a hidden cursor, bracketed paste, the
// mouse and a style.
const screenOff = "\x1b[?1049l\x1b[?25h\x1b[?2004l\x1b[?1002l\x1b[?1006l\x1b[m"

// terminalRestorer saves the terminal's state and returns a function that restores it, for when the screen
// program cannot do it itself.
func terminalRestorer(w *cli.World) func() {
	in, ok := w.Stdin.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	return func() {
		_ = term.Restore(int(in.Fd()), state)
		fmt.Fprint(w.Stdout, screenOff)
	}
}

// silenceLibraries keeps the output of standard loggers off the terminal, and returns a function that undoes
// that.
func silenceLibraries() func() {
	logger, writer := slog.Default(), log.Writer()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	return func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
	}
}
