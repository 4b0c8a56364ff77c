package tracing

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
)

// unestimatedDetail are details whose events depend on what the target does, not on its operators. Their
// cost is not estimated.
const unestimatedDetail = optrace.DetailSched | optrace.DetailSyscall | optrace.DetailIO | optrace.DetailFault | optrace.DetailSample

// checkCost reports what tracing costs the target. Above the limit it lowers the default level to
// the most detailed one that fits, or rejects a requested level.
func (t *tracing) checkCost(ctx context.Context) error {
	o := t.o
	if t.observer.HitsPerToken == 0 {
		t.withoutExpectation()
		return nil
	}
	t.observer.Limit = o.limit()
	t.show.Show("")
	t.w.Notef("tracing at this level is expected to cost %s of the target's speed (est): %.0f probe hits for a token of %s, %s",
		figure.PercentSign(t.observer.Expected), t.observer.HitsOfThread(), figure.Duration(t.observer.GraphTime), t.observer.Basis())
	if o.measure {
		if err := t.measure(ctx); err != nil {
			return err
		}
	}
	switch {
	case o.force || t.observer.Allowed(o.maxOverhead/100):
		return nil
	case t.observer.Windows > 0:
		return t.lowerLevel("at least " + figure.PercentSign(t.observer.MeasuredLow) + " of the target's speed, as measured")
	}
	return t.lowerLevel(figure.PercentSign(t.observer.Expected) + " of the target's speed (est)")
}

// withoutExpectation continues with graphs only, because there was nothing to estimate from.
func (t *tracing) withoutExpectation() {
	why := cmp.Or(t.why, "nothing was computed yet")
	if t.o.force {
		t.w.Notef("the cost of tracing is unknown: %s", why)
		return
	}
	t.w.Notef("the cost of tracing is unknown: %s; only graphs are traced, --force traces more", why)
	t.notes = append(t.notes, optrace.Gap{
		What: "operators", Why: "the cost of tracing them was unknown, since " + why + ", and only graphs were traced",
		Next: "trace while the target computes, or with --force",
	})
	t.o.detail = optrace.LevelGraph
}

// lowerLevel selects the most detailed level within the limit, or rejects the requested level.
// costs describes the cost of that level.
func (t *tracing) lowerLevel(costs string) error {
	o, in, limit := t.o, t.expectation, t.o.maxOverhead/100
	// The measured cost, which is that of more than calls, corrects the expected cost of lower
	// levels, and includes what is not estimated.
	calls := in
	calls.Detail = optrace.LevelToken
	more := optrace.Longer(t.observer.Expected) - optrace.Longer(optrace.Expect(calls).Expected)
	if t.observer.Windows > 0 && more > 0 {
		in.Times = optrace.Longer(t.observer.MeasuredLow) / more
		in.Detail &^= unestimatedDetail
	}
	detail, less, fits := optrace.Lighten(in, limit)
	if detail&optrace.DetailOperator == 0 {
		detail &^= unestimatedDetail // they are useful beside operators
	}
	over := fmt.Sprintf("--level %s costs %s, more than --max-overhead %v", o.level, costs, o.maxOverhead)
	if !fits {
		over += fmt.Sprintf(", and no level fits: %s (--level %v) would cost %s", leastDetail(in), detail, figure.PercentSign(less.Expected))
	}
	at := fmt.Sprintf("--level %v would cost %s", detail, figure.PercentSign(less.Expected))
	if o.levelGiven || !fits {
		next := "--force traces anyway, a higher --max-overhead allows it"
		if fits {
			next = at + " (est), " + next
		}
		t.notes = append(t.notes, optrace.Gap{What: advice.GapEverything, Why: over, Next: next})
		return cli.Fail(cli.ExitNothing, fmt.Errorf("trace: %s: %s", over, next))
	}
	t.w.Notef("%s; traces at --level %v instead, which is expected to cost %s (est); --level %s --force traces all of it", over, detail, figure.PercentSign(less.Expected), o.level)
	t.notes = append(t.notes, optrace.Gap{
		What: "what --level " + o.level + " shows beyond " + detail.String(), Why: "it" + strings.TrimPrefix(over, "--level "+o.level),
		Next: fmt.Sprintf("--level %s --force traces it anyway", o.level),
	})
	o.detail, t.observer = detail, less
	t.observer.Limit = o.limit()
	return nil
}

// leastDetail describes the lowest level of detail.
func leastDetail(in optrace.Expectation) string {
	if in.Mute {
		return "calls do not show their tokens, and graphs alone"
	}
	return "calls alone"
}

// refused returns a trace without events, with the reason among its gaps.
func (t *tracing) refused() *traced {
	k := newCollector(t.source.Tables(), 0)
	r := k.recording
	r.Origin, r.Target, r.Observer, r.Gaps = time.Now(), t.source.Target(), t.observer, append(t.source.Gaps(), t.notes...)
	return &traced{recording: r, summary: k.summary(r, 0, 0, 0)}
}
