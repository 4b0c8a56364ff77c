package simbench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
)

// Row is what a bench says of one scenario.
type Row struct {
	Scenario scenarios.Scenario
	Base     *Outcome
	// Answer is the diagnosis held against the truth.
	Answer Answer
	Remedy Trial // the change that must help
	Wrong  Trial // the change that must not
	Own    Trial // what the diagnosis recommends, where it can be tried
	// Untried is why the diagnosis's recommendation was not tried; "" where it
	// was, or where there is none.
	Untried string
	// Err is why the scenario could not be run; nothing else is set then.
	Err           error
	Virtual, Wall time.Duration // of all its runs
}

// Answer is a diagnosis in short, with what is wrong about it.
type Answer struct {
	Finding string   // ranked first of those that fired and count; "" none
	Advice  string   // the recommendation in short; "" none
	Faults  []string // what does not agree with the truth
}

// Judged says that there is a truth to hold the answer against: of servers drawn
// by chance there is none.
func (r *Row) Judged() bool { return len(r.Scenario.Truth.Outcomes) > 0 }

// Right says that the answer is judged and nothing is wrong with it.
func (r *Row) Right() bool { return r.Err == nil && r.Judged() && len(r.Answer.Faults) == 0 }

// Trial is a changed run beside the unchanged one.
type Trial struct {
	Made    bool // a change was tried
	Load    bool // it is one of the load
	Change  string
	Outcome *Outcome
	// Throughput, TTFT and ITL are the changes of tokens_per_s, ttft_p99_s and
	// itl_mean_s, as ratios minus one; NaN where either side has none.
	Throughput, TTFT, ITL float64
	Checks                []Check
}

// Check is one expectation with its figures.
type Check struct {
	scenarios.Expect
	Before, After float64 // NaN where not measured
	Holds         bool
}

// Held says that all expectations of the trial hold.
func (t *Trial) Held() bool {
	return !slices.ContainsFunc(t.Checks, func(c Check) bool { return !c.Holds })
}

// Limits of what counts as a change that helps: more tokens without a longer
// wait, or a shorter wait, or faster tokens, without fewer of them. More clients
// at once wait longer each: their remedy is held to the tokens alone.
const (
	helpTokens = 0.03
	helpTTFT   = 0.10
	helpITL    = 0.10
)

// Helps says that clients are better off.
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

// Missed says that the answer is wrong, or what rooftop recommends does not help.
func (r *Row) Missed() bool {
	return r.Err == nil && (r.Judged() && !r.Right() || r.Own.Made && !r.Own.Helps())
}

// Untrue says that the scenario does not do what it says: a remedy that does not
// help, or a wrong one that does.
func (r *Row) Untrue() bool { return r.Err == nil && !(r.Remedy.Held() && r.Wrong.Held()) }

// Surprising says that a row is not as the library describes it: it failed, is
// untrue, misses without a known gap, or no longer misses although one is noted.
// Nothing describes a row without a truth.
func (r *Row) Surprising() bool {
	if !r.Judged() {
		return false
	}
	return r.Err != nil || r.Untrue() || r.Missed() != (r.Scenario.Gap != "")
}

// Bench runs scenarios side by side and returns their rows in order. done, where
// it is not nil, is called with each row when it is there, one at a time. It ends
// early with the context's error.
func Bench(ctx context.Context, list []scenarios.Scenario, o Options, done func(*Row)) ([]Row, error) {
	rows := make([]Row, len(list))
	var wg sync.WaitGroup
	var mu sync.Mutex
	work := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			for i := range work {
				rows[i] = bench(ctx, &list[i], o)
				if done != nil {
					mu.Lock()
					done(&rows[i])
					mu.Unlock()
				}
			}
		})
	}
	for i := range list {
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	wg.Wait()
	return rows, context.Cause(ctx)
}

// bench runs one scenario with its changes.
func bench(ctx context.Context, sc *scenarios.Scenario, o Options) Row {
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
		change *scenarios.Change
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

func (r *Row) once(ctx context.Context, change *scenarios.Change, o Options) (*Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out, err := Run(&r.Scenario, change, o)
	if err == nil {
		r.Virtual += out.Virtual
	}
	return out, err
}

// try compares a changed run with the unchanged one.
func try(base, changed *Outcome, what string, expect []scenarios.Expect) Trial {
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

func describe(c *scenarios.Change) string {
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

// answer puts a diagnosis in short and holds it against the truth, where there is
// one.
func answer(truth *scenarios.Truth, d *engine.Diagnosis) Answer {
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
	if len(truth.Outcomes) == 0 {
		return a
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
