package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui"
)

// live says that a trace is to be looked at on the screen: nothing was asked for that
// needs an end, and a person sits at both sides.
func (o *traceOptions) live(w *world) bool {
	return !o.ends() && viewOf(w, &o.output) == viewScreen
}

// ends says that something was asked for that comes when the trace is over.
func (o *traceOptions) ends() bool {
	for _, f := range o.outputs() {
		if f.path != "" {
			return true
		}
	}
	return o.roof || o.measure || o.flags.Changed("duration")
}

// watchLive shows a trace on the screen until the person leaves it, and prints at the end
// what it came to.
func (o *traceOptions) watchLive(ctx context.Context, w *world) error {
	show := newProgress(w, &o.output)
	show.say("attaching")
	source, err := o.attach()
	show.done()
	if err != nil {
		return err
	}
	l := newLiveTrace(o, source)
	v := &screenView{w: w, out: &o.output, options: defaultScreen(), program: o.program}
	give := takeBack(w)
	defer hearing(func(n int, s syscall.Signal) {
		if n > 1 { // the first one ends ctx
			give()
			os.Exit(128 + int(s))
		}
	})()
	following, detach := context.WithCancel(ctx)
	defer detach()
	ended := make(chan error, 1)
	go func() { ended <- l.run(following) }()
	shown := l.show(ctx, v)
	detach()
	var last *optrace.Summary
	if err = l.await(w, ended); !errors.Is(err, errStuck) {
		last = l.summary
		err = errors.Join(err, l.told(w))
	}
	switch code := signalOf(ctx); {
	case code != 0:
		return fail(code, err)
	case err != nil || shown != nil:
		return fail(exitError, errors.Join(err, shown))
	case last == nil:
		return exit(exitNothing)
	}
	return nil
}

// show keeps the terminal until the person leaves or ctx ends.
func (l *liveTrace) show(ctx context.Context, v *screenView) error {
	defer silence()()
	return tui.NewTrace(l, tui.TraceControls{
		SetDetail: func(d optrace.Detail) { l.wish(func() { l.aim(d) }) },
		Pause:     func(paused bool) { l.wish(func() { l.pause(paused) }) },
		Answer:    func(yes bool) { l.wish(func() { l.answer(yes) }) },
		Export:    func() { l.wish(l.export) },
	}, v.tuiOptions()).Run(ctx)
}

// errStuck is why nothing is told of a trace at its end.
var errStuck = fmt.Errorf("trace: detaching did not end within %v; the kernel takes the probes off with this process", endPatience)

// await waits until the probes are off and files are written.
func (l *liveTrace) await(w *world, ended <-chan error) error {
	limit, news := time.NewTimer(endPatience), time.NewTimer(quietEnd)
	defer limit.Stop()
	defer news.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-news.C:
			fmt.Fprintln(w.stderr, "rooftop: detaching, and writing what was exported; Ctrl-C twice ends at once")
		case <-limit.C:
			return errStuck
		}
	}
}

// told prints the head of the report, and where files lie.
func (l *liveTrace) told(w *world) error {
	s := l.summary
	if s == nil {
		s = &optrace.Summary{Target: l.target}
	}
	if err := report.WriteTraceHead(w.stdout, s, l.o.style(w)); err != nil {
		return err
	}
	for _, f := range l.files { // whole, so that they can be copied
		if _, err := fmt.Fprintln(w.stdout, "exported:", f); err != nil {
			return err
		}
	}
	if l.ended && l.failure == nil {
		fmt.Fprintln(w.stderr, "rooftop: "+l.cut)
	}
	return nil
}
