package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/collect/machinepeak"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	tracepage "github.com/rooftop-dev/rooftop/engine/page/trace"
)

// peakMeter measures the peak of a machine; tests replace it.
type peakMeter struct {
	measure func(context.Context, machinepeak.Options) (optrace.Peak, error)
	here    func() (machinepeak.Host, error)
	now     func() time.Time
}

// thisMachine returns the meter of the machine that rooftop runs on.
func thisMachine() peakMeter {
	return peakMeter{measure: machinepeak.Measure, here: machinepeak.Here, now: time.Now}
}

// peakNext is the next step to get a measured peak.
const peakNext = "rooftop trace roof, while nothing else computes"

// measured returns the newly measured peak for a number of threads, and stores it for later traces.
// A gap says why there is none, or that it could not be stored.
func (m peakMeter) measured(ctx context.Context, env func(string) (string, bool), threads int) (optrace.Peak, []optrace.Gap) {
	r, err := m.measure(ctx, machinepeak.Options{Threads: threads})
	switch {
	case err != nil:
		return optrace.Peak{}, []optrace.Gap{{What: optrace.GapPeak, Why: err.Error(), Next: peakNext}}
	case r.From == optrace.PeakDisturbed:
		return optrace.Peak{}, []optrace.Gap{{
			What: optrace.GapPeak, Why: "other programs had the CPUs during the measurement, perhaps the target itself: the result is too low",
			Next: peakNext,
		}}
	}
	if _, err := m.keep(env, r); err != nil {
		return r, []optrace.Gap{{What: "the machine peak for later traces", Why: err.Error()}}
	}
	return r, nil
}

// keep stores a measured peak.
func (m peakMeter) keep(env func(string) (string, bool), r optrace.Peak) (path string, err error) {
	here, err := m.here()
	if err != nil {
		return "", err
	}
	return keepPeak(env, &keptPeak{Schema: keptPeakSchema, Host: here, Measured: m.now(), Roof: r})
}

// kept returns the stored peak of this machine for a number of threads. A gap says why it cannot be
// used.
func (m peakMeter) kept(env func(string) (string, bool), threads int) (optrace.Peak, []optrace.Gap) {
	none := func(why string) (optrace.Peak, []optrace.Gap) {
		return optrace.Peak{}, []optrace.Gap{{What: "the machine peak that was kept", Why: why, Next: peakNext}}
	}
	k, err := readKeptPeak(env)
	if err != nil {
		return none(err.Error())
	}
	if k == nil {
		return optrace.Peak{}, nil
	}
	here, err := m.here()
	if err != nil {
		return none(err.Error())
	}
	if why, same := k.mismatch(&here); !same {
		return none(why)
	}
	r, ok := k.Roof.WithThreads(threads)
	if !ok {
		return none(fmt.Sprintf("it is not of %d threads", threads))
	}
	return r, nil
}

// peakOf returns the peak that a trace is compared with: measured now if requested, otherwise the
// stored one, otherwise that of the CPU's data sheet. Without any, the best rate in the trace
// itself is used. Gaps say why a better source was not used.
func (o *Options) peakOf(ctx context.Context, threads int) (optrace.Peak, []optrace.Gap) {
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
		return r, gaps // the reason is already among the gaps
	}
	r, why = o.catalogPeak(here.CPU, optrace.Sockets{Threads: threads, Cores: here.Cores, Count: here.Sockets})
	return r, append(gaps, why...)
}

// catalogPeak returns the peak from the data sheet of a CPU. A gap says why there is none.
func (o *Options) catalogPeak(cpu string, at optrace.Sockets) (optrace.Peak, []optrace.Gap) {
	c, err := o.catalog.FindCPU(cpu)
	if err != nil {
		return optrace.Peak{}, []optrace.Gap{{What: "a machine peak by the CPU's data sheet", Why: err.Error(), Next: peakNext}}
	}
	return optrace.CatalogPeak(&c, at), nil
}

// applyCatalog judges a recording by the catalog of --catalog, unless its own peak was measured.
func (o *Options) applyCatalog(r *optrace.Recording) {
	if o.catalogFile == "" || r.Peak.Known() && r.Peak.From != optrace.PeakCatalog {
		return
	}
	threads := 0
	for i := range r.Events {
		threads = max(threads, int(r.Events[i].Threads))
	}
	judged, gaps := o.catalogPeak(r.Target.CPU, optrace.Sockets{Threads: threads})
	if r.Gaps = append(r.Gaps, gaps...); judged.Known() {
		r.Peak = judged
	}
}

// MeasurePeak measures the peak of this machine, and stores it for traces.
func MeasurePeak(ctx context.Context, w *cli.World, out *cli.Output) error {
	return measurePeak(ctx, w, out, thisMachine())
}

func measurePeak(ctx context.Context, w *cli.World, out *cli.Output, m peakMeter) error {
	show := cli.NewProgress(w, out)
	show.Show("measures what this machine can do")
	r, err := m.measure(ctx, machinepeak.Options{})
	show.Done()
	if ended := cli.SignalCode(ctx); ended != 0 {
		return cli.Exit(ended)
	}
	if err != nil {
		return fmt.Errorf("trace roof: %w", err)
	}
	here, err := m.here()
	if err != nil {
		return fmt.Errorf("trace roof: %w", err)
	}
	disturbed := r.From == optrace.PeakDisturbed
	path := ""
	var failed error
	if !disturbed {
		path, failed = m.keep(w.Env, r)
	}
	kept := keptPeak{Schema: keptPeakSchema, Host: here, Measured: m.now(), Roof: r}
	err = cli.Print(w, out, kept, func(to io.Writer, k keptPeak, style render.Options) error {
		return render.Text(to, tracepage.Peak(here.CPU, here.Count, k.Roof, path), style)
	}, cli.Document)
	switch {
	case err != nil || failed != nil:
		return errors.Join(err, failed)
	case disturbed:
		return cli.Fail(cli.ExitNothing, errors.New("trace roof: other programs had the CPUs meanwhile, so this is too low and was not kept: measure again while nothing else computes"))
	}
	return nil
}
