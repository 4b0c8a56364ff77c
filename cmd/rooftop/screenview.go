package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"charm.land/bubbletea/v2"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui"
)

// screenOptions say how the screen looks and moves.
type screenOptions struct {
	theme   string
	refresh time.Duration
}

// Times between two frames.
const (
	defaultRefresh = 250 * time.Millisecond
	minRefresh     = 50 * time.Millisecond
	maxRefresh     = 10 * time.Second
)

func (o *screenOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.theme, "theme", "auto", "`WHICH` colours: auto, dark or light; auto asks the terminal")
	f.DurationVar(&o.refresh, "refresh", defaultRefresh, "`TIME` between two frames, 50ms to 10s; longer over a slow line")
}

func (o *screenOptions) check() error {
	switch o.theme {
	case "auto", "dark", "light":
	default:
		return usage("--theme is auto, dark or light, not %q", o.theme)
	}
	if o.refresh < minRefresh || o.refresh > maxRefresh {
		return usage("--refresh %v: give %v to %v", o.refresh, minRefresh, maxRefresh)
	}
	return nil
}

// defaultScreen is the screen of commands that have no flags for it.
func defaultScreen() *screenOptions {
	return &screenOptions{theme: "auto", refresh: defaultRefresh}
}

// screenView shows a session on the whole terminal.
type screenView struct {
	w        *world
	out      *output
	options  *screenOptions
	playback tui.Playback // nil for a live server
	// program adds to the options of the Bubble Tea program: tests have no terminal.
	program []tea.ProgramOption
}

// tell implements view: the screen reads snapshots.
func (v *screenView) tell(engine.Event) {}

// show implements view. It keeps the terminal until the session has ended and its
// files are written, unless the person leaves before.
func (v *screenView) show(ctx context.Context, f *following) error {
	defer silence()()
	// Not the run's own context: its end must not take the screen away before the
	// loop has ended.
	screen, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	go func() {
		defer leave()
		select {
		case <-f.over:
			return
		case <-screen.Done():
			return
		case <-ctx.Done():
		}
		limit := time.NewTimer(cmp.Or(f.patience, endPatience))
		defer limit.Stop()
		select {
		case <-f.over:
		case <-f.hurry:
		case <-limit.C:
		}
	}()
	var feed tui.Feed = f.session
	if v.playback == nil { // a recording leaves no files, and stays at its end
		feed = &heldFeed{feed: f.session, over: f.over}
	}
	return tui.Run(screen, feed, f.session, v.tuiOptions())
}

func (v *screenView) tuiOptions() tui.Options {
	o := tui.Options{
		ASCII: v.out.style(v.w).ASCII, Color: v.out.color, Theme: v.options.theme,
		Refresh: v.options.refresh, Playback: v.playback, Env: v.w.env,
	}
	if f, ok := v.w.stdin.(*os.File); ok {
		o.Program = append(o.Program, tea.WithInput(f))
	}
	if f, ok := v.w.stdout.(*os.File); ok {
		o.Program = append(o.Program, tea.WithOutput(f))
	}
	o.Program = append(o.Program, v.program...)
	return o
}

// report implements view.
func (v *screenView) report(s *engine.Snapshot, k kept) error {
	return writeRun(v.w, s, k, v.out.style(v.w))
}

// heldFeed shows a run as going on until its files are written: the screen closes
// by itself when the run has ended, and the terminal may be gone already.
type heldFeed struct {
	feed tui.Feed
	over <-chan struct{}
	held *engine.Snapshot // the last one, without its end
}

// Latest implements tui.Feed.
func (h *heldFeed) Latest() *engine.Snapshot {
	s := h.feed.Latest()
	if s == nil || s.Finished == nil {
		return s
	}
	select {
	case <-h.over:
		return s
	default:
	}
	if h.held == nil || h.held.Seq != s.Seq {
		open := *s
		open.Finished = nil
		h.held = &open
	}
	return h.held
}

// screenOff undoes what a screen switches on: the alternate screen, a hidden
// cursor, bracketed paste and a style.
const screenOff = "\x1b[?1049l\x1b[?25h\x1b[?2004l\x1b[m"

// takeBack notes the terminal's state and returns a function that puts it back by
// force: for when what drew on it can no longer be asked to.
func takeBack(w *world) func() {
	in, ok := w.stdin.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	return func() {
		_ = term.Restore(int(in.Fd()), state)
		fmt.Fprint(w.stdout, screenOff)
	}
}

// silence keeps what the standard loggers write off the terminal, and returns a
// function that gives them back their voice.
func silence() func() {
	logger, writer := slog.Default(), log.Writer()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	return func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
	}
}
