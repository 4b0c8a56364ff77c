package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/rules"
)

// tuneOptions are the flags of the loop.
type tuneOptions struct {
	options
	screen screenOptions
	files  fileOptions
}

// defaultMeasure is the length of one measurement of the loop.
const defaultMeasure = 20 * time.Second

func newTune(w *world) *cobra.Command {
	var o tuneOptions
	c := &cobra.Command{
		Use:   "tune",
		Short: "The live screen: what limits a server, and what a change brings",
		Long: `Shows a running vLLM server live: where it stands against what its hardware
allows, what limits it, and the one change to make. You make the change and
restart the server; rooftop notices, waits until the server is steady, measures
again and says what the change brought: better, worse or no gain. Where it is
worse it asks whether to go back. Then comes the next change.

'rooftop' without a command is the same.

WHICH SERVER
  --url, else the one vLLM among this machine's processes, else
  http://localhost:8000. Of several it asks which. Where none runs yet it waits
  for one, and says what it looks for.

THE SCREEN
  ? shows every key; tab and the digits change the view; q leaves. e writes a
  report of what is seen (Markdown, JSON, HTML) into --report-dir. When it ends,
  the terminal is as it was, with a short report and the path of the full one.

WITHOUT A SCREEN
  Where stdin or stdout is no terminal, with TERM=dumb or --plain, the run is
  told in lines; with --json as events, one JSON object a line. It goes on until
  Ctrl-C or another signal ends it.

WHAT IT NEVER DOES
  It changes nothing on the server, calls no endpoint that does, contacts no
  address that you did not give, and prints no key or token.

ENVIRONMENT
  As 'rooftop diagnose --help' lists it; full reports go into rooftop/runs under
  XDG_STATE_HOME (default ~/.local/state).

EXIT CODES
  0      done: nothing is left to recommend, or what helps is no flag
  1      any other error
  2      the command line is off
  3      ended with a recommended flag open
  4      no load, or nothing could be judged
  5      no server was found, or it does not answer any more
  128+n  ended by signal n`,
		Example: `  rooftop
  rooftop tune --url http://gpu-7:8000 --duration 1m
  rooftop tune --plain --cost-per-hour 12
  rooftop tune --json | jq -c 'select(.type == "verdict") | .direction'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return tune(c.Context(), w, &o) },
	}
	o.env = w.env
	g := groupFlags(c)
	o.registerServer(g)
	o.registerRun(g, defaultMeasure, "of one measurement")
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

// tune follows one server until the person or a signal ends it.
func tune(ctx context.Context, w *world, o *tuneOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	kind := viewOf(w, &o.output)
	l := newLocator(&o.options)
	_, seen := terminal(w.stderr)
	if err := l.begin(ctx, w, seen && terminalInput(w.stdin)); err != nil {
		return err
	}
	file, err := createRecord(o.record)
	if err != nil {
		return err
	}
	v := newView(w, kind, &o.output, &o.screen)
	if lines, ok := v.(*linesView); ok {
		lines.intro("looking for " + l.watch() + "; Ctrl-C ends the run with a report")
	}
	live := session.NewLive(session.LivePlan{
		Loop: engine.LoopPlan{
			Started: time.Now(), Version: buildVersion(), Rules: rules.All(),
			Measure: o.duration, Watch: l.watch(), NoHands: noHands(false),
		},
		Attach: l.finding(v),
		Clock:  l.clock, Record: file.recorder(), Tell: v.tell, Export: o.files.export, Grace: changeGrace,
	})
	f := &following{session: live, view: v, stderr: w.stderr, keep: func(s *engine.Snapshot) kept {
		k := o.files.keep(w.env, s)
		k.err = o.endRecord(file, s)
		return k
	}}
	return f.run(ctx)
}

// keep writes the full reports of a run that has ended. That it cannot is no
// error of the run.
func (o *fileOptions) keep(env func(string) (string, bool), s *engine.Snapshot) kept {
	if o.none {
		return kept{}
	}
	files, err := keepRun(env, s)
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
