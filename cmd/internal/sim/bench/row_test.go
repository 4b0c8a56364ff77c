package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"golang.org/x/sync/errgroup"
)

// Row is the result of one scenario.
type Row struct {
	Scenario settings.Scenario
	Base     *Outcome
	// Answer is the diagnosis compared with the truth.
	Answer Answer
	Remedy Trial // the change that must help
	Wrong  Trial // the change that must not
	Own    Trial // the change that the diagnosis recommends, if it can be tried
	// Untried is why the recommendation of the diagnosis was not tried; "" if it was, or if there
	// is none.
	Untried string
	// Err is why the scenario could not be run; no other field is set then.
	Err           error
	Virtual, Wall time.Duration // of all its runs
}

// Answer is a summary of a diagnosis, with its errors.
type Answer struct {
	Finding string   // the first significant one that fired; "" if there is none
	Advice  string   // summary of the recommendation; "" if there is none
	Faults  []string // differences from the truth
}

// Right reports whether the answer agrees with the truth.
func (r *Row) Right() bool { return r.Err == nil && len(r.Answer.Faults) == 0 }

// Trial compares a changed run with the unchanged one.
type Trial struct {
	Made    bool // whether a change was tried
	Load    bool // whether the change is one of the load
	Change  string
	Outcome *Outcome
	// Throughput, TTFT and ITL are the changes of tokens_per_s, ttft_p99_s and
	// itl_mean_s, as ratios minus one; NaN if either run has none.
	Throughput, TTFT, ITL float64
	Checks                []Check
}

// Check is one expectation with the measured values.
type Check struct {
	Expect        settings.Expect
	Before, After float64 // NaN if it was not measured
	Holds         bool
}

// ExpectationsMet reports whether all expectations of the trial are met.
func (t *Trial) ExpectationsMet() bool {
	return !slices.ContainsFunc(t.Checks, func(c Check) bool { return !c.Holds })
}

// Limits of a change that helps: more tokens without a longer wait, or a shorter wait or faster
// tokens without fewer of them. With more clients each waits longer, so that only tokens count for a
// change of the load.
const (
	helpTokens = 0.03
	helpTTFT   = 0.10
	helpITL    = 0.10
)

// Helps reports whether the change helps clients, within the limits above.
func (t *Trial) Helps() bool {
	if t.Outcome == nil || t.Outcome.refused() {
		return false
	}
	if t.Load {
		return t.Throughput >= helpTokens
	}
	waits := t.TTFT > helpTTFT
	switch {
	case t.Throughput >= helpTokens:
		return !waits
	case !(t.Throughput > -helpTokens):
		return false
	}
	return t.TTFT <= -helpTTFT || t.ITL <= -helpITL && !waits
}

// Missed reports whether the answer is wrong or the recommended change does not help.
func (r *Row) Missed() bool {
	return r.Err == nil && (!r.Right() || r.Own.Made && !r.Own.Helps())
}

// Untrue reports whether the scenario contradicts its description: the remedy does not have its
// expected effect, or the wrong change does not.
func (r *Row) Untrue() bool {
	return r.Err == nil && !(r.Remedy.ExpectationsMet() && r.Wrong.ExpectationsMet())
}

// Surprising reports whether a row differs from the description in the library: it failed, is untrue,
// is missed without a known gap, or is no longer missed although a gap is noted.
func (r *Row) Surprising() bool {
	return r.Err != nil || r.Untrue() || r.Missed() != (r.Scenario.Gap != "")
}

// Bench runs scenarios in parallel and returns their rows in order. If ctx ends, Bench returns its error.
func Bench(ctx context.Context, list []settings.Scenario, o Options) ([]Row, error) {
	rows := make([]Row, len(list))
	err := parallel(ctx, len(list), func(i int) { rows[i] = bench(ctx, &list[i], o) })
	return rows, err
}

// parallel calls work with 0 to n-1, on as many goroutines as there are processors. If ctx ends,
// parallel returns its error.
func parallel(ctx context.Context, n int, work func(i int)) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := 0; i < n && ctx.Err() == nil; i++ {
		g.Go(func() error {
			work(i)
			return nil
		})
	}
	_ = g.Wait() // nothing returns an error
	return context.Cause(ctx)
}

// bench runs one scenario unchanged and with each of its changes.
func bench(ctx context.Context, sc *settings.Scenario, o Options) Row {
	r := Row{Scenario: *sc}
	began := time.Now()
	r.Err = r.run(ctx, o)
	r.Wall = time.Since(began)
	return r
}

