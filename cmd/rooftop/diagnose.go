package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
)

func newDiagnose(w *world) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "diagnose",
		Short: "Measure a running vLLM server once: what limits it, and the one change to make",
		Long: `Measures a running vLLM server for half a minute and prints what limits it, how
far it is from what its hardware allows, and the one change to make.

WHAT IT READS
  the metrics page   every 250 ms over one connection, slower where the page is
                     slow to render (the interval is at least 20 times that)
  the GPUs           NVML, else nvidia-smi, else --dcgm-url; none is no error
  the launch         of a server on this machine: the process that listens on the
                     port, its command line, config file and environment;
                     else /v1/models, /version and the metrics page
  What cannot be read is said, with what that switches off. Give it by flag: -m,
  --tensor-parallel-size, --gpu, --model, --model-config, --cost-per-hour.

WHAT IT NEVER DOES
  It changes nothing on the server, calls no endpoint that does, contacts no
  address that you did not give, and prints no key or token.

A server without load cannot be judged: measure under the load you care about.
Each flag can be set as a variable, ROOFTOP_<NAME>: ROOFTOP_MAX_NUM_SEQS=256.
Ctrl-C ends early, with the report of what was measured so far.

EXIT CODES
  0  healthy, or what helps is not a flag of this server
  1  any other error
  2  the command line is off
  3  a flag of this server should be changed
  4  reached, but no load or nothing evaluable
  5  unreachable, or not a vLLM metrics page
  128+n  ended by signal n`,
		Example: `  rooftop diagnose --url http://gpu-7:8000/metrics
  rooftop diagnose -m 256 --gpu "H100 SXM" --tensor-parallel-size 4 --duration 2m
  rooftop diagnose --json | jq .recommendation
  rooftop diagnose --record run.gz && rooftop replay run.gz -v`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return diagnose(c.Context(), w, &o) },
	}
	o.register(c, w)
	return c
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no argument, but got %q; is a -- missing before a flag?", c.Name(), args[0])
	}
	return nil
}

func diagnose(ctx context.Context, w *world, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	server, err := attach(ctx, o)
	if err != nil {
		return err
	}
	defer server.close()
	recorder, finish, err := openRecord(o.record)
	if err != nil {
		return err
	}
	show := newProgress(w, &o.output)
	plan := session.Plan{
		Header: server.header, Version: buildVersion(), Duration: o.duration,
		Pages: server.pages, Clock: server.clock, Closing: server.closing, Record: recorder, Progress: show.update,
	}
	if server.gpus != nil {
		plan.GPUs = server.gpus
	}
	d, err := session.Measure(ctx, plan)
	show.done()
	if err != nil {
		return fail(exitError, err)
	}
	recordErr := finish()
	if err := write(w, &o.output, &d, o.ceiling); err != nil {
		return fail(exitError, err)
	}
	if recordErr != nil {
		return fail(exitError, fmt.Errorf("recording %s: %w", o.record, recordErr))
	}
	if ended := signalOf(ctx); ended != 0 {
		return exit(ended)
	}
	return exit(outcomeCode(&d))
}

// write prints a diagnosis as asked for.
func write(w *world, o *output, d *engine.Diagnosis, ceiling string) error {
	var buf bytes.Buffer
	var err error
	if o.json {
		err = report.WriteJSON(&buf, d)
	} else {
		style := o.style(w)
		style.Classic = ceiling == "classic"
		err = report.WritePlain(&buf, d, style)
	}
	if err != nil {
		return err
	}
	_, err = w.stdout.Write(buf.Bytes())
	return err
}

// signalOf is 128+n where signal n ended the run, else 0.
func signalOf(ctx context.Context) exitCode {
	var s *signalError
	if errors.As(context.Cause(ctx), &s) {
		return exitCode(128 + int(s.signal))
	}
	return 0
}

// openRecord creates the file of a recording, readable by its owner alone: a
// page may name what a company does not publish. It never overwrites.
func openRecord(path string) (*session.Recorder, func() error, error) {
	if path == "" {
		return nil, func() error { return nil }, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, nil, usage("--record: %s exists already; choose another name or remove it", path)
	}
	if err != nil {
		return nil, nil, usage("--record: %w", err)
	}
	r := session.NewRecorder(f)
	return r, func() error { return errors.Join(r.Close(), f.Close()) }, nil
}

func newReplay(w *world) *cobra.Command {
	var out output
	var ceiling string
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Diagnose a recording again",
		Long: `Reads what 'rooftop diagnose --record FILE' wrote and gives the same diagnosis at
once: for a second look with -v or --json, for a colleague, or for a newer rooftop.
A recording holds raw metrics pages and readings, and no key or token.`,
		Example: "  rooftop replay run.gz -v\n  rooftop replay run.gz --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("replay needs one FILE; 'rooftop diagnose --record FILE' makes one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := fromEnvironment(c.Flags(), w.env); err != nil {
				return err
			}
			if err := out.check(); err != nil {
				return err
			}
			f, err := os.Open(args[0])
			if err != nil {
				return usage("replay: %w", err)
			}
			defer func() { _ = f.Close() }()
			d, err := replay(f)
			if err != nil {
				return fail(exitError, fmt.Errorf("replay %s: %w", args[0], err))
			}
			if err := write(w, &out, &d, ceiling); err != nil {
				return fail(exitError, err)
			}
			return exit(outcomeCode(&d))
		},
	}
	out.register(c.Flags())
	c.Flags().StringVar(&ceiling, "ceiling", "physical", "which ceiling to show first: `physical` or classic")
	return c
}

func replay(r io.Reader) (engine.Diagnosis, error) {
	recording, err := session.OpenRecording(r)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	return session.Replay(recording, buildVersion())
}
