package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/rules"
)

// tuneOptions are the flags of the loop.
type tuneOptions struct {
	attach.Options
	goal   autopilot.GoalOptions
	auto   autopilot.Options
	screen screenOptions
	files  fileOptions
}

// endWithins limits the end of a run that changes its server, in longest times of a change: one that
// is canceled, its revert, and another try of that at the end.
const endWithins = 3

// defaultMeasure is the default duration of one measurement of the loop.
const defaultMeasure = 20 * time.Second

func newTune(w *cli.World) *cobra.Command { return newTuneOf(w, new(tuneOptions)) }

// newTuneOf returns the command, which stores its flags in o.
func newTuneOf(w *cli.World, o *tuneOptions) *cobra.Command {
	takesCommand := func(c *cobra.Command, args []string) error { return o.auto.Args(c.Name(), args, c.ArgsLenAtDash()) }
	c := newCommand("tune", takesCommand, func(c *cobra.Command, _ []string) error { return tune(c.Context(), w, o) })
	c.DisableFlagsInUseLine = true
	o.Env = w.Env
	g := cli.GroupFlags(c)
	o.RegisterServer(g)
	o.RegisterRun(g, defaultMeasure, "of the first look at a measurement")
	o.goal.Register(g.Group("Judging a change"))
	o.auto.Register(g.Group("Making the change"), c.Flags())
	o.RegisterUnread(g)
	o.screen.Register(g.Group("The screen"))
	o.files.register(g)
	o.Output.Register(g, "the whole report of every measurement")
	g.Done()
	c.Flags().Lookup("json").Usage = "events instead of the screen, one JSON object a line"
	c.Flags().Lookup("plain").Usage = "lines instead of the screen, without colour: for screen readers and logs"
	return c
}

// check rejects invalid options, before the server is contacted and the screen opens.
func (o *tuneOptions) check() error {
	for _, check := range [...]func() error{
		o.Options.Check, o.screen.Check, o.files.check,
		func() error { return o.goal.Check(o.Flags, o.Duration) },
		o.auto.Check, o.CheckAddresses,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// tune follows one server until the user or a signal ends it, or until an automatic run has nothing
// left to do.
func tune(ctx context.Context, w *cli.World, o *tuneOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	kind := viewOf(w, &o.Output)
	l := attach.NewLocator(&o.Options)
	_, seen := cli.Terminal(w.Stderr)
	if err := o.auto.Aim(&o.Options); err != nil {
		return err
	}
	if err := l.Begin(ctx, w, seen && cli.TerminalInput(w.Stdin)); err != nil {
		return err
	}
	file, err := createRecord(o.Record)
	if err != nil {
		return err
	}
	if o.auto.Mode() == autopilot.ModeExec && !o.auto.DryRun {
		// Between the handlers of the start and of the run.
		defer cli.OnSignals(ctx, func(int, syscall.Signal) {})()
	}
	p, err := autopilot.Take(ctx, w, l, &o.Options, &o.auto)
	if err != nil {
		file.discard()
		return err
	}
	v := newView(w, kind, &o.Output, &o.screen)
	if lines, ok := v.(*linesView); ok {
		lines.intro(o.intro(l)...)
	}
	live := session.NewLive(session.LivePlan{
		Loop: o.loopPlan(kind, l, p), Attach: p.Attaching(l.Finding(v.noServer)), Clock: l.Clock, Record: file.recorder(),
		Tell: p.Follow(v.handle), Export: o.files.export, Grace: o.grace(p), ApplyWithin: o.auto.Within(),
	})
	f := &following{session: live, view: v, stderr: w.Stderr, keep: func(s *loop.Snapshot) kept {
		k := o.files.keep(w.Env, s, p.Journalled())
		k.err = endRecord(&o.Options, file, s)
		return k
	}}
	if p.Acts() {
		p.Watch(live.Latest)
		f.patience, f.restoring = endWithins*o.auto.Within(), p.Restoring
		f.settle = func(s *loop.Snapshot) error { return p.Settle(context.WithoutCancel(ctx), s) }
	}
	err = f.run(ctx)
	return errors.Join(err, p.Report(w, live.Latest()))
}

// loopPlan returns the plan for the loop of a run.
func (o *tuneOptions) loopPlan(kind viewKind, l *attach.Locator, p *autopilot.Pilot) loop.Plan {
	plan := loop.Plan{
		Started: time.Now(), Version: cli.Version(), Rules: rules.All(),
		Measure: o.Duration, Watch: l.Watch(), CanApply: p != nil, Auto: o.auto.Unattended(), DryRun: o.auto.DryRun, Canary: o.auto.Canary,
		Goal: verdict.Goal(o.goal.Goal), Objectives: o.goal.Objectives, Precision: o.goal.Precision, Longest: o.goal.Longest,
	}
	if p == nil {
		plan.CannotApply = attach.CannotApply
	} else {
		past := p.Past()
		plan.Repeats, plan.Start = past.Repeats, past.Start
	}
	if plan.Auto {
		plan.Limits, plan.Countdown = o.auto.Limits(), o.auto.Pause(kind == viewScreen)
	}
	return plan
}

// grace returns how long to wait for a change in progress when the run must end.
func (o *tuneOptions) grace(p *autopilot.Pilot) time.Duration {
	if p == nil {
		return changeGrace
	}
	return o.auto.Within()
}

// intro returns the lines that announce what will happen.
func (o *tuneOptions) intro(l *attach.Locator) []string {
	lines := []string{"looking for " + l.Watch() + "; Ctrl-C ends the run with a report"}
	how := map[autopilot.Mode]string{
		autopilot.ModeNone:   "this run says which change to make; you make it, and revert it if it is not better",
		autopilot.ModeExec:   "rooftop started the server and restarts it for each change",
		autopilot.ModeAttach: "rooftop restarts the server for each change",
		autopilot.ModeHook:   "for each change rooftop runs " + o.auto.Program,
	}[o.auto.Mode()]
	switch {
	case o.auto.DryRun:
		lines = append(lines, "dry run: nothing is changed")
	case o.auto.Auto:
		line := fmt.Sprintf("%s; at most %d restarts", how, o.auto.MaxRestarts)
		if o.auto.Mode() != autopilot.ModeNone {
			line += "; a change that is not better is reverted"
		}
		lines = append(lines, line)
	}
	return lines
}

// endRecord closes the recording of a run, and removes it if no server was found.
func endRecord(o *attach.Options, file *recordFile, s *loop.Snapshot) error {
	if file != nil && !s.Attached {
		file.discard()
		return nil
	}
	if err := file.close(); err != nil {
		return fmt.Errorf("recording %s: %w", o.Record, err)
	}
	return nil
}
