package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// eventWriter follows a session by writing each event as it happens.
type eventWriter struct {
	w        *cli.World
	follower autopilot.Follower
	broken   chan struct{} // closed when the output is broken

	mu   sync.Mutex // guards the follower, which the session and the search for a server use
	once sync.Once
}

// handle implements view.
func (t *eventWriter) handle(e loop.Event) { t.write(func() { t.follower.Event(e) }) }

// write lets the follower write, and closes broken after a failed write.
func (t *eventWriter) write(write func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	write()
	if t.follower.Err() != nil {
		t.once.Do(func() { close(t.broken) })
	}
}

// show implements view: it waits until a session ends or the output is broken.
func (t *eventWriter) show(ctx context.Context, f *following) error { //nolint:unparam // a view may fail
	select {
	case <-f.over:
	case <-ctx.Done():
	case <-t.broken:
	}
	return nil
}

// linesView shows a session in lines: for pipes, logs and screen readers.
type linesView struct {
	eventWriter
	narrator *autopilot.Narrator
	style    render.Options
}

func newLinesView(w *cli.World, o *cli.Output) *linesView {
	style := o.Style(w)
	n := autopilot.NewNarrator(w.Stdout, style)
	return &linesView{eventWriter: eventWriter{w: w, follower: n, broken: make(chan struct{})}, narrator: n, style: style}
}

// intro prints what will be shown.
func (v *linesView) intro(lines ...string) { v.write(func() { v.narrator.Intro(lines...) }) }

// noServer implements view.
func (v *linesView) noServer(at time.Duration, why string) {
	v.write(func() { v.narrator.Waits(at, why) })
}

// report implements view.
func (v *linesView) report(s *loop.Snapshot, k kept) error {
	if err := v.follower.Err(); err != nil {
		return err
	}
	return writeRun(v.w, s, k, v.style)
}

// writeRun prints the result of a run.
func writeRun(w *cli.World, s *loop.Snapshot, k kept, style render.Options) error {
	if s == nil {
		return nil
	}
	var b bytes.Buffer
	if err := autopilot.WriteRun(&b, s, k.files, style); err != nil {
		return err
	}
	_, err := w.Stdout.Write(b.Bytes())
	return err
}

// eventsView writes a session as events, one JSON object per line.
type eventsView struct{ eventWriter }

func newEventsView(w *cli.World) *eventsView {
	return &eventsView{eventWriter{w: w, follower: document.NewEvents(w.Stdout), broken: make(chan struct{})}}
}

// noServer implements view.
func (v *eventsView) noServer(at time.Duration, why string) {
	v.handle(loop.Event{T: at, Kind: loop.EventError, Text: "no server yet: " + why})
}

// report implements view. Only the paths of the files are missing from the last event.
func (v *eventsView) report(_ *loop.Snapshot, k kept) error {
	for _, name := range k.files {
		fmt.Fprintln(v.w.Stderr, "rooftop: full report:", name)
	}
	return v.follower.Err()
}
