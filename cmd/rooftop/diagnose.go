package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/fleetscan"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect/prometheus"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

func newDiagnose(w *cli.World) *cobra.Command {
	o := tuneOptions{screen: defaultScreen(), goal: autopilot.DefaultGoal(), auto: autopilot.Default()}
	var interactive bool
	var slo string
	var past fleetscan.Scraped
	c := newCommand("diagnose", noArgs, func(c *cobra.Command, _ []string) error {
		objectives, err := autopilot.ParseObjectives(slo)
		if err != nil {
			return err
		}
		o.Options.Objectives, o.goal.Objectives = objectives, objectives
		span, err := past.Span(time.Now())
		if err != nil {
			return err
		}
		if past.Prometheus != "" {
			if interactive {
				return cli.Usagef("diagnose: -i opens the live screen, and --prometheus reads the past: leave one out")
			}
			return diagnosePast(c.Context(), w, &o.Options, &past, span)
		}
		if !interactive {
			return diagnose(c.Context(), w, &o.Options)
		}
		if viewOf(w, &o.Output) != viewScreen {
			return cli.Usagef("diagnose: -i opens the live screen, which needs a terminal for stdin and stdout, and neither --plain nor --json; leave it out")
		}
		return tune(c.Context(), w, &o)
	})
	o.Env = w.Env
	g := cli.GroupFlags(c)
	o.RegisterServer(g)
	f := o.RegisterRun(g, 30*time.Second, "to measure")
	f.BoolVarP(&interactive, "interactive", "i", false, "open the live screen at once, like 'rooftop tune'")
	f.StringVar(&slo, "slo", "", "`LIMITS` that must hold as load grows: ttft_p99=500ms,itl_p99=60ms; they bound the headroom")
	past.Register(g.Group("The past, from Prometheus"))
	o.RegisterUnread(g)
	o.Output.Register(g, everything)
	return g.Done()
}

// diagnosePast diagnoses a server by what Prometheus scraped of it.
func diagnosePast(ctx context.Context, w *cli.World, o *attach.Options, past *fleetscan.Scraped, span prometheus.Range) error {
	for _, name := range [...]string{"url", "kube", "context", "duration", "dcgm-url", "api-key-file", "ca-file"} {
		if o.Flags.Changed(name) {
			return cli.Usagef("--%s and --prometheus contradict each other: Prometheus has scraped the server, which is not contacted", name)
		}
	}
	if err := o.Check(); err != nil {
		return err
	}
	d, err := recorded(w, o, func(r *session.Recorder) (engine.Diagnosis, error) { return diagnoseOne(ctx, o, past, span, r) })
	if err != nil {
		return err
	}
	return cli.Exit(outcomeCode(d))
}

// recorded prints the diagnosis of a run, which it records if the user asks for it.
func recorded(w *cli.World, o *attach.Options, run func(*session.Recorder) (engine.Diagnosis, error)) (*engine.Diagnosis, error) {
	// Create the file before any request to the server, so that an invalid name is reported at
	// once.
	file, err := createRecord(o.Record)
	if err != nil {
		return nil, err
	}
	d, err := run(file.recorder())
	if err != nil {
		file.discard()
		return nil, err
	}
	recordErr := file.close()
	if err := write(w, &o.Output, &d, o.Ceiling); err != nil {
		return nil, err
	}
	if recordErr != nil {
		return nil, fmt.Errorf("recording %s: %w", o.Record, recordErr)
	}
	return &d, nil
}

// diagnoseOne diagnoses the one server that was scraped, or that is selected.
func diagnoseOne(ctx context.Context, o *attach.Options, past *fleetscan.Scraped, span prometheus.Range, record *session.Recorder) (engine.Diagnosis, error) {
	source, list, err := past.Open(ctx, span, nil)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	if len(list) > 1 {
		var names []string
		for _, t := range list {
			names = append(names, "  "+launch.Line("--match", t.Match()))
		}
		return engine.Diagnosis{}, cli.Usagef("%d servers were scraped; name one, or see all with rooftop fleet:\n%s", len(list), strings.Join(names, "\n"))
	}
	return past.Diagnose(ctx, source, list[0], span, o, record)
}

// everything describes what -v adds to a report.
const everything = "every rule, every fact with its source, and all readings"

func diagnose(ctx context.Context, w *cli.World, o *attach.Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	var server *attach.Server
	d, err := recorded(w, o, func(r *session.Recorder) (engine.Diagnosis, error) {
		var err error
		if server, err = attach.Open(ctx, o); err != nil {
			return engine.Diagnosis{}, err
		}
		show := &measuring{Progress: cli.NewProgress(w, &o.Output)}
		defer show.Done()
		return server.Measure(ctx, o.Duration, r, show.update)
	})
	if server != nil {
		defer server.Close()
	}
	if err != nil {
		return err
	}
	if ended := cli.SignalCode(ctx); ended != 0 {
		return cli.Exit(ended)
	}
	offerScreen(w, o, server)
	return cli.Exit(outcomeCode(d))
}

// offerScreen ends a report on a terminal with a hint at the live screen.
func offerScreen(w *cli.World, o *attach.Options, server *attach.Server) {
	if viewOf(w, &o.Output) != viewScreen {
		return
	}
	words := []string{"rooftop", "tune", "--url", server.Target.String()}
	o.Flags.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "url", "duration", "record", "verbose", "interactive":
			return
		}
		if cli.OnCommandLine(f) {
			words = append(words, "--"+f.Name+"="+f.Value.String())
		}
	})
	fmt.Fprintf(w.Stdout, "\nLive view, with the effect of each change: %s\n", launch.Line(words...))
}

// write prints a diagnosis in the requested format.
func write(w *cli.World, o *cli.Output, d *engine.Diagnosis, ceiling string) error {
	build := func(d *engine.Diagnosis) *page.Page {
		return tuning.Diagnosis(d, tuning.Options{Verbose: o.Verbose, Classic: ceiling == attach.ClassicCeiling})
	}
	return cli.Print(w, o, d, cli.Text(build), document.WriteDiagnosis)
}

// outcomeCode returns the exit code of a finished diagnosis.
func outcomeCode(d *engine.Diagnosis) cli.ExitCode {
	switch d.Outcome {
	case engine.OutcomeNoLoad, engine.OutcomeNotEvaluable:
		return cli.ExitNothing
	case engine.OutcomeUnhealthy:
		if d.Condition.State == engine.Down {
			return cli.ExitUnreachable
		}
		return cli.ExitUnhealthy
	case engine.OutcomeRecommendation:
		if d.Recommendation.Kind == engine.KindFlag {
			return cli.ExitRecommendation
		}
	}
	return cli.ExitDone
}
