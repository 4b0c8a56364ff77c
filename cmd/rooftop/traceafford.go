package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// unreckoned are details whose events come with what the target does, not with its
// operators: nothing is reckoned for them.
const unreckoned = optrace.DetailSched | optrace.DetailSyscall | optrace.DetailIO | optrace.DetailFault | optrace.DetailSample

// afford says what watching costs the target. Where that is above the limit, it takes the
// most detailed level that fits in place of the default one, and refuses one that was
// asked for.
func (t *tracing) afford(ctx context.Context, w *world) error {
	o := t.o
	if t.observer.HitsPerToken == 0 {
		t.unknown(w)
		return nil
	}
	t.observer.Limit = o.limit()
	t.show.say("")
	fmt.Fprintf(w.stderr, "rooftop: watching at this level is expected to cost %s of the target's speed (est): %.0f probe hits for a token of %s, %s\n",
		perCent(t.observer.Expected), t.observer.HitsOfThread(), spellTime(t.observer.GraphTime), t.observer.Basis())
	if o.measure {
		if err := t.measure(ctx, w.stderr); err != nil {
			return err
		}
	}
	switch {
	case o.force || t.observer.Allowed(o.maxOverhead/100):
		return nil
	case t.observer.Windows > 0:
		return t.lighten(w, "at least "+perCent(t.observer.MeasuredLow)+" of the target's speed, as measured")
	}
	return t.lighten(w, perCent(t.observer.Expected)+" of the target's speed (est)")
}

// spellTime is a time as reports have it.
func spellTime(d time.Duration) string {
	number, unit := figure.Seconds(d.Seconds())
	return number + " " + unit
}

// unknown goes on with graphs alone where there was nothing to reckon with.
func (t *tracing) unknown(w *world) {
	why := cmp.Or(t.why, "nothing was computed yet")
	if t.o.force {
		fmt.Fprintf(w.stderr, "rooftop: what watching will cost is not known: %s\n", why)
		return
	}
	fmt.Fprintf(w.stderr, "rooftop: what watching will cost is not known: %s; graphs alone are watched, --force watches more\n", why)
	t.notes = append(t.notes, optrace.Gap{
		What: "operators", Why: "what watching them would cost was not known, since " + why + ", and graphs alone were watched",
		Next: "trace while the target computes, or with --force",
	})
	t.o.detail = optrace.LevelGraph
}

// lighten takes the most detailed level that costs no more than the limit, or refuses the
// one that was asked for. costs is in words what that one does.
func (t *tracing) lighten(w *world, costs string) error {
	o, in, limit := t.o, t.expectation, t.o.maxOverhead/100
	// What was measured, which is what more than calls cost, corrects what is expected of
	// less, and has in it what is not reckoned.
	calls := in
	calls.Detail = optrace.LevelToken
	more := optrace.Longer(t.observer.Expected) - optrace.Longer(optrace.Expect(calls).Expected)
	if t.observer.Windows > 0 && more > 0 {
		in.Times = optrace.Longer(t.observer.MeasuredLow) / more
		in.Detail &^= unreckoned
	}
	detail, less, fits := optrace.Lighten(in, limit)
	if detail&optrace.DetailOperator == 0 {
		detail &^= unreckoned // they are seen beside operators
	}
	over := fmt.Sprintf("--level %s costs %s, more than --max-overhead %v", o.level, costs, o.maxOverhead)
	if !fits {
		over += fmt.Sprintf(", and no level fits: %s (--level %v) would cost %s", least(in), detail, perCent(less.Expected))
	}
	at := fmt.Sprintf("--level %v would cost %s", detail, perCent(less.Expected))
	if o.levelGiven || !fits {
		next := "--force traces all the same, a higher --max-overhead allows it"
		if fits {
			next = at + " (est), " + next
		}
		t.notes = append(t.notes, optrace.Gap{What: optrace.GapEverything, Why: over, Next: next})
		return fail(exitNothing, fmt.Errorf("trace: %s: %s", over, next))
	}
	fmt.Fprintf(w.stderr, "rooftop: %s; traces at --level %v instead, which is expected to cost %s (est); --level %s --force traces all of it\n", over, detail, perCent(less.Expected), o.level)
	t.notes = append(t.notes, optrace.Gap{
		What: "what --level " + o.level + " tells more than " + detail.String(), Why: "it" + strings.TrimPrefix(over, "--level "+o.level),
		Next: fmt.Sprintf("--level %s --force traces it all the same", o.level),
	})
	o.detail, t.observer = detail, less
	t.observer.Limit = o.limit()
	return nil
}

// least is in words the least that can be watched.
func least(in optrace.Expectation) string {
	if in.Mute {
		return "calls do not tell their tokens, and graphs alone"
	}
	return "calls alone"
}

// nothing is a trace that was refused: without events, with the reason among its gaps.
func (t *tracing) nothing() *traced {
	k := newKeeper(t.source.Tables(), 0)
	r := k.recording
	r.Origin, r.Target, r.Observer, r.Gaps = time.Now(), t.source.Target(), t.observer, append(t.source.Gaps(), t.notes...)
	return &traced{recording: r, newest: k.tally.Live, summary: k.tally.Summary(optrace.Settings{Target: r.Target, Observer: r.Observer, Gaps: r.Gaps})}
}
