package proberun

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/capture"
	probepage "github.com/rooftop-dev/rooftop/engine/page/probe"
)

// finish derives the figures of a run and writes all requested outputs. A failing output does not
// prevent the others.
func (o *Options) finish(ctx context.Context, w *cli.World, s *subject, c *capture.Capture, setup capture.Setup) error {
	s.complete(c)
	c.Round()
	p := &capture.Record{
		Setup: setup, Capture: c,
		Summary: capture.Summarize(c, capture.Machine{Facts: &s.facts, Cards: s.catalog().GPUs()}),
	}
	var failed, saved []string
	note := func(err error) {
		if err != nil {
			failed = append(failed, err.Error())
		}
	}
	write := func(out io.Writer) error { return document.WriteProbe(out, p) }
	if o.save != "" {
		err := atomicfile.SudoUser(os.Geteuid(), w.Env).Write(o.save, atomicfile.Mode(o.save, 0o600), write)
		if note(err); err == nil {
			saved = append(saved, o.save)
		}
	}
	var printed error
	if o.JSON {
		printed = write(w.Stdout)
	} else {
		printed = render.Text(w.Stdout, probepage.Page(p, o.Verbose), o.Style(w))
	}
	w.ReportSaved(saved)
	switch {
	case len(failed) > 0:
		// Only the text of errors: a closed pipe at stdout or elsewhere must not hide the other
		// errors.
		note(printed)
		return cli.Fail(cmp.Or(cli.SignalCode(ctx), cli.ExitError), errors.New(strings.Join(failed, "; and ")))
	case printed != nil:
		return cli.Fail(cli.ExitError, printed)
	}
	return nil
}

// writable returns why a file could not be written, before anything is measured for it. Without a
// path it returns nil.
func writable(path string) error {
	if path == "" {
		return nil
	}
	return atomicfile.Check(path)
}
