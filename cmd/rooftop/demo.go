package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/demo"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/rules"
)

// demoOptions are the flags of the demonstration.
type demoOptions struct {
	scenario string
	list     bool
	settle   time.Duration
	measure  time.Duration
	changes  int
	port     int
	seed     uint64
	auto     bool
	screen   screenOptions
	files    fileOptions
	cli.Output
}

// Times of a demonstration: half a minute until the first answer, and less than two minutes for the
// usual two measurements.
const (
	demoStartup = 2 * time.Second
	demoSettle  = 16 * time.Second
	demoMeasure = 12 * time.Second
	// demoLongest is the maximum duration of a trial with noise: viewers do not wait for five
	// minutes.
	demoLongest = time.Minute
	demoStable  = 30 * time.Second
	// demoCountdown is long enough to read the announcement of a change.
	demoCountdown = 5 * time.Second
	demoChanges   = 3
)

func newDemo(w *cli.World) *cobra.Command {
	var o demoOptions
	c := newCommand("demo", noArgs, func(c *cobra.Command, _ []string) error {
		if o.list {
			if o.JSON {
				return cli.Usagef("demo: --list prints a table, not JSON")
			}
			return listScenarios(w)
		}
		return runDemo(c.Context(), w, &o)
	})
	g := cli.GroupFlags(c)
	f := g.Group("The demonstration")
	f.StringVar(&o.scenario, "scenario", settings.Default, "`NAME` of the scenario, as --list shows it")
	f.BoolVar(&o.list, "list", false, "list the scenarios")
	f.BoolVar(&o.auto, "auto", false, "run without keys on the screen; without a screen it always does")
	f.DurationVar(&o.settle, "settle", 0, "`TIME` that the load runs before a run without keys begins (default the scenario's own)")
	f.DurationVar(&o.measure, "duration", 0, "`TIME` of one measurement, at least 8s (default the scenario's own)")
	f.IntVar(&o.changes, "changes", demoChanges, "try at most `N` changes in a run without keys")
	f.IntVar(&o.port, "port", 0, "`PORT` of the simulated server on 127.0.0.1; 0 is a free one")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the load and of the server's noise")
	o.screen.Register(g.Group("The screen"))
	o.files.register(g)
	o.Output.Register(g, "the whole report of every measurement")
	g.Done()
	c.Flags().Lookup("json").Usage = "events instead of the screen, one JSON object a line"
	c.Flags().Lookup("plain").Usage = "lines instead of the screen, without colour"
	c.Flags().Lookup("no-report").Usage = "do not write the full report, otherwise stored under ~/.local/state/rooftop/runs when the screen ends; lines and events write none"
	return c
}

func listScenarios(w *cli.World) error {
	list, err := settings.All()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, tuning.Simulated+" SCENARIO\tCASE\tHARDWARE\tWHAT IS WRONG")
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, s.Case, s.GPU, firstSentence(s.Story))
	}
	return t.Flush()
}

func firstSentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	first, _, _ := strings.Cut(s, ". ")
	return strings.TrimSuffix(first, ".")
}

// times sets the times that were not given: those of the scenario, which cover its main event, or
// shorter ones for the usual scenario.
func (o *demoOptions) times(s *settings.Scenario) {
	settle, measure := s.Measure.After, s.Measure.For
	if s.Name == settings.Default {
		settle, measure = demoSettle, demoMeasure
	}
	o.settle, o.measure = cmp.Or(o.settle, settle), cmp.Or(o.measure, measure)
}

func (o *demoOptions) check() error {
	switch {
	case o.measure < attach.MinDuration || o.measure > attach.MaxDuration:
		return cli.Usagef("--duration %s: give %s to %s", cli.FormatTime(o.measure), cli.FormatTime(attach.MinDuration), cli.FormatTime(attach.MaxDuration))
	case o.settle < 0 || o.settle > attach.MaxDuration:
		return cli.Usagef("--settle %s: give 0s to %s", cli.FormatTime(o.settle), cli.FormatTime(attach.MaxDuration))
	case o.changes < 1:
		return cli.Usagef("--changes %d: give at least 1", o.changes)
	case o.port < 0 || o.port > 65535:
		return cli.Usagef("--port %d: give 0 to 65535", o.port)
	}
	if err := o.screen.Check(); err != nil {
		return err
	}
	return o.files.check()
}

func runDemo(ctx context.Context, w *cli.World, o *demoOptions) error {
	found, err := selectScenarios(o.scenario)
	if err != nil {
		return cli.Usagef("--scenario: %w", err)
	}
	scenario := found[0]
	o.times(&scenario)
	if err := o.check(); err != nil {
		return err
	}
	config, err := launch.Parse(strings.Fields(scenario.Server), nil, nil)
	if err != nil {
		return err
	}
	kind := viewOf(w, &o.Output)
	auto := o.auto || kind != viewScreen
	sim := &demo.Server{
		Host:   &demo.Host{Scenario: scenario, Port: o.port, Seed: o.seed, Startup: demoStartup},
		Config: config, Clock: attach.Stopwatch(),
	}
	defer sim.Host.Close()
	v := o.view(w, kind, &scenario)
	settle := o.settle
	if !auto {
		settle = 0 // with keys, the user sees how steady it is
	}
	if err := sim.Start(ctx, settle, cli.NewProgress(w, &o.Output)); err != nil {
		return err
	}
	plan := session.LivePlan{
		Loop: loop.Plan{
			Started: time.Now(), Version: cli.Version(), Rules: rules.All(), Measure: o.measure,
			Watch: sim.Host.URL(), CanApply: true, Auto: auto, Longest: max(demoLongest, o.measure), Stable: demoStable,
		},
		Attach: sim.Attach, Clock: sim.Clock, Tell: sim.Follow(v.handle), Export: o.files.export, Grace: changeGrace,
	}
	if auto {
		plan.Loop.Rounds = o.changes
	}
	if kind == viewScreen {
		plan.Loop.Countdown = demoCountdown
	}
	f := &following{session: session.NewLive(plan), view: v, stderr: w.Stderr}
	if kind == viewScreen {
		f.keep = func(s *loop.Snapshot) kept { return o.files.keep(w.Env, s, "") }
	}
	return f.run(ctx)
}

// view returns the view of the demonstration. Lines and events are marked as simulated from the
// first one on.
func (o *demoOptions) view(w *cli.World, kind viewKind, s *settings.Scenario) view {
	v := newView(w, kind, &o.Output, &o.screen)
	switch v := v.(type) {
	case *linesView:
		v.narrator.Simulated = true
		v.intro("no GPU is used, nothing leaves this machine; the server imitates vLLM step by step on "+s.GPU,
			"scenario "+s.Name+": "+strings.Join(strings.Fields(s.Story), " "),
			demo.Clients(s),
			fmt.Sprintf("the load runs for %.0f s, then a measurement takes %.0f s, and each change another one", (demoStartup+o.settle).Seconds(), o.measure.Seconds()))
	case *eventsView:
		v.follower.(*document.Events).Simulated = true
	}
	return v
}
