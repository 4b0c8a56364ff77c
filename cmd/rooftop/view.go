package main

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// view is a way to follow a session: on the screen, in lines, or as events.
type view interface {
	// handle receives every event, in the session's goroutine.
	handle(loop.Event)
	// noServer reports why there is no server yet, at a time since the start. It may be called concurrently with handle.
	noServer(at time.Duration, why string)
	// show follows a session until it is over, the user leaves, or ctx ends.
	show(ctx context.Context, f *following) error
	// report prints the result of the run at the very end. s is nil if there was never a snapshot.
	report(s *loop.Snapshot, k kept) error
}

// viewKind is the name of a view.
type viewKind string

// Views.
const (
	viewScreen viewKind = "screen"
	viewLines  viewKind = "lines"
	viewEvents viewKind = "events"
)

// viewOf returns the kind of view for the output options.
func viewOf(w *cli.World, o *cli.Output) viewKind {
	switch {
	case o.JSON:
		return viewEvents
	case screenPossible(w, o):
		return viewScreen
	}
	return viewLines
}

// newView returns the view of a live session.
func newView(w *cli.World, kind viewKind, o *cli.Output, s *screenOptions) view {
	switch kind {
	case viewScreen:
		return &screenView{w: w, out: o, options: s}
	case viewEvents:
		return newEventsView(w)
	}
	return newLinesView(w, o)
}
