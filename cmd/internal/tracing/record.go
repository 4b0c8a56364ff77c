package tracing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
)

// collector summarizes events, and stores them up to a limit.
type collector struct {
	assembler *optrace.Assembler
	tally     *tally.Tally
	most      int // maximum number of events to store
	recording *optrace.Recording
	count     int64
	threads   int     // the most that computed a graph
	save      *saving // nil if nothing is saved during the recording
}

func newCollector(tables *optrace.Tables, most int) *collector {
	tally := tally.New(tables)
	k := &collector{assembler: optrace.New(tables, tally), tally: tally, most: most, recording: &optrace.Recording{Tables: tables, Reader: ggml.OwnPID()}}
	k.assembler.Tracer = k.recording.Reader
	return k
}

// addEvents adds events, from the first one with the requested detail on.
func (k *collector) addEvents(events []optrace.Event) {
	r := k.recording
	if k.count == 0 {
		first := slices.IndexFunc(events, func(e optrace.Event) bool { return e.Kind == optrace.DetailChanged })
		if first < 0 {
			return // events of the calibration
		}
		events = events[first:]
		r.Begin = events[0].At
	}
	for _, e := range events {
		k.count++
		r.End = max(r.End, e.At)
		k.threads = max(k.threads, int(e.Threads))
		k.assembler.Push(e)
		if len(r.Events) < k.most {
			r.Events = append(r.Events, e)
		} else if k.most > 0 {
			r.LeftOut++
		}
	}
	if k.save != nil {
		k.save.addEvents(r, events)
	}
}

// summary returns the figures of the events and the data of a recording. The trace took span; files
// have the events between from and to.
func (k *collector) summary(r *optrace.Recording, span, from, to time.Duration) *optrace.Summary {
	partial, _ := k.assembler.Dropped()
	return k.tally.Summary(tally.Settings{
		Target: r.Target, Peak: r.Peak, Observer: r.Observer, Gaps: r.Gaps, Begin: k.recording.Begin, Span: span, Detail: r.Detail,
		Events: k.count, Dropped: r.Dropped, LeftOut: r.LeftOut, KeptFrom: from, KeptTo: to, Partial: partial, Cut: k.assembler.Cut(),
		Reader: k.recording.Reader, HostLoad: r.HostLoad,
	})
}

// record traces at the selected level until its time is over.
func (t *tracing) record(ctx context.Context) (*traced, error) {
	if err := t.source.SetDetail(t.o.detail); err != nil {
		if !errors.Is(err, ggml.ErrEnded) {
			return nil, fmt.Errorf("trace: %w", err)
		}
		t.notes = append(t.notes, optrace.Gap{What: advice.GapEverything, Why: err.Error()})
		return t.refused(), cli.Fail(cli.ExitNothing, fmt.Errorf("trace: %w", err))
	}
	most := 0
	if t.o.chrome != "" || t.o.html != "" {
		most = maxKept
	}
	k := newCollector(t.source.Tables(), most)
	k.save = t.save
	r := k.recording
	began := time.Now()
	r.Target, r.Origin, r.Detail = t.source.Target(), began, t.o.detail
	t.others.begin(t.o, r.Target.PID)
	timed, cancel := context.WithTimeout(ctx, t.o.duration)
	defer cancel()
	shown := time.Duration(0)
	err := t.drain(timed, func(events []optrace.Event) {
		k.addEvents(events)
		if t.save != nil {
			t.save.flush(func() *optrace.Recording { return t.soFar(k) })
		}
		if passed := time.Since(began); passed-shown > time.Second/4 {
			shown = passed
			t.others.sample()
			t.show.Show(fmt.Sprintf("tracing %2.0f/%.0f s  %d events", passed.Seconds(), t.o.duration.Seconds(), k.count))
		}
	}, func() bool { return false })
	if err != nil {
		return nil, t.failed(err)
	}
	t.stopRecording(ctx, k, time.Since(began))
	var gaps []optrace.Gap
	r.Peak, gaps = t.o.peakOf(k.threads)
	r.Gaps = append(r.Gaps, gaps...)
	var kept time.Duration
	if n := len(r.Events); n > 0 {
		kept = r.Events[n-1].At
	}
	return &traced{recording: r, saving: t.save, summary: k.summary(r, r.End-r.Begin, r.Begin, kept)}, nil
}

// stopRecording ends a recording, and records why it is shorter than intended.
func (t *tracing) stopRecording(ctx context.Context, k *collector, took time.Duration) {
	r := k.recording
	t.others.final()
	if r.End = max(r.End, r.Begin+took); k.count == 0 {
		r.End = took
	}
	k.assembler.Flush(r.End)
	if t.ended() {
		g := endedGap(t.end, r.End-r.Begin, t.o.duration)
		t.notes = append(t.notes, g)
		t.show.Show("")
		t.w.Notef("%s", g.Why)
	} else if ctx.Err() != nil {
		t.notes = append(t.notes, endedGap("it was ended by a signal (Ctrl-C, SIGTERM)", r.End-r.Begin, t.o.duration))
	}
	left := r.LeftOut
	*r = *t.soFar(k)
	r.LeftOut = max(left, r.LeftOut)
}

// failed returns an error that also says where the data recorded so far is.
func (t *tracing) failed(err error) error {
	if file := t.save.abandon(); file != "" {
		err = fmt.Errorf("%w; the data recorded so far is in %s", err, file)
	}
	return err
}

// soFar returns the data of a recording in progress.
func (t *tracing) soFar(k *collector) *optrace.Recording {
	r := *k.recording
	r.Target = t.source.Target()
	r.Dropped, r.Gaps, r.Observer = t.source.Dropped(), slices.Concat(t.source.Gaps(), t.notes), t.observer
	if t.save != nil {
		r.LeftOut = t.save.left
	}
	r.HostLoad = t.others.sample()
	return &r
}

// endedGap returns the gap of a trace that is shorter than intended, and why. of is the intended
// duration, 0 if there was none.
func endedGap(end string, after, of time.Duration) optrace.Gap {
	if of == 0 {
		return optrace.Gap{What: "what came later", Why: fmt.Sprintf("after %s of the trace %s", figure.Duration(after), end)}
	}
	return optrace.Gap{What: "the rest of the " + figure.Duration(of), Why: fmt.Sprintf("after %s of the trace, which was to take %s, %s", figure.Duration(after), figure.Duration(of), end)}
}
