package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/demo"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
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
	output
}

// Times of a demonstration: half a minute until the first answer, and within two
// minutes to the end of the usual two measurements.
const (
	demoStartup = 2 * time.Second
	demoSettle  = 16 * time.Second
	demoMeasure = 12 * time.Second
	demoChanges = 3
)

func newDemo(w *world) *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a simulated server, load, and the loop, without a GPU",
		Long: `Starts a simulated vLLM server with a wrong setting in this process, offers load,
measures it as any server, applies the one recommended change, measures again and
says what it gained, until nothing is left to recommend. It needs no GPU, no file
and no network beyond 127.0.0.1. The usual scenario takes a minute; others take
the time in which what they are about happens.

The server is simulated: vLLM's scheduler and KV cache are imitated step by step,
the time of a step comes from a model of the hardware. It shows how rooftop works,
not what hardware does, and everything printed says so.

EXIT CODES
  0      nothing is left to recommend
  1      any other error
  2      the command line is off
  3      stopped with a recommendation open (--changes)
  4      no load, or nothing could be judged
  128+n  ended by signal n`,
		Example: `  rooftop demo
  rooftop demo --list
  rooftop demo --scenario kv-preempting/8b-a100
  rooftop demo --json | jq -c 'select(.type == "verdict") | {direction, classic}'`,
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
	f.DurationVar(&o.settle, "settle", 0, "`TIME` for the load to become steady (default the scenario's own)")
	f.DurationVar(&o.measure, "duration", 0, "`TIME` of one measurement, at least 8s (default the scenario's own)")
	f.IntVar(&o.changes, "changes", demoChanges, "`N` changes to try at most")
	f.IntVar(&o.port, "port", 0, "`PORT` of the simulated server on 127.0.0.1; 0 is a free one")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the load and of the server's noise")
	o.output.register(g, "the whole report of every measurement")
	g.done()
	c.Flags().Lookup("json").Usage = "events instead of text, one JSON object a line"
	return c
}

func listScenarios(w *world) error {
	list, err := scenarios.All()
	if err != nil {
		return fail(exitError, err)
	}
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, demo.Mark+" SCENARIO\tCASE\tHARDWARE\tWHAT IS WRONG")
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
	return nil
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
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	show := newProgress(w, &o.output)
	host := &demo.Host{Scenario: scenario, Port: o.port, Seed: o.seed, Startup: demoStartup}
	defer host.Close()
	tell, told := teller(w, o, clock, &scenario, show)
	end, err := demo.Run(ctx, demo.Plan{
		Server: &measuredHost{Host: host, w: w, o: o, show: show, tell: tell},
		Launch: config, Settle: o.settle, Rounds: o.changes, Tell: tell, Clock: clock,
		Interrupted: func() int { return int(signalOf(ctx)) },
		Waiting: func(elapsed, of time.Duration) {
			show.say(fmt.Sprintf("settling %2.0f/%.0f s", elapsed.Seconds(), of.Seconds()))
		},
	})
	show.done()
	if werr := told(); werr != nil {
		return fail(exitError, werr)
	}
	switch ended := signalOf(ctx); {
	case ended != 0:
		return exit(ended)
	case err != nil && o.json: // the error is an event already
		return exit(exitError)
	case err != nil:
		return fail(exitError, err)
	}
	return exit(exitCode(end.ExitCode))
}

// teller is how the run is told, and a function that returns the first write
// error once it is over.
func teller(w *world, o *demoOptions, clock func() time.Duration, s *scenarios.Scenario, show *progress) (demo.Teller, func() error) {
	if o.json {
		e := report.NewEvents(w.stdout, clock)
		e.Simulated = true
		return e, e.Err
	}
	n := &demo.Narrator{W: quietly{w.stdout, show}, Options: o.style(w), Clock: clock}
	n.Intro("no GPU is used, nothing leaves this machine; the server imitates vLLM step by step on "+s.GPU,
		"scenario "+s.Name+": "+strings.Join(strings.Fields(s.Story), " "),
		demo.Clients(s),
		fmt.Sprintf("a measurement takes %.0f s, and each change another one", (demoStartup+o.settle+o.measure).Seconds()))
	return n, n.Err
}

// quietly clears the progress line before anything is printed.
type quietly struct {
	io.Writer
	show *progress
}

func (q quietly) Write(p []byte) (int, error) {
	q.show.done()
	return q.Writer.Write(p)
}

// measuredHost measures the simulated server as any other: over HTTP, through
// the same readers.
type measuredHost struct {
	*demo.Host
	w    *world
	o    *demoOptions
	show *progress
	tell demo.Teller
}

// windowTeller is a teller that follows windows.
type windowTeller interface{ Window(w *engine.Window) }

// Measure implements demo.Server.
func (m *measuredHost) Measure(ctx context.Context, c *launch.Config) (engine.Diagnosis, error) {
	o := &options{
		url: m.URL(), duration: m.o.measure, launch: c, ceiling: physicalCeiling,
		flags: pflag.NewFlagSet("demo", pflag.ContinueOnError), // nothing given, and no variable meant for another server
		env:   func(string) (string, bool) { return "", false },
	}
	server, err := attach(ctx, o)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	defer server.close()
	if e, ok := m.tell.(*report.Events); ok {
		e.Attached(server.header.Target)
	}
	d, err := session.Measure(ctx, plan(server, o, nil, func(p *session.Progress) {
		m.show.update(p)
		if t, ok := m.tell.(windowTeller); ok && p.Window != nil {
			t.Window(p.Window)
		}
	}))
	m.show.done()
	if err == nil && ctx.Err() == nil && !d.Target.Simulated {
		return d, errors.New("another server answers on the port of the simulated one")
	}
	return d, err
}
