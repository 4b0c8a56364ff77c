package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

func newDiagnose(w *world) *cobra.Command {
	o := tuneOptions{screen: *defaultScreen()}
	o.defaults()
	var interactive bool
	c := &cobra.Command{
		Use:   "diagnose",
		Short: "Measure a server once: what limits it, and the one change to make",
		Long: `Measures a running vLLM server for half a minute and prints what limits it, how
far it is from what its hardware allows, and the one change to make. A server
without load cannot be judged: measure under the load you care about. 'rooftop
tune', or -i here, shows it live and measures what a change brings.

WHAT IT READS
  metrics page  every 250 ms over one connection, slower where the page is slow
                to render (the interval is at least 20 times that)
  GPUs          NVML, else nvidia-smi, else --dcgm-url; none is no error
  launch        of a server on this machine: the process that listens on the
                port, its command line, config file and environment; else
                /v1/models, /version and the metrics page
  What cannot be read is said, with what that switches off; flags can give it
  (below). 'rooftop doctor' tries all of it once, without measuring.

WHAT IT NEVER DOES
  It changes nothing on the server, calls no endpoint that does, contacts no
  address that you did not give, and prints no key or token.

INTERRUPTING
  Ctrl-C (or SIGTERM, SIGHUP) ends the run early, with the report of what was
  measured so far and exit code 128+n. A second one ends rooftop at once.

RECORDINGS
  --record FILE keeps every page and reading as it came, without keys or tokens,
  in a file that only you can read; it never overwrites. 'rooftop replay FILE'
  gives the same report again: later, elsewhere, with -v or as --json.

ENVIRONMENT
  ROOFTOP_API_KEY     the server's API key; there is no flag for the key itself,
                      since command lines are public on a machine
  ROOFTOP_<NAME>      any flag: ROOFTOP_MAX_NUM_SEQS=256 is --max-num-seqs 256;
                      the command line wins
  DTYPE, VLLM_DTYPE   type of a parameter in the classic formulas
  TENSOR_PARALLEL_SIZE, VLLM_TENSOR_PARALLEL_SIZE
                      as --tensor-parallel-size
  NO_COLOR            no colour, where it is not empty

EXIT CODES
  0      healthy, or what helps is not a flag of this server
  1      any other error
  2      the command line is off
  3      a flag of this server should be changed
  4      reached, but no load or nothing evaluable
  5      unreachable, or not a vLLM metrics page
  128+n  ended by signal n`,
		Example: `  rooftop diagnose --url http://gpu-7:8000
  rooftop diagnose -m 256 --gpu "H100 SXM" --cost-per-hour 12 --duration 2m
  rooftop diagnose --json | jq .recommendation
  rooftop diagnose --record run.gz; rooftop replay run.gz -v`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !interactive {
				return diagnose(c.Context(), w, &o.options)
			}
			if viewOf(w, &o.output) != viewScreen {
				return usage("diagnose: -i is the live screen, which needs a terminal for stdin and stdout, and neither --plain nor --json; leave it out")
			}
			return tune(c.Context(), w, &o)
		},
	}
	o.env = w.env
	g := groupFlags(c)
	o.registerServer(g)
	f := o.registerRun(g, 30*time.Second, "to measure")
	f.BoolVarP(&interactive, "interactive", "i", false, "go to the live screen at once, as 'rooftop tune' does")
	o.registerUnread(g)
	o.output.register(g, everything)
	g.done()
	return c
}

// everything is what -v adds to a report.
const everything = "every rule, every fact with its source, and all readings"

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
	// The file is made before anything is asked of the server: a name that cannot
	// be is told at once, not after the run.
	file, err := createRecord(o.record)
	if err != nil {
		return err
	}
	server, err := attach(ctx, o)
	if err != nil {
		file.discard()
		return err
	}
	defer server.close()
	show := newProgress(w, &o.output)
	d, err := session.Measure(ctx, plan(server, o, file.recorder(), show.update))
	show.done()
	if err != nil {
		file.discard()
		return fail(exitError, err)
	}
	recordErr := file.close()
	if err := write(w, &o.output, &d, o.ceiling); err != nil {
		return fail(exitError, err)
	}
	if recordErr != nil {
		return fail(exitError, fmt.Errorf("recording %s: %w", o.record, recordErr))
	}
	if ended := signalOf(ctx); ended != 0 {
		return exit(ended)
	}
	o.offerScreen(w, server)
	return exit(outcomeCode(&d))
}

// offerScreen ends a report on a terminal with the way to the live screen.
func (o *options) offerScreen(w *world, server *attached) {
	if viewOf(w, &o.output) != viewScreen {
		return
	}
	words := []string{"rooftop", "tune", "--url", server.target.String()}
	o.flags.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "url", "duration", "record", "verbose", "interactive":
			return
		}
		if f.Annotations[fromVariable] == nil {
			words = append(words, "--"+f.Name+"="+launch.Quote(f.Value.String()))
		}
	})
	fmt.Fprintf(w.stdout, "\nLive, with what a change brings: %s\n", strings.Join(words, " "))
}

// plan is the measurement of an attached server.
func plan(server *attached, o *options, r *session.Recorder, show func(*session.Progress)) session.Plan {
	server.header.Ceiling = o.ceiling
	p := session.Plan{
		Header: server.header, Version: buildVersion(), Duration: o.duration,
		Pages: server.pages, Clock: server.clock, Closing: server.closing, Record: r, Progress: show,
	}
	if server.gpus != nil {
		p.GPUs = server.gpus
	}
	return p
}

// write prints a diagnosis as asked for.
func write(w *world, o *output, d *engine.Diagnosis, ceiling string) error {
	var buf bytes.Buffer
	var err error
	if o.json {
		err = report.WriteJSON(&buf, d)
	} else {
		style := o.style(w)
		style.Classic = ceiling == classicCeiling
		err = report.WritePlain(&buf, d, style)
	}
	if err != nil {
		return err
	}
	_, err = w.stdout.Write(buf.Bytes())
	return err
}

// interrupted is the error of something that the end of ctx cut short.
func interrupted(ctx context.Context) error {
	if code := signalOf(ctx); code != 0 {
		return exit(code)
	}
	return fail(exitError, context.Cause(ctx))
}

// signalOf is 128+n where signal n ended the run, else 0.
func signalOf(ctx context.Context) exitCode {
	var s *signalError
	if errors.As(context.Cause(ctx), &s) {
		return exitCode(128 + int(s.signal))
	}
	return 0
}
