package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
)

// told follows a session by its events, each written as it happens.
type told struct {
	w        *world
	follower report.Follower
	broken   chan struct{} // closed when nobody reads any more

	mu   sync.Mutex // guards the follower: a session tells, and who waits for one
	once sync.Once
}

// tell implements view.
func (t *told) tell(e engine.Event) { t.say(func() { t.follower.Event(e) }) }

// say lets the follower write, and ends the telling where nobody reads.
func (t *told) say(write func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	write()
	if t.follower.Err() != nil {
		t.once.Do(func() { close(t.broken) })
	}
}

// follow waits for the end of a session, or until nobody reads what is told.
func (t *told) follow(ctx context.Context, f *following) {
	select {
	case <-f.over:
	case <-ctx.Done():
	case <-t.broken:
	}
}

// linesView tells a session in lines: for pipes, logs and screen readers.
type linesView struct {
	told
	narrator *report.Narrator
	style    report.Options
}

func newLinesView(w *world, o *output) *linesView {
	style := o.style(w)
	n := report.NewNarrator(w.stdout, style)
	return &linesView{told: told{w: w, follower: n, broken: make(chan struct{})}, narrator: n, style: style}
}

// show implements view.
func (v *linesView) show(ctx context.Context, f *following) error {
	v.follow(ctx, f)
	return nil
}

// intro tells what is about to be shown.
func (v *linesView) intro(lines ...string) { v.say(func() { v.narrator.Intro(lines...) }) }

// waits implements waiting.
func (v *linesView) waits(at time.Duration, why string) { v.say(func() { v.narrator.Waits(at, why) }) }

// report implements view.
func (v *linesView) report(s *engine.Snapshot, k kept) error {
	if err := v.follower.Err(); err != nil {
		return err
	}
	return writeRun(v.w, s, k, v.style)
}

// writeRun prints what a run came to.
func writeRun(w *world, s *engine.Snapshot, k kept, style report.Options) error {
	if s == nil {
		return nil
	}
	var b bytes.Buffer
	if err := report.WriteRun(&b, s, k.files, style); err != nil {
		return err
	}
	_, err := w.stdout.Write(b.Bytes())
	return err
}

// eventsView tells a session as events, one JSON object a line.
type eventsView struct{ told }

func newEventsView(w *world) *eventsView {
	return &eventsView{told{w: w, follower: report.NewEvents(w.stdout), broken: make(chan struct{})}}
}

// show implements view.
func (v *eventsView) show(ctx context.Context, f *following) error {
	v.follow(ctx, f)
	return nil
}

// waits implements waiting.
func (v *eventsView) waits(at time.Duration, why string) {
	v.tell(engine.Event{T: at, Kind: engine.EventError, Text: "no server yet: " + why})
}

// report implements view: the last event has said it all, but where the files lie.
func (v *eventsView) report(_ *engine.Snapshot, k kept) error {
	for _, name := range k.files {
		fmt.Fprintln(v.w.stderr, "rooftop: full report:", name)
	}
	return v.follower.Err()
}