func (r *Row) run(ctx context.Context, o Options) error {
	sc := &r.Scenario
	var err error
	if r.Base, err = r.once(ctx, nil, o); err != nil {
		return err
	}
	if r.Base.refused() {
		return fmt.Errorf("%s:%d: %s: the server does not start: %w", sc.File, sc.Line, sc.Name, r.Base.Refused)
	}
	r.Answer = answer(&sc.Truth, &r.Base.Diagnosis)
	for _, v := range []struct {
		change *settings.Change
		trial  *Trial
	}{{&sc.Remedy, &r.Remedy}, {&sc.Wrong, &r.Wrong}} {
		if v.change.Empty() {
			continue
		}
		out, err := r.once(ctx, v.change, o)
		if err != nil {
			return err
		}
		*v.trial = try(r.Base, out, describe(v.change), v.change.Expect)
	}
	change, untried := recommended(sc, &r.Base.Diagnosis)
	r.Untried = untried
	if change != nil {
		out, err := r.once(ctx, change, o)
		if err != nil {
			return err
		}
		r.Own = try(r.Base, out, describe(change), nil)
		r.Own.Load = len(change.Load) > 0
	}
	return nil
}

func (r *Row) once(ctx context.Context, change *settings.Change, o Options) (*Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out, err := Run(&r.Scenario, change, o)
	if err == nil {
		r.Virtual += out.Virtual
	}
	return out, err
}

// try returns the comparison of a changed run with the unchanged one.
func try(base, changed *Outcome, what string, expect []settings.Expect) Trial {
	t := Trial{Made: true, Change: what, Outcome: changed, Throughput: math.NaN(), TTFT: math.NaN(), ITL: math.NaN()}
	if !changed.refused() {
		t.Throughput = ratio(base, changed, "tokens_per_s") - 1
		t.TTFT = ratio(base, changed, "ttft_p99_s") - 1
		t.ITL = ratio(base, changed, "itl_mean_s") - 1
	}
	for _, e := range expect {
		before, after := metric(base, e.Metric), metric(changed, e.Metric)
		t.Checks = append(t.Checks, Check{Expect: e, Before: before, After: after, Holds: e.Holds(before, after)})
	}
	return t
}

func metric(o *Outcome, name string) float64 {
	if v, ok := o.Metrics[name]; ok {
		return v
	}
	return math.NaN()
}

func ratio(base, changed *Outcome, name string) float64 {
	return metric(changed, name) / metric(base, name)
}

func describe(c *settings.Change) string {
	var parts []string
	for _, f := range c.Set {
		parts = append(parts, f.Name+" "+f.Value)
	}
	for _, name := range c.Drop {
		parts = append(parts, "no "+name)
	}
	if len(c.Load) > 0 {
		parts = append(parts, load(c.Load))
	}
	if c.Mend {
		parts = append(parts, "mended")
	}
	return strings.Join(parts, ", ")
}

// answer summarizes a diagnosis and compares it with the truth.
func answer(truth *settings.Truth, d *engine.Diagnosis) Answer {
	var a Answer
	for i := range d.Findings {
		if f := &d.Findings[i]; f.State == engine.Fired && f.Significant {
			a.Finding = string(f.ID)
			break
		}
	}
	rec := d.Recommendation
	if rec != nil {
		a.Advice = string(rec.Kind)
		if rec.Kind == engine.KindFlag {
			a.Advice = fmt.Sprintf("%s %s -> %s", rec.Flag, cmp.Or(rec.From, "?"), cmp.Or(rec.To, "left out"))
		}
	}
	wrong := func(format string, args ...any) { a.Faults = append(a.Faults, fmt.Sprintf(format, args...)) }
	if !slices.Contains(truth.Outcomes, string(d.Outcome)) {
		wrong("outcome %s, not %s", d.Outcome, strings.Join(truth.Outcomes, " or "))
	}
	if d.Outcome == engine.OutcomeNotEvaluable && truth.Doubt != "" {
		if !strings.Contains(d.Doubt, truth.Doubt) {
			wrong("the doubt does not name %s", truth.Doubt)
		}
		return a
	}
	if len(truth.Findings) > 0 && !slices.Contains(truth.Findings, a.Finding) {
		wrong("%s ranked first, not %s", cmp.Or(a.Finding, "nothing"), strings.Join(truth.Findings, " or "))
	}
	if rec == nil {
		return a
	}
	switch {
	case len(truth.Kinds) == 0:
		wrong("recommends %s, and there is nothing to recommend", a.Advice)
	case !slices.Contains(truth.Kinds, string(rec.Kind)):
		wrong("recommends %s, not kind %s", a.Advice, strings.Join(truth.Kinds, " or "))
	case rec.Kind == engine.KindFlag && !slices.Contains(truth.Flags, rec.Flag):
		wrong("recommends %s, not %s", rec.Flag, strings.Join(truth.Flags, " or "))
	}
	return a
}
