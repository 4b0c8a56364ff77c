package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/collect/roof"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// roofing is how the roof of a machine is come by; tests have their own.
type roofing struct {
	measure func(context.Context, roof.Options) (optrace.Roof, error)
	here    func() (roof.Host, error)
	now     func() time.Time
}

// thisMachine measures the machine that rooftop runs on.
func thisMachine() roofing { return roofing{measure: roof.Measure, here: roof.Here, now: time.Now} }

// roofNext is what gets a roof.
const roofNext = "rooftop trace roof, while nothing else computes"

// measured is the roof of so many threads, which is kept for later traces too. A gap says
// why there is none, or that it could not be kept.
func (m roofing) measured(ctx context.Context, env func(string) (string, bool), threads int) (optrace.Roof, []optrace.Gap) {
	r, err := m.measure(ctx, roof.Options{Threads: threads})
	switch {
	case err != nil:
		return optrace.Roof{}, []optrace.Gap{{What: optrace.GapRoof, Why: err.Error(), Next: roofNext}}
	case r.From == optrace.RoofDisturbed:
		return optrace.Roof{}, []optrace.Gap{{
			What: optrace.GapRoof, Why: "other programs had the CPUs while that was measured, the target itself perhaps: it came out too low",
			Next: roofNext,
		}}
	}
	if _, err := m.keep(env, r); err != nil {
		return r, []optrace.Gap{{What: "the roof for later traces", Why: err.Error()}}
	}
	return r, nil
}

// keep keeps a roof that was just measured.
func (m roofing) keep(env func(string) (string, bool), r optrace.Roof) (path string, err error) {
	here, err := m.here()
	if err != nil {
		return "", err
	}
	return keepRoof(env, &keptRoof{Schema: roofSchema, Host: here, Measured: m.now(), Roof: r})
}

// kept is the roof that was measured before for this machine, with so many threads. A gap
// says why it is not the one.
func (m roofing) kept(env func(string) (string, bool), threads int) (optrace.Roof, []optrace.Gap) {
	none := func(why string) (optrace.Roof, []optrace.Gap) {
		return optrace.Roof{}, []optrace.Gap{{What: "the roof that was kept", Why: why, Next: roofNext}}
	}
	k, err := readKeptRoof(env)
	if err != nil {
		return none(err.Error())
	}
	if k == nil {
		return optrace.Roof{}, nil
	}
	here, err := m.here()
	if err != nil {
		return none(err.Error())
	}
	if why, same := k.of(&here); !same {
		return none(why)
	}
	r, ok := k.Roof.With(threads)
	if !ok {
		return none(fmt.Sprintf("it is not of %d threads", threads))
	}
	return r, nil
}

// roofOf is the roof that a trace is judged by: measured now where that is asked for, else
// the one that was kept, else that of the CPU's data sheet. Without one the best that the
// trace itself reaches is taken. Gaps say why one of them is not the one.
func (o *traceOptions) roofOf(ctx context.Context, threads int) (optrace.Roof, []optrace.Gap) {
	var gaps []optrace.Gap
	if o.roof && ctx.Err() == nil {
		r, why := o.machine.measured(ctx, o.env, threads)
		if gaps = why; r.Known() {
			return r, gaps
		}
	}
	r, why := o.machine.kept(o.env, threads)
	if r.Known() {
		return r, gaps
	}
	gaps = append(gaps, why...)
	here, err := o.machine.here()
	if err != nil {
		return r, gaps // that is said
	}
	r, why = o.catalogued(here.CPU, optrace.Sockets{Threads: threads, Cores: here.Cores, Count: here.Sockets})
	return r, append(gaps, why...)
}

// catalogued is the roof by the data sheet of a CPU; a gap says why there is none.
func (o *traceOptions) catalogued(cpu string, at optrace.Sockets) (optrace.Roof, []optrace.Gap) {
	c, err := o.catalog.FindCPU(cpu)
	if err != nil {
		return optrace.Roof{}, []optrace.Gap{{What: "a roof by the CPU's data sheet", Why: err.Error(), Next: roofNext}}
	}
	return optrace.CatalogRoof(&c, at), nil
}

// recatalog judges a recording by the catalog that one names, where its own roof was not
// measured.
func (o *traceOptions) recatalog(r *optrace.Recording) {
	if o.catalogFile == "" || r.Roof.Known() && r.Roof.From != optrace.RoofCatalog {
		return
	}
	lanes := 0
	for i := range r.Events {
		lanes = max(lanes, int(r.Events[i].Lanes))
	}
	judged, gaps := o.catalogued(r.Target.CPU, optrace.Sockets{Threads: lanes})
	if r.Gaps = append(r.Gaps, gaps...); judged.Known() {
		r.Roof = judged
	}
}

func newTraceRoof(w *world) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "roof",
		Short: "What this machine can do, measured and kept for traces",
		Long: `Measures for some seconds how fast the cores of this machine read memory and
multiply, with one thread and with more, and keeps that for this user's traces
on it: let nothing else compute meanwhile. Traces of root ('sudo rooftop
trace') use what root measured ('sudo rooftop trace roof').

EXIT CODES
  0  measured and kept
  1  any other error
  2  the command line is off
  4  other programs had the CPUs: not kept`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("trace roof takes no name, but got %q; a process of that name is traced with --pid N", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fromEnvironment(c.Flags(), w.env); err != nil {
				return err
			}
			if err := out.check(); err != nil {
				return err
			}
			return runTraceRoof(c.Context(), w, &out, thisMachine())
		},
	}
	g := groupFlags(c)
	out.register(g, "every number of threads")
	g.done()
	return c
}

func runTraceRoof(ctx context.Context, w *world, out *output, m roofing) error {
	show := newProgress(w, out)
	show.say("measures what this machine can do")
	r, err := m.measure(ctx, roof.Options{})
	show.done()
	if ended := signalOf(ctx); ended != 0 {
		return exit(ended)
	}
	if err != nil {
		return fail(exitError, fmt.Errorf("trace roof: %w", err))
	}
	here, err := m.here()
	if err != nil {
		return fail(exitError, fmt.Errorf("trace roof: %w", err))
	}
	disturbed := r.From == optrace.RoofDisturbed
	path := ""
	var failed error
	if !disturbed {
		path, failed = m.keep(w.env, r)
	}
	if out.json {
		err = writeJSON(w, keptRoof{Schema: roofSchema, Host: here, Measured: m.now(), Roof: r})
	} else {
		err = report.WriteRoof(w.stdout, here.CPU, here.Count, r, path, out.style(w))
	}
	switch {
	case err != nil || failed != nil:
		return fail(exitError, errors.Join(err, failed))
	case disturbed:
		return fail(exitNothing, errors.New("trace roof: other programs had the CPUs meanwhile, so that this is too low and was not kept: measure again while nothing else computes"))
	}
	return nil
}
