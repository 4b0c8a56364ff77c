package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// keeper adds events up, and keeps them as far as there is room.
type keeper struct {
	assembler *optrace.Assembler
	tally     *optrace.Tally
	most      int // events to keep
	recording *optrace.Recording
	count     int64
	lanes     int              // the most that computed a graph
	names     map[int32]string // of other processes
	save      *saving          // nil where nothing is saved while it is recorded
}

func newKeeper(tables *optrace.Tables, most int) *keeper {
	tally := optrace.NewTally(tables)
	return &keeper{assembler: optrace.NewAssembler(tables, tally), tally: tally, most: most, names: map[int32]string{}, recording: &optrace.Recording{Tables: tables, Reader: ggml.OwnPID()}}
}

// take takes in events, from the first one on that was recorded with the detail that was
// asked for.
func (k *keeper) take(events []optrace.Event) {
	r := k.recording
	if k.count == 0 {
		first := slices.IndexFunc(events, func(e optrace.Event) bool { return e.Kind == optrace.DetailChanged })
		if first < 0 {
			return // of the graphs that were weighed
		}
		events = events[first:]
		r.Begin = events[0].At
	}
	for _, e := range events {
		k.count++
		r.End = max(r.End, e.At)
		k.lanes = max(k.lanes, int(e.Lanes))
		k.assembler.Push(e)
		if len(r.Events) < k.most {
			r.Events = append(r.Events, e)
		} else if k.most > 0 {
			r.LeftOut++
		}
		switch e.Kind {
		case optrace.SwitchIn:
			k.meet(int32(e.N))
		case optrace.SwitchOut:
			k.meet(int32(e.Addr))
		case optrace.CPUTaken:
			k.meet(int32(e.N))
		}
	}
	if k.save != nil {
		k.save.take(r, events)
	}
}

// record watches at the level that was decided on until its time is over.
func (t *tracing) record(ctx context.Context, w *world) (*traced, error) {
	if err := t.source.SetDetail(t.o.detail); err != nil {
		if !errors.Is(err, ggml.ErrEnded) {
			return nil, fail(exitError, fmt.Errorf("trace: %w", err))
		}
		t.notes = append(t.notes, optrace.Gap{What: optrace.GapEverything, Why: err.Error()})
		return t.nothing(), fail(exitNothing, fmt.Errorf("trace: %w", err))
	}
	most := 0
	if t.o.save != "" && t.save == nil || t.o.chrome != "" {
		most = maxKept
	}
	k := newKeeper(t.source.Tables(), most)
	k.save = t.save
	r := k.recording
	began := time.Now()
	r.Target, r.Origin, r.Detail = t.source.Target(), began, t.o.detail
	t.others.begin(t.o, r.Target.PID)
	timed, cancel := context.WithTimeout(ctx, t.o.duration)
	defer cancel()
	said := time.Duration(0)
	err := t.drain(timed, func(events []optrace.Event) {
		k.take(events)
		if t.save != nil {
			t.save.flush(len(k.names), func() *optrace.Recording { return t.soFar(k) })
		}
		if passed := time.Since(began); passed-said > time.Second/4 {
			said = passed
			t.others.look()
			t.show.say(fmt.Sprintf("tracing %2.0f/%.0f s  %d events", passed.Seconds(), t.o.duration.Seconds(), k.count))
		}
	}, func() bool { return false })
	if err != nil {
		return nil, t.failed(err)
	}
	r.HostLoad = t.others.lookNow()
	if r.End = max(r.End, r.Begin+time.Since(began)); k.count == 0 {
		r.End = time.Since(began)
	}
	k.assembler.Flush(r.End)
	if t.ended() {
		g := endedGap(t.end, r.End-r.Begin, t.o.duration)
		t.notes = append(t.notes, g)
		t.show.say("")
		fmt.Fprintf(w.stderr, "rooftop: %s\n", g.Why)
	}
	if ctx.Err() != nil && !t.ended() {
		t.notes = append(t.notes, endedGap("it was ended by a signal (Ctrl-C, SIGTERM)", r.End-r.Begin, t.o.duration))
	}
	r.Target, r.Dropped, r.Gaps, r.Observer = t.source.Target(), t.source.Dropped(), slices.Concat(t.source.Gaps(), t.notes), t.observer
	if t.o.roof && ctx.Err() == nil {
		// What is measured is the machine without the probes, and they cost the target nothing
		// meanwhile.
		if err := t.source.Close(); err != nil {
			return nil, t.failed(fmt.Errorf("trace: detach: %w", err))
		}
		t.show.say("measures what this machine can do")
	}
	var gaps []optrace.Gap
	r.Roof, gaps = t.o.roofOf(ctx, k.lanes)
	r.Gaps = append(r.Gaps, gaps...)
	r.Processes = k.names
	if t.save != nil {
		r.LeftOut = max(r.LeftOut, t.save.left)
	}
	partial, _ := k.assembler.Dropped()
	var kept time.Duration
	if n := len(r.Events); n > 0 {
		kept = r.Events[n-1].At
	}
	return &traced{recording: r, saving: t.save, newest: k.tally.Live, summary: k.tally.Summary(optrace.Settings{
		Target: r.Target, Roof: r.Roof, Observer: r.Observer, Gaps: r.Gaps, Begin: r.Begin, Span: r.End - r.Begin, Detail: r.Detail,
		Events: k.count, Dropped: r.Dropped, LeftOut: r.LeftOut, KeptFrom: r.Begin, KeptTo: kept, Partial: partial, Cut: k.assembler.Cut(), Processes: k.names, Reader: r.Reader, HostLoad: r.HostLoad,
	})}, nil
}

