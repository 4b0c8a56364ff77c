package proberun

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// Limits of an observation's window.
const (
	minWindow = 200 * time.Millisecond
	maxWindow = time.Hour
)

// Observe samples a server for a window, without requests.
func (o *Options) Observe(ctx context.Context, w *cli.World) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.window < minWindow || o.window > maxWindow {
		return cli.Usagef("--duration must be %s to %s, not %s", cli.FormatTime(minWindow), cli.FormatTime(maxWindow), cli.FormatTime(o.window))
	}
	s, err := o.findSubject(ctx, o.pid == 0 || o.URL != "")
	if err != nil {
		return err
	}
	defer s.close()
	show := cli.NewProgress(w, &o.Output)
	show.Show("watching for " + o.window.String())
	p := s.plan()
	p.Window = o.window
	c := Run(ctx, p)
	show.Done()
	if err := o.finish(ctx, w, s, c, s.setup()); err != nil {
		return err
	}
	if ended := cli.SignalCode(ctx); ended != 0 {
		return cli.Exit(ended)
	}
	return nil
}
