package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/rules"
)

// tuneOptions are the flags of the loop.
type tuneOptions struct {
	options
	goal   goalOptions
	auto   autoOptions
	screen screenOptions
	files  fileOptions
}

// defaultMeasure is the length of one measurement of the loop.
const defaultMeasure = 20 * time.Second

func newTune(w *world) *cobra.Command { return newTuneOf(w, new(tuneOptions)) }

// newTuneOf is the command with the options that it reads.
func newTuneOf(w *world, o *tuneOptions) *cobra.Command {
	c := &cobra.Command{
		Use:   "tune [FLAG...] [-- COMMAND...]",
		Short: "The live screen: what limits a server, and what a change brings",
		Long: `Shows a running vLLM server live: where it stands against what its hardware
allows, what limits it, and the one change to make, with what it is predicted to
bring. You make the change and restart the server, or have rooftop do it; it
waits until the server is steady, measures, and says what the change brought,
with an interval that noise and restarts are part of: better, worse, no gain, or
not to be told. Then comes the next change.

'rooftop' without a command is the same.

WHICH SERVER
  --url, else the one vLLM among this machine's processes, else
  http://localhost:8000. Of several it asks which. Where none runs yet it waits
  for one, and says what it looks for.

WHO MAKES THE CHANGE
  Without a flag: you. Nothing on the server is touched, ever. To have rooftop
  make changes, name how. Naming it is the yes; without --auto each change is
  asked for with a, once more.
  -- COMMAND...       rooftop starts the server itself, in a process group and
                      with a log file of its own. When rooftop ends, the server
                      goes on, with the best that was found
  --restart-in-place  the process that is found is stopped gracefully and
                      started again as it was, with the change. You must be
                      allowed to, and it must not run in another container
  --apply-cmd PROGRAM the program restarts the server, wherever it runs: its
                      exit code, the server's start time and /health decide. It
                      gets the change as JSON on stdin and in variables
  A flag that stands in a config file or a variable is changed there. A change
  that keeps the server from starting is put back, and its log says why.

WITHOUT KEYS
  --auto goes on by itself: it keeps what is better and puts back all else, also
  what noise hides. It ends when nothing predicted is worth a restart, or at a
  bound: --max-restarts, --max-downtime, --hours, --allow-flags. What can change
  the answers of the model is only tried where --allow-flags names it. Without
  one of the three ways above, --auto says each change and waits for it.
  Before each change its prediction is written into a journal, one directory for
  each server in rooftop under XDG_STATE_HOME (default ~/.local/state). On one
  machine a second rooftop on the same server is refused. What a crash or kill
  -9 left, 'rooftop recover' puts right; 'rooftop history' lists runs.
  --dry-run measures, shows every step of the first change and of its way back,
  and ends. It starts nothing, stops nothing and writes no journal.
  Ctrl-C first puts back what is not kept. The second one ends at once, and says
  that 'rooftop recover' is needed.

THE SCREEN
  ? shows every key; tab and the digits change the view; q leaves. e writes a
  report of what is seen (Markdown, JSON, HTML) into --report-dir. When it ends,
  the terminal is as it was, with a short report and the path of the full one.

WITHOUT A SCREEN
  Where stdin or stdout is no terminal, with TERM=dumb or --plain, the run is
  told in lines; with --json as events, one JSON object a line. Without --auto
  it goes on until Ctrl-C or another signal ends it.

WHAT IT NEVER DOES
  It restarts no server without one of the three ways above, contacts no address
  that you did not give, and prints no key or token.

ENVIRONMENT
  As 'rooftop diagnose --help' lists it; full reports go into rooftop/runs under
  XDG_STATE_HOME (default ~/.local/state).

EXIT CODES
  0      done: what helped is kept, nothing is left to recommend, what was tried
         proved to bring nothing, or what helps is no flag
  1      any other error: the server is not as it was meant to be, the journal
         cannot be written, or another rooftop tunes this server
  2      the command line is off
  3      ended with a recommended flag open: a bound was reached, or it was
         tried and could not be judged; of --dry-run: something would be changed
  4      no load, or nothing could be judged
  5      no server was found, or it does not answer any more
  128+n  ended by signal n`,
		Example: `  rooftop
  rooftop tune --url http://gpu-7:8000 --duration 1m
  rooftop tune --plain --cost-per-hour 12
  rooftop tune --auto --restart-in-place --hours 22:00-06:00
  rooftop tune --auto --slo ttft_p99=500ms -- vllm serve Qwen/Qwen3-8B
  rooftop tune --auto --json --apply-cmd ./apply.sh --max-downtime 10m
  rooftop tune --dry-run
  rooftop tune --json | jq -c 'select(.type == "verdict") | .direction'`,
		DisableFlagsInUseLine: true,
		Args:                  o.auto.args,
		RunE:                  func(c *cobra.Command, _ []string) error { return tune(c.Context(), w, o) },
	}
	o.env = w.env
	g := groupFlags(c)
	o.registerServer(g)
	o.registerRun(g, defaultMeasure, "of the first look at a measurement")
	o.goal.register(g.group("What a change is judged by"))
	o.auto.register(g.group("Who makes the change"))
	o.auto.flags = c.Flags()
	o.registerUnread(g)
	o.screen.register(g.group("The screen"))
	o.files.register(g)
	o.output.register(g, "the whole report of every measurement")
	g.done()
	c.Flags().Lookup("json").Usage = "events instead of the screen, one JSON object a line"
	c.Flags().Lookup("plain").Usage = "lines instead of the screen, without colour: for screen readers and logs"
	return c
}