// failed ends a trace with an error, which says where what was recorded is.
func (t *tracing) failed(err error) error {
	if file := t.save.abandon(); file != "" {
		err = fmt.Errorf("%w; what was recorded until then is in %s", err, file)
	}
	return fail(exitError, err)
}

// soFar is what is known of a recording that goes on.
func (t *tracing) soFar(k *keeper) *optrace.Recording {
	r := *k.recording
	r.Target = t.source.Target()
	r.Dropped, r.Gaps, r.Observer, r.Processes = t.source.Dropped(), slices.Concat(t.source.Gaps(), t.notes), t.observer, k.names
	r.LeftOut, r.HostLoad = t.save.left, t.others.look()
	return &r
}

// endedGap says that a trace is shorter than it was to be, and why; of is 0 where it had no
// end of its own.
func endedGap(end string, after, of time.Duration) optrace.Gap {
	if of == 0 {
		return optrace.Gap{What: "what came later", Why: fmt.Sprintf("after %s of the trace %s", shortly(after), end)}
	}
	return optrace.Gap{What: "the rest of the " + shortly(of), Why: fmt.Sprintf("after %s of the trace, which was to take %s, %s", shortly(after), shortly(of), end)}
}

// shortly spells a time as a person does.
func shortly(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// maxNames bounds the processes whose names are read.
const maxNames = 4096

// meet reads the name of a process that has a CPU of the target, while it runs. Where PIDs
// here are not those of events, it would be that of another.
func (k *keeper) meet(pid int32) {
	reader := k.recording.Reader
	if _, known := k.names[pid]; known || pid <= 0 || reader <= 0 || len(k.names) >= maxNames {
		return
	}
	if int(pid) == reader {
		k.names[pid] = optrace.OwnName // whatever the file is called
		return
	}
	k.names[pid] = nameOf("/proc/" + strconv.Itoa(int(pid)) + "/stat")
}

// nameOf is the name of a process by its stat, in brackets where it is a thread of the
// kernel; "" where it has ended.
func nameOf(stat string) string {
	text, _ := os.ReadFile(stat)
	name, kernel, _ := proc.NameOf(text)
	if kernel {
		return optrace.KernelName(name)
	}
	return name
}
