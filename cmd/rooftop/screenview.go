package main

import (
	"cmp"
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui"
)

// screenView shows a session on the whole terminal.
type screenView struct {
	w        *cli.World
	out      *cli.Output
	options  *screenOptions
	playback tui.Playback // nil for a live server
}

// handle implements view. The screen reads snapshots instead of events.
func (v *screenView) handle(loop.Event) {}

// noServer implements view. The screen shows that by itself.
func (v *screenView) noServer(time.Duration, string) {}

// show implements view. It keeps the terminal until the session has ended and its files are
// written, unless the user leaves earlier.
func (v *screenView) show(ctx context.Context, f *following) error {
	defer silenceLibraries()()
	// Do not use the run's own context: when it ends, the screen must stay until the loop has
	// ended.
	showing, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	go func() {
		defer leave()
		select {
		case <-f.over:
			return
		case <-showing.Done():
			return
		case <-ctx.Done():
		}
		limit := time.NewTimer(cmp.Or(f.patience, cli.EndPatience))
		defer limit.Stop()
		select {
		case <-f.over:
		case <-f.hurry:
		case <-limit.C:
		}
	}()
	var feed tui.Feed = f.session
	if v.playback == nil { // a recording writes no files, and stays open at its end
		feed = &heldFeed{feed: f.session, over: f.over}
	}
	options := v.options.TUI(v.w, v.out)
	options.Playback = v.playback
	return tui.Run(showing, feed, f.session, options)
}

// report implements view.
func (v *screenView) report(s *loop.Snapshot, k kept) error {
	return writeRun(v.w, s, k, v.out.Style(v.w))
}

// heldFeed hides the end of a run until its files are written: the screen closes when the run has
// ended, and the terminal may be gone by then.
type heldFeed struct {
	feed tui.Feed
	over <-chan struct{}
	held *loop.Snapshot // the last snapshot, without its end
}

// Latest implements tui.Feed.
func (h *heldFeed) Latest() *loop.Snapshot {
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
