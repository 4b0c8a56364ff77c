package main

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/rooftop-dev/rooftop/engine"
)

// view is how a session is followed: on the screen, in lines, or as events.
type view interface {
	// tell is handed every event, from the session's goroutine.
	tell(engine.Event)
	// show follows a session until it is over, the person leaves, or ctx ends.
	show(ctx context.Context, f *following) error
	// report says at the very end what the run came to; s is nil where nothing was
	// ever seen.
	report(s *engine.Snapshot, k kept) error
}

// waiting is a view that has to be told that there is no server yet; the screen
// sees it.
type waiting interface {
	// waits tells why, at a time since the start. It may be called while tell is.
	waits(at time.Duration, why string)
}

// viewKind names a view.
type viewKind string

// Views.
const (
	viewScreen viewKind = "screen"
	viewLines  viewKind = "lines"
	viewEvents viewKind = "events"
)

// viewOf chooses the view: the screen needs a terminal on both sides.
func viewOf(w *world, o *output) viewKind {
	_, out := terminal(w.stdout)
	kind, _ := w.env("TERM")
	return pickView(o, terminalInput(w.stdin), out, kind)
}

func pickView(o *output, stdin, stdout bool, term string) viewKind {
	switch {
	case o.json:
		return viewEvents
	case o.plain, !stdin, !stdout, term == "dumb":
		return viewLines
	}
	return viewScreen
}

// terminalInput says whether a person may type there.
func terminalInput(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// newView makes the view of a live session.
func newView(w *world, kind viewKind, o *output, s *screenOptions) view {
	switch kind {
	case viewScreen:
		return &screenView{w: w, out: o, options: s}
	case viewEvents:
		return newEventsView(w)
	}
	return newLinesView(w, o)
}
