package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/microscope"
)

// Limits of a window.
const (
	minWindow = 200 * time.Millisecond
	maxWindow = time.Hour
)

func newObserve(w *world) *cobra.Command {
	var o probeOptions
	c := &cobra.Command{
		Use:   "observe",
		Short: "What processes and GPUs do meanwhile, without a request",
		Long: `Samples a window of what runs anyway: each process of the server's tree, its
GPUs and its own metrics, on one clock, as 'rooftop probe' does, and sends no
request. With --pid alone it needs no server: any process tree can be watched.

INTERRUPTING
  Ctrl-C (or SIGTERM, SIGHUP) ends the window with what was recorded and 128+n.

EXIT CODES
  0      the window was recorded
  1      any other error
  2      the command line is off
  5      unreachable
  128+n  ended by signal n`,
		Example: `  rooftop observe --duration 30s
  rooftop observe -u http://127.0.0.1:8080 --json | jq .figures.derived
  rooftop observe --pid 4242 --duration 5s --trace build.trace.json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runObserve(c.Context(), w, &o) },
	}
	o.env = w.env
	g := groupFlags(c)
	o.registerServer(g)
	f := g.group("The window")
	f.DurationVar(&o.window, "duration", 10*time.Second, "`TIME` to watch")
	f.StringVar(&o.model, "model", "", "`NAME` of the model, where the served one says too little")
	o.registerSampling(g)
	o.registerKnown(g)
	o.registerOutput(g)
	g.done()
	return c
}

func runObserve(ctx context.Context, w *world, o *probeOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.window < minWindow || o.window > maxWindow {
		return usage("--duration must be %v to %v, not %v", minWindow, maxWindow, o.window)
	}
	s, err := o.look(ctx, o.pid == 0 || o.url != "")
	if err != nil {
		return err
	}
	defer s.close()
	show := newProgress(w, &o.output)
	show.say("watching for " + o.window.String())
	p := s.plan()
	p.Window = o.window
	c := microscope.Run(ctx, p)
	show.done()
	if err := o.finish(ctx, w, s, c, s.setup()); err != nil {
		return err
	}
	if ended := signalOf(ctx); ended != 0 {
		return exit(ended)
	}
	return nil
}
