package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// recordingSuffix is how the files of recordings end.
const recordingSuffix = ".jsonl.gz"

func newTrace(w *world) *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use:   "trace [PID | NAME | RECORDING" + recordingSuffix + "]",
		Short: "Every operator of a GGML runtime (llama.cpp, Ollama), live",
		Long: `Attaches to a running, unmodified GGML runtime with eBPF and shows its tokens,
graphs, operators and threads: what each costs, what bounds it, where time is
lost, and the one thing to change. It is found by its PID, by a part of its
command line, or, where one alone runs on this machine, by itself. With --file
every process that uses the file is traced, those that start later too.

WHAT IT COSTS
  Before operators are watched, graphs alone are: the operators of a token and
  its time say what watching will cost. That is not a part of --duration, and
  takes 60 tokens or 2 s; a prompt is waited for up to 5 s, and a target that
  computes nothing for --duration. The report reckons it again from the tokens
  of the trace, once there are 20. Where the default level would cost more than
  --max-overhead, the most detailed one that fits is taken and that is said; a
  --level that was asked for is refused, unless --force says so.
  --measure-overhead measures it instead: it watches and does not in turn while
  the target decodes. The lower end of the 95 % interval decides then.

WHAT IT NEEDS
  Root, or CAP_BPF and CAP_PERFMON, and CAP_SYS_PTRACE for processes of other
  users; Linux 5.17 or newer. 'rooftop doctor' says what is missing. The target
  is not stopped and nothing in it is changed; when rooftop ends, however it
  ends, the target is as it was.

LEVELS
  token      calls and their batches
  graph      graphs too, and the backends that compute them
  operator   operators too
  tensor     what each of them computes, and the experts of mixtures
  barriers   the waits of threads for each other too
  sched      threads on and off their CPU
  all        all that can be had
  Or single details with + between them, operator+sched+faults: a level, and any
  of barriers, sched, syscalls, io, faults, counters, sampling; tensor is the
  level where none is named.

THE ROOF
  Operators are judged by what the machine can do: measured once, while nothing
  else computes, by 'rooftop trace roof', or after a trace by --roof; else by
  the data sheet of the CPU (est), which --catalog can add; else by the best
  that products with weights reached in the trace itself, which is no limit of
  the machine.

THE SCREEN
  On a terminal the trace is shown live until q: ? shows every key, + and -
  change the level, p pauses, e exports what was recorded into the current
  directory: a document, a page, a trace for ui.perfetto.dev, and a recording of
  the newest events. With --duration, --roof, --measure-overhead, --json,
  --plain or a file the report is printed after --duration, or when the target
  ends: it says then after how long.

RECORDINGS
  --save keeps every event, while they come: until it is whole, a recording is
  called NAME.partial` + recordingSuffix + `, which a kill leaves, and which no later trace
  overwrites: move or remove it first. A trace of nothing replaces no recording.
  'rooftop trace FILE' shows a recording again, 'rooftop trace compare A B'
  holds two side by side.

INTERRUPTING
  Ctrl-C (or SIGTERM, SIGHUP) ends the trace with what was recorded and 128+n.

EXIT CODES
  0      traced, until the target's end where that came first
  1      any other error
  2      the command line is off
  4      nothing was computed meanwhile, the target ended before the trace, a
         recording was cut short before its first graph, or watching would cost
         too much; the document of --json says which
  5      no such runtime, or it may not be attached to
  128+n  ended by signal n
  With 1, 2 and 5 --json writes no document: the reason is on stderr.`,
		Example: `  rooftop trace
  rooftop trace 4242
  rooftop trace --pid 4242 --duration 30s --save run.jsonl.gz
  rooftop trace llama-server --level sched --trace run.trace.json
  rooftop trace --file /usr/lib/libggml-cpu.so --json | jq .recommendation
  rooftop trace run.jsonl.gz --svg graph.svg --html run.html
  rooftop trace compare before.jsonl.gz after.jsonl.gz`,
		Args: traceArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.flags = c.Flags()
			if len(args) > 0 {
				o.name = args[0]
			}
			return runTrace(c.Context(), w, &o)
		},
	}
	o.env, o.machine, o.load = w.env, thisMachine(), besides
	g := groupFlags(c)
	o.register(g)
	g.done()
	c.Flags().Lookup("plain").Usage = "the report instead of the screen, without colour or progress line"
	c.AddCommand(newTraceCompare(w), newTraceRoof(w))
	return c
}

// traceArgs takes one name or recording at most.
func traceArgs(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("trace takes one name or recording, but got %d; two recordings are held side by side with 'rooftop trace compare'", len(args))
	}
	return nil
}

func runTrace(ctx context.Context, w *world, o *traceOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.recording() {
		return showRecording(w, o, o.name)
	}
	if o.live(w) {
		return o.watchLive(ctx, w)
	}
	watched, err := o.watch(ctx, w)
	if err != nil {
		if watched != nil && o.json {
			if unsaid := watched.print(w, o); unsaid != nil {
				return fail(exitError, errors.Join(err, unsaid))
			}
		}
		return err
	}
	if err := o.finish(w, watched); err != nil {
		return err
	}
	switch ended := signalOf(ctx); {
	case ended != 0:
		return exit(ended)
	case watched.summary.Empty():
		return exit(exitNothing) // the report says so
	}
	return nil
}

// recording says that what was named is the file of a recording and no process.
func (o *traceOptions) recording() bool {
	if strings.HasSuffix(o.name, recordingSuffix) || strings.HasSuffix(o.name, ".json") {
		return true
	}
	info, err := os.Stat(o.name)
	return o.name != "" && err == nil && info.Mode().IsRegular()
}

// traced is a trace that has ended: its figures, and its events as far as they were
// kept.
type traced struct {
	recording *optrace.Recording
	saving    *saving // of the recording, which is not in memory then; nil none
	summary   *optrace.Summary
	newest    func() optrace.LiveGraph // of a token
}
