package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/chrometrace"
	"github.com/rooftop-dev/rooftop/cmd/internal/otlp"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// finish makes the figures of a run and puts them everywhere that was asked for. One
// place that fails keeps the run from no other.
func (o *probeOptions) finish(ctx context.Context, w *world, s *subject, c *capture.Capture, setup capture.Setup) error {
	s.complete(c)
	c.Round()
	p := &report.Probe{
		Setup: setup, Capture: c,
		Summary: capture.Summarize(c, capture.Machine{Facts: &s.facts, Cards: s.catalog().GPUs()}),
	}
	var failed, saved []string
	note := func(err error) {
		if err != nil {
			failed = append(failed, err.Error())
		}
	}
	document := func(out io.Writer) error { return report.WriteProbeJSON(out, p) }
	trace := func(out io.Writer) error { return chrometrace.WriteCapture(out, c) }
	for _, file := range []struct {
		path string
		fill func(io.Writer) error
	}{{o.save, document}, {o.trace, trace}} {
		if file.path == "" {
			continue
		}
		err := wholefile.Behind(os.Geteuid(), w.env).Write(file.path, wholefile.Mode(file.path, 0o600), file.fill)
		if note(err); err == nil {
			saved = append(saved, file.path)
		}
	}
	var printed error
	if o.json {
		printed = document(w.stdout)
	} else {
		printed = report.WriteProbe(w.stdout, p, o.style(w))
	}
	if _, tty := terminal(w.stderr); tty && len(saved) > 0 {
		fmt.Fprintln(w.stderr, "saved:", strings.Join(saved, ", "))
	}
	if o.otlp != "" {
		note(o.export(ctx, w, s, p))
	}
	switch {
	case len(failed) > 0:
		// In words alone: a pipe of stdout or of another place that is closed is no
		// reason to keep quiet about the rest.
		note(printed)
		return fail(cmp.Or(signalOf(ctx), exitError), errors.New(strings.Join(failed, "; and ")))
	case printed != nil:
		return fail(exitError, printed)
	}
	return nil
}

// writable says why a file could not be written, before anything is measured for it.
// No file is no error.
func writable(path string) error {
	if path == "" {
		return nil
	}
	return wholefile.Check(path)
}

// readCollector says where traces and metrics go; nil where nobody asked for that.
func (o *probeOptions) readCollector() (*otlp.Options, error) {
	if o.otlp == "" {
		if o.otlpHeader != "" || o.otlpCA != "" {
			return nil, usage("--otlp-headers-file and --otlp-ca-file are for a collector: give --otlp-endpoint")
		}
		return nil, nil
	}
	to := &otlp.Options{Endpoint: o.otlp, CAFile: o.otlpCA, Version: buildVersion()}
	if o.otlpHeader != "" {
		headers, err := otlp.ReadHeaders(o.otlpHeader)
		if err != nil {
			return nil, usage("--otlp-headers-file: %w", err)
		}
		to.Headers = headers
	}
	if err := to.Check(); err != nil {
		return nil, usage("--otlp-endpoint: %w", err)
	}
	return to, nil
}

// operations are the APIs in the words of OpenTelemetry's conventions.
var operations = map[string]string{capture.Chat: "chat", capture.Completion: "text_completion"}

// export sends a run to the collector. A signal that ended the run does not keep it
// from there; one that comes now ends the export.
func (o *probeOptions) export(ctx context.Context, w *world, s *subject, p *report.Probe) error {
	to := o.collector
	to.Run.Model = p.Setup.Target.Model
	if p.Setup.Request != nil {
		to.Run.Operation = operations[p.Setup.Request.API]
	}
	if s.client != nil {
		to.Run.ServerAddress, _ = splitHostPort(s.target)
		to.Run.ServerPort = s.port()
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	result, err := otlp.Export(ctx, *to, p.Capture, p.Summary)
	for _, note := range result.Notes {
		fmt.Fprintln(w.stderr, "rooftop: the collector says:", note)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("otlp: the export was interrupted (%w); the collector may have a part of the run", context.Cause(ctx))
	}
	return err
}
