package main

import (
	"cmp"
	"context"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/exporter"
	"github.com/rooftop-dev/rooftop/cmd/internal/fleetscan"
	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// leastPause is the shortest pause between diagnoses.
const leastPause = 5 * time.Second

func newExporter(w *cli.World) *cobra.Command {
	given := attach.Options{Env: w.Env}
	var past fleetscan.Scraped
	var listen string
	var pause time.Duration
	c := newCommand("exporter", noArgs, func(c *cobra.Command, _ []string) error {
		source, err := exported(&given, &past)
		switch {
		case err != nil:
			return err
		case pause < leastPause:
			return cli.Usagef("--pause %v is too short: at least %v", pause, leastPause)
		}
		return export(c.Context(), w, source, listen, pause)
	})
	g := cli.GroupFlags(c)
	f := g.Group("The exporter")
	f.StringVar(&listen, "listen", "127.0.0.1:9842", "`ADDRESS` to answer /metrics on")
	f.DurationVar(&pause, "pause", time.Minute, "`TIME` between the end of a diagnosis and the next")
	given.RegisterServer(g)
	given.RegisterRun(g, 30*time.Second, "of a diagnosis")
	past.Register(g.Group("Many servers, from Prometheus"))
	given.RegisterUnread(g)
	return g.Done()
}

// exported returns what diagnoses the servers again and again: those that Prometheus scrapes, or one
// beside the exporter.
func exported(given *attach.Options, past *fleetscan.Scraped) (exporter.Source, error) {
	if _, err := past.Span(time.Now()); err != nil {
		return nil, err
	}
	switch {
	case past.From != "" || past.To != "":
		return nil, cli.Usagef("exporter: --from and --to name a time in the past; give --since")
	case given.Record != "":
		return nil, cli.Usagef("exporter: --record records one diagnosis; use rooftop diagnose --record")
	}
	if err := given.Check(); err != nil {
		return nil, err
	}
	if past.Prometheus != "" {
		return func(ctx context.Context) ([]fleet.Server, error) {
			span, err := past.Span(time.Now())
			if err != nil {
				return nil, err
			}
			return past.Fleet(ctx, given, span, nil)
		}, nil
	}
	locator := attach.NewLocator(given)
	known := "" // the server's name, once it is known
	if given.URL != "" {
		target, err := attach.ParseTarget(given.URL)
		if err != nil {
			return nil, err
		}
		known = strings.TrimPrefix(target.Base(), "http://") // as Prometheus calls an instance
	}
	return func(ctx context.Context) ([]fleet.Server, error) {
		server, err := locator.Open(ctx)
		switch {
		case err == nil:
		case known == "":
			return nil, err
		case locator.Away(err):
			return []fleet.Server{fleet.Down(known, err.Error())}, nil
		default:
			return []fleet.Server{fleet.Unread(known, err.Error())}, err
		}
		if known == "" {
			known = cmp.Or(given.Kube, strings.TrimPrefix(server.Target.Base(), "http://"))
		}
		defer server.Close()
		d, err := server.Measure(ctx, given.Duration, nil, nil)
		return []fleet.Server{{Name: known, Diagnosis: d}}, err
	}, nil
}

// export serves the diagnoses of a source until a signal ends it.
func export(ctx context.Context, w *cli.World, source exporter.Source, address string, pause time.Duration) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return cli.Usagef("--listen %s: %w", address, err)
	}
	w.Notef("metrics at http://%s/metrics", l.Addr())
	e := exporter.New(cli.Version())
	go e.Run(ctx, source, pause, func(err error) { w.Notef("%v", err) })
	if err := e.Serve(ctx, l); err != nil {
		return err
	}
	return cli.Interrupted(ctx)
}
