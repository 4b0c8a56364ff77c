package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/demo"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
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
	output
}

// Times of a demonstration: half a minute until the first answer, and within two
// minutes to the end of the usual two measurements.
const (
	demoStartup = 2 * time.Second
	demoSettle  = 16 * time.Second
	demoMeasure = 12 * time.Second
	// demoLongest is what a trial may take that noise hides: who watches does not
	// wait for five minutes.
	demoLongest = time.Minute
	// demoCountdown is long enough to read what is about to happen.
	demoCountdown = 5 * time.Second
	demoChanges   = 3
)

func newDemo(w *world) *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a simulated server, load, and the loop, without a GPU",
		Long: `Starts a simulated vLLM server with a wrong setting in this process, offers
load, and opens the live screen on it, as 'rooftop tune' does on a real one.
There it measures, names one change with what it should bring, and makes
it when you press a; then it measures again and says what the change brought.
With --auto it needs no key: it says what it is about to do, does it, keeps what
is proven better, puts back all else, watches for a while what it kept, and ends
with how well its predictions held.

Where stdin or stdout is no terminal, or with --plain or --json, it plays by
itself and is told in lines or events, until nothing is left to recommend: in
less than two minutes for the usual scenario. Others take the time in which what
they are about happens. It needs no GPU and no network beyond 127.0.0.1.

The server is simulated: vLLM's scheduler and KV cache are imitated step by
step, the time of a step comes from a model of the hardware. It shows how
rooftop works, not what hardware does, and everything shown says so.

EXIT CODES
  0      nothing is left to recommend
  1      any other error
  2      the command line is off
  3      stopped with a recommendation open (--changes)
  4      no load, or nothing could be judged
  128+n  ended by signal n`,
		Example: `  rooftop demo
  rooftop demo --auto
  rooftop demo --list
  rooftop demo --scenario kv-preempting/8b-l4
  rooftop demo --json | jq -c 'select(.type == "verdict") | .direction'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fromEnvironment(c.Flags(), w.env); err != nil {
				return err
			}
			if o.list {
				if o.json {
					return usage("demo: --list prints a table; 'rooftop sim bench --list --json' has the scenarios as JSON")
				}
				return listScenarios(w)
			}
			return runDemo(c.Context(), w, &o)
		},
	}
	g := groupFlags(c)
	f := g.group("The demonstration")
	f.StringVar(&o.scenario, "scenario", scenarios.Default, "`NAME` of the scenario, as --list shows it")
	f.BoolVar(&o.list, "list", false, "list the scenarios")
	f.BoolVar(&o.auto, "auto", false, "play by itself on the screen; without one it always does")
	f.DurationVar(&o.settle, "settle", 0, "`TIME` that the load runs before a run by itself begins (default the scenario's own)")
	f.DurationVar(&o.measure, "duration", 0, "`TIME` of one measurement, at least 8s (default the scenario's own)")
	f.IntVar(&o.changes, "changes", demoChanges, "`N` changes to try at most, where it plays by itself")
	f.IntVar(&o.port, "port", 0, "`PORT` of the simulated server on 127.0.0.1; 0 is a free one")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the load and of the server's noise")
	o.screen.register(g.group("The screen"))
	o.files.register(g)
	o.output.register(g, "the whole report of every measurement")
	g.done()
	c.Flags().Lookup("json").Usage = "events instead of the screen, one JSON object a line"
	c.Flags().Lookup("plain").Usage = "lines instead of the screen, without colour"
	return c
}

func listScenarios(w *world) error {
	list, err := scenarios.All()
	if err != nil {
		return fail(exitError, err)
	}
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, report.Simulated+" SCENARIO\tCASE\tHARDWARE\tWHAT IS WRONG")
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

// times fills in the times that were not given: the scenario's own, in which what
// it is about has happened; of the usual scenario less, so that nobody waits.
func (o *demoOptions) times(s *scenarios.Scenario) {
	settle, measure := s.Measure.After, s.Measure.For
	if s.Name == scenarios.Default {
		settle, measure = demoSettle, demoMeasure
	}
	o.settle, o.measure = cmp.Or(o.settle, settle), cmp.Or(o.measure, measure)
}

func (o *demoOptions) check() error {
	switch {
	case o.measure < minDuration || o.measure > maxDuration:
		return usage("--duration %v: from %v to %v", o.measure, minDuration, maxDuration)
	case o.settle < 0 || o.settle > maxDuration:
		return usage("--settle %v: from 0s to %v", o.settle, maxDuration)
	case o.changes < 1:
		return usage("--changes %d: at least 1", o.changes)
	case o.port < 0 || o.port > 65535:
		return usage("--port %d: 0 to 65535", o.port)
	}
	if err := o.output.check(); err != nil {
		return err
	}
	if err := o.screen.check(); err != nil {
		return err
	}
	return o.files.check()
}

func runDemo(ctx context.Context, w *world, o *demoOptions) error {
	found, err := scenarios.Select(o.scenario)
	if err != nil {
		return usage("--scenario: %w; 'rooftop demo --list' lists them", err)
	}
	scenario := found[0]
	o.times(&scenario)
	if err := o.check(); err != nil {
		return err
	}
	config, err := launch.Parse(strings.Fields(scenario.Server), nil, nil)
	if err != nil {
		return fail(exitError, err)
	}
	kind := viewOf(w, &o.output)
	auto := o.auto || kind != viewScreen
	sim := &simulatedServer{
		host:   &demo.Host{Scenario: scenario, Port: o.port, Seed: o.seed, Startup: demoStartup},
		config: config, clock: stopwatch(),
	}
	defer sim.host.Close()
	v := o.view(w, kind, &scenario)
	settle := o.settle
	if !auto {
		settle = 0 // whoever presses the keys sees how steady it is
	}
	if err := sim.start(ctx, settle, newProgress(w, &o.output)); err != nil {
		return err
	}
	plan := session.LivePlan{
		Loop: engine.LoopPlan{
			Started: time.Now(), Version: buildVersion(), Rules: rules.All(), Measure: o.measure,
			Watch: sim.host.URL(), Hands: true, Auto: auto, Longest: max(demoLongest, o.measure),
		},
		Attach: sim.attach, Clock: sim.clock, Tell: sim.follow(v.tell), Export: o.files.export, Grace: changeGrace,
	}
	if auto {
		plan.Loop.Rounds = o.changes
	}
	if kind == viewScreen {
		plan.Loop.Countdown = demoCountdown
	}
	f := &following{session: session.NewLive(plan), view: v, stderr: w.stderr}
	if kind == viewScreen {
		f.keep = func(s *engine.Snapshot) kept { return o.files.keep(w.env, s, "") }
	}
	return f.run(ctx)
}

// view is how the demonstration is followed. Lines and events are marked from the
// first on.
func (o *demoOptions) view(w *world, kind viewKind, s *scenarios.Scenario) view {
	v := newView(w, kind, &o.output, &o.screen)
	switch v := v.(type) {
	case *linesView:
		v.narrator.Simulated = true
		v.intro("no GPU is used, nothing leaves this machine; the server imitates vLLM step by step on "+s.GPU,
			"scenario "+s.Name+": "+strings.Join(strings.Fields(s.Story), " "),
			demo.Clients(s),
			fmt.Sprintf("the load runs for %.0f s, then a measurement takes %.0f s, and each change another one", (demoStartup+o.settle).Seconds(), o.measure.Seconds()))
	case *eventsView:
		v.follower.(*report.Events).Simulated = true
	}
	return v
}
