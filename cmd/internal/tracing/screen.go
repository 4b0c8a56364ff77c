package tracing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/cmd/internal/screen"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	tracepage "github.com/rooftop-dev/rooftop/engine/page/trace"
	tracescreen "github.com/rooftop-dev/rooftop/tui/trace"
)

// live reports whether to show the trace on the screen: no requested output needs an end of the
// trace, and stdin and stdout are terminals.
func (o *Options) live(w *cli.World) bool {
	return !o.ends() && screen.Possible(w, &o.Output)
}

// ends reports whether an output was requested that is written at the end of the trace.
func (o *Options) ends() bool {
	for _, f := range o.outputs() {
		if f.path != "" {
			return true
		}
	}
	return o.roof || o.measure || o.flags.Changed("duration")
}

// watchScreen shows a trace on the screen until the user leaves it, and then prints the results.
func (o *Options) watchScreen(ctx context.Context, w *cli.World) error {
	show := cli.NewProgress(w, &o.Output)
	show.Show("attaching")
	source, err := o.attach()
	show.Done()
	if err != nil {
		return err
	}
	l := newLiveTrace(o, source)
	restore := screen.Restorer(w)
	defer cli.OnSignals(ctx, func(n int, s syscall.Signal) {
		if n > 1 { // the first signal ends ctx
			restore()
			os.Exit(128 + int(s))
		}
	})()
	following, detach := context.WithCancel(ctx)
	defer detach()
	ended := make(chan error, 1)
	go func() { ended <- l.run(following) }()
	shown := l.show(ctx, w)
	detach()
	var last *optrace.Summary
	if err = l.await(w, ended); !errors.Is(err, errStuck) {
		last = l.summary
		err = errors.Join(err, l.printEnd(w))
	}
	switch code := cli.SignalCode(ctx); {
	case code != 0:
		return cli.Fail(code, err)
	case err != nil || shown != nil:
		return errors.Join(err, shown)
	case last == nil:
		return cli.Exit(cli.ExitNothing)
	}
	return nil
}

// show keeps the terminal until the user leaves or ctx ends.
func (l *liveTrace) show(ctx context.Context, w *cli.World) error {
	defer screen.Silence()()
	return tracescreen.New(l, tracescreen.Controls{
		SetDetail: func(d optrace.Detail) { l.enqueue(func() { l.request(d) }) },
		Pause:     func(paused bool) { l.enqueue(func() { l.pause(paused) }) },
		Answer:    func(yes bool) { l.enqueue(func() { l.answer(yes) }) },
		Export:    func() { l.enqueue(l.export) },
	}, l.o.screen.TUI(w, &l.o.Output)).Run(ctx)
}

// watchRecording shows the figures of a recording on the screen until the user leaves it.
func (o *Options) watchRecording(ctx context.Context, w *cli.World, t *traced) error {
	defer screen.Silence()()
	c := &t.summary.Coverage
	over := time.Duration(c.Seconds * float64(time.Second))
	shown := recorded{optrace.Live{
		State: optrace.LiveRecorded, Target: t.summary.Target, Since: over, Now: over, Observer: t.summary.Observer,
		Summary: t.summary, Graph: t.newest(),
	}}
	if detail, err := optrace.ParseDetail(c.Detail); err == nil {
		shown.live.Detail = detail
	}
	return tracescreen.New(&shown, tracescreen.Controls{}, o.screen.TUI(w, &o.Output)).Run(ctx)
}

// recorded is the feed of a recording: one snapshot that does not change.
type recorded struct{ live optrace.Live }

// Latest returns the snapshot.
func (r *recorded) Latest() *optrace.Live { return &r.live }

// errStuck is the error if detaching does not end.
var errStuck = fmt.Errorf("trace: detaching did not end within %v; the kernel removes the probes with this process", cli.EndPatience)

// await waits until the probes are removed and files are written.
func (l *liveTrace) await(w *cli.World, ended <-chan error) error {
	limit, news := time.NewTimer(cli.EndPatience), time.NewTimer(cli.QuietEnd)
	defer limit.Stop()
	defer news.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-news.C:
			w.Notef("detaching, and writing what was exported; Ctrl-C twice ends at once")
		case <-limit.C:
			return errStuck
		}
	}
}

// printEnd prints the head of the report, and the names of exported files.
func (l *liveTrace) printEnd(w *cli.World) error {
	s := l.summary
	if s == nil {
		s = &optrace.Summary{Target: l.target}
	}
	if err := render.Text(w.Stdout, tracepage.Head(s), l.o.Style(w)); err != nil {
		return err
	}
	for _, f := range l.files { // in full, so that they can be copied
		if _, err := fmt.Fprintln(w.Stdout, "exported:", f); err != nil {
			return err
		}
	}
	if l.ended && l.failure == nil {
		w.Notef("%s", l.cut)
	}
	return nil
}
