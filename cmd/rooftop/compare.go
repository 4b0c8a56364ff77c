package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/fleetscan"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect/prometheus"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// pastSource reads measurements of the past: recordings, and what a Prometheus server scraped.
type pastSource struct {
	given attach.Options
	past  fleetscan.Scraped
}

// check validates the flags. Flags for facts that cannot be read need Prometheus: a recording has its own facts.
func (s *pastSource) check() (err error) {
	if s.past.Prometheus != "" {
		return s.given.Check()
	}
	for _, name := range [...]string{"match", "http-config", "max-num-seqs", "tensor-parallel-size", "gpu", "model", "model-config", "catalog", "cost-per-hour", "spot"} {
		if cli.OnCommandLine(s.given.Flags.Lookup(name)) {
			return cli.Usagef("--%s needs --prometheus URL: a recording has one server, with the facts that were known about it", name)
		}
	}
	return nil
}

// file reads a recording.
func (s *pastSource) file(path string) (*loop.Measurement, error) {
	recording, done, err := openRecording("compare", path)
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := session.Reread(recording, path, cli.Version())
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", path, err)
	}
	return p, nil
}

// scrapes reads the one server that Prometheus scraped in a range, as if it had been recorded.
func (s *pastSource) scrapes(ctx context.Context, name string, span prometheus.Range) (*loop.Measurement, error) {
	var b bytes.Buffer
	r := session.NewRecorder(&b)
	if _, err := diagnoseOne(ctx, &s.given, &s.past, span, r); err != nil {
		return nil, err
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	recording, err := session.OpenRecording(&b)
	if err != nil {
		return nil, err
	}
	return session.Reread(recording, name, cli.Version())
}

// named reads a measurement by its argument: FROM/TO, or a file.
func (s *pastSource) named(ctx context.Context, arg string) (*loop.Measurement, error) {
	from, to, cut := strings.Cut(arg, "/")
	if _, err := time.Parse(time.RFC3339, from); err != nil || !cut {
		return s.file(arg)
	}
	if s.past.Prometheus == "" {
		return nil, cli.Usagef("%s is a time range: give the --prometheus URL that has its data", arg)
	}
	span, err := s.past.Between(from, to)
	if err != nil {
		return nil, err
	}
	return s.scrapes(ctx, arg, span)
}

func newCompare(w *cli.World) *cobra.Command {
	s := pastSource{given: attach.Options{Env: w.Env, Ceiling: attach.PhysicalCeiling}}
	var goal, slo string
	c := newCommand("compare", exactly(2, "two measurements", "each a FILE of --record, or a range FROM/TO of --prometheus"), func(c *cobra.Command, args []string) error {
		objectives, err := autopilot.ParseObjectives(slo)
		if err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return err
		}
		var sides [2]*loop.Measurement
		for i, arg := range args {
			if sides[i], err = s.named(c.Context(), arg); err != nil {
				return err
			}
		}
		return comparePast(w, &s.given.Output, sides[0], sides[1], verdict.Plan{Goal: verdict.Goal(goal), Objectives: objectives})
	})
	g := cli.GroupFlags(c)
	s.given.Flags = c.Flags()
	f := g.Group("The comparison")
	cli.Choice(f, &goal, "goal", string(verdict.Latency), "`WHAT` is to be better: throughput, latency (the time of a request) or cost", string(verdict.Throughput), string(verdict.Latency), string(verdict.Cost))
	f.StringVar(&slo, "slo", "", "`KEY=TIME,...` that must hold: ttft_p99=500ms,itl_p99=60ms")
	s.past.RegisterServers(g.Group("The past, from Prometheus"))
	s.given.RegisterUnread(g)
	s.given.Output.Register(g, "")
	return g.Done()
}

// comparePast prints the comparison of two measurements.
func comparePast(w *cli.World, out *cli.Output, before, after *loop.Measurement, plan verdict.Plan) error {
	result := &tuning.PastComparison{Before: before, After: after, Delta: loop.ComparePast(before, after, plan)}
	result.Changes, result.LaunchesKnown = before.Changes(after)
	if err := cli.Print(w, out, result, cli.Text(tuning.Measurements), document.WriteCompare); err != nil {
		return err
	}
	switch result.Delta.Direction {
	case verdict.Worse:
		return cli.Exit(cli.ExitRecommendation)
	case verdict.NotComparable, verdict.Inconclusive:
		return cli.Exit(cli.ExitNothing)
	}
	return nil
}