// check refuses what cannot be meant, before anything is asked of a server and
// before the screen begins.
func (o *tuneOptions) check() error {
	if err := o.options.check(); err != nil {
		return err
	}
	if err := o.screen.check(); err != nil {
		return err
	}
	if err := o.files.check(); err != nil {
		return err
	}
	if err := o.goal.check(o.flags, o.duration); err != nil {
		return err
	}
	if err := o.auto.check(); err != nil {
		return err
	}
	if err := o.knownGPU(); err != nil {
		return err
	}
	return o.checkAddresses()
}

// checkAddresses makes sure that clients can be made for what was given.
func (o *options) checkAddresses() error {
	if o.dcgmURL != "" {
		client, err := dcgmClient(o)
		if err != nil {
			return err
		}
		client.Close()
	}
	target, err := parseTarget("http://localhost:" + collect.DefaultPort)
	if err != nil {
		return err
	}
	client, err := collect.NewClient(collect.Options{Target: target, CAFile: o.caFile})
	if err != nil {
		return usage("%w", err)
	}
	client.Close()
	return nil
}

// tune follows one server until the person or a signal ends it, or until a run
// without keys has nothing left to do.
func tune(ctx context.Context, w *world, o *tuneOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	kind := viewOf(w, &o.output)
	l := newLocator(&o.options)
	_, seen := terminal(w.stderr)
	if err := o.auto.aim(&o.options); err != nil {
		return err
	}
	if err := l.begin(ctx, w, seen && terminalInput(w.stdin)); err != nil {
		return err
	}
	file, err := createRecord(o.record)
	if err != nil {
		return err
	}
	p, err := o.takePilot(ctx, w, l)
	if err != nil {
		file.discard()
		return err
	}
	v := newView(w, kind, &o.output, &o.screen)
	if lines, ok := v.(*linesView); ok {
		lines.intro(o.intro(l)...)
	}
	live := session.NewLive(session.LivePlan{
		Loop: o.loopPlan(kind, l, p), Attach: p.attaching(l.finding(v)), Clock: l.clock, Record: file.recorder(),
		Tell: p.follow(v.tell), Export: o.files.export, Grace: o.grace(p), ApplyWithin: o.auto.within(),
	})
	f := &following{session: live, view: v, stderr: w.stderr, keep: func(s *engine.Snapshot) kept {
		k := o.files.keep(w.env, s, p.journalled())
		k.err = o.endRecord(file, s)
		return k
	}}
	p.under(ctx, f, live, o.auto.within())
	err = f.run(ctx)
	return errors.Join(err, p.told(w, live.Latest()))
}

// loopPlan is what the loop of a run is started with.
func (o *tuneOptions) loopPlan(kind viewKind, l *locator, p *pilot) engine.LoopPlan {
	plan := engine.LoopPlan{
		Started: time.Now(), Version: buildVersion(), Rules: rules.All(),
		Measure: o.duration, Watch: l.watch(), Hands: p != nil, Auto: o.auto.unattended(), DryRun: o.auto.dryRun,
		Goal: verdict.Goal(o.goal.goal), Objectives: o.goal.objectives, Precision: o.goal.near, Longest: o.goal.longest,
	}
	if p == nil {
		plan.NoHands = noHands
	} else {
		plan.Repeats, plan.Foretold, plan.Start = p.past.Repeats, p.past.Foretold, p.past.Start
	}
	if plan.Auto {
		plan.Limits, plan.Countdown = o.auto.limits(), o.auto.pause(kind)
	}
	return plan
}

// grace is how long a change under way is waited for when the run must end.
func (o *tuneOptions) grace(p *pilot) time.Duration {
	if p == nil {
		return changeGrace
	}
	return o.auto.within()
}

// intro says at the head of lines what is about to happen.
func (o *tuneOptions) intro(l *locator) []string {
	lines := []string{"looking for " + l.watch() + "; Ctrl-C ends the run with a report"}
	how := map[mode]string{
		modeNone:   "you make each change; this run says which",
		modeExec:   "rooftop started the server and restarts it for each change",
		modeAttach: "rooftop restarts the server's process for each change",
		modeHook:   "for each change rooftop runs " + o.auto.program,
	}[o.auto.mode()]
	switch {
	case o.auto.dryRun:
		lines = append(lines, "dry run: nothing is touched")
	case o.auto.auto:
		lines = append(lines, fmt.Sprintf("%s; at most %d restarts; what is not better is put back", how, o.auto.maxRestarts))
	}
	return lines
}

// keep writes the full reports of a run that has ended. That it cannot is no
// error of the run.
func (o *fileOptions) keep(env func(string) (string, bool), s *engine.Snapshot, journalled string) kept {
	if o.none {
		return kept{}
	}
	files, err := keepRun(env, s, journalled)
	if err != nil {
		return kept{files: files, note: fmt.Sprintf("the full report could not be written: %v", err)}
	}
	return kept{files: files}
}

// endRecord closes the recording of a run. One in which no server was ever seen
// leaves no file.
func (o *options) endRecord(file *recordFile, s *engine.Snapshot) error {
	if file != nil && !s.Attached {
		file.discard()
		return nil
	}
	if err := file.close(); err != nil {
		return fmt.Errorf("recording %s: %w", o.record, err)
	}
	return nil
}
