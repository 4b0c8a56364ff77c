package simbench

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
)

// Foretold is one recommendation with what it predicted and what came of it.
type Foretold struct {
	Scenario string
	Seed     uint64
	Step     int // 1 for the first change of a server, 2 for the one advised after it, …
	Finding  string
	Advice   string // the flag or the kind of change
	Change   string // as it was made
	// Held says that the server is of the half that nothing is fitted on.
	Held   bool
	Note   string // what the prediction says of itself
	Scores []Scored
	// Unscored is why nothing was measured: the change cannot be tried, or the
	// server does not start with it.
	Unscored string
	Before   *Outcome
	After    *Outcome
}

// Scored is a predicted change of one metric beside the measured one, all as
// ratios minus one; NaN where an end is not predicted.
type Scored struct {
	Metric         string
	Low, Mid, High float64
	Measured       float64
}

// Error is how far the middle of a prediction lies off the measured change, as the
// ratio of both levels minus one; NaN without a middle.
func (s *Scored) Error() float64 { return (1+s.Mid)/(1+s.Measured) - 1 }

// Whole says that a prediction has both ends and a middle.
func (s *Scored) Whole() bool { return !math.IsNaN(s.Low + s.Mid + s.High) }

// Covered says that the measured change lies within the ends that are predicted.
func (s *Scored) Covered() bool { return !(s.Measured < s.Low) && !(s.Measured > s.High) }

// Score returns the score of a metric, nil where it was not predicted or not
// measured.
func (f *Foretold) Score(metric string) *Scored {
	for i := range f.Scores {
		if f.Scores[i].Metric == metric {
			return &f.Scores[i]
		}
	}
	return nil
}

// Case is one server whose recommendations are followed.
type Case struct {
	Scenario scenarios.Scenario
	Seed     uint64
}

// held puts a server into the half that is held out, by the hash of its name: all
// variants of one scenario are in the same half.
func held(sc *scenarios.Scenario) bool {
	h := fnv.New32a()
	h.Write([]byte(sc.Name))
	return h.Sum32()>>8&1 == 1
}

const (
	// variants is how often each scenario is varied.
	variants = 3
	// drawn is how many servers drawn by chance are added.
	drawn = 400
	// mostSteps is how many recommendations of one server are followed.
	mostSteps = 3
)

// Cases are the servers that predictions are scored on: every scenario of a list,
// as it is and varied in load and lengths, and servers drawn by chance.
func Cases(list []scenarios.Scenario, seed uint64) []Case {
	var out []Case
	for i := range list {
		out = append(out, Case{list[i], seed})
		for v := range uint64(variants) {
			out = append(out, Case{vary(&list[i], seed, v), seed + 1 + v})
		}
	}
	for n := range drawn {
		out = append(out, Case{Random(seed, n), seed})
	}
	return out
}

// vary returns a scenario with more or fewer clients and longer or shorter
// requests, the factors drawn evenly on a logarithmic scale.
func vary(sc *scenarios.Scenario, seed, variant uint64) scenarios.Scenario {
	const span = 1.6
	h := fnv.New64a()
	h.Write([]byte(sc.Name))
	d := dice{rand.New(rand.NewPCG(seed*1000+variant, h.Sum64()))}
	level, prompt, output := d.between(1/span, span), d.between(1/span, span), d.between(1/span, span)
	out := *sc
	out.Load = nil
	for _, s := range sc.Load {
		phases := s.Phases
		s.Phases = nil
		for _, p := range phases {
			p.Rate *= level
			p.To *= level
			if p.Users > 0 {
				p.Users = max(1, int(math.Round(float64(p.Users)*level)))
			}
			s.Phases = append(s.Phases, p)
		}
		s.Prompt = longer(s.Prompt, prompt)
		s.Turn = longer(s.Turn, prompt)
		s.Output = longer(s.Output, output)
		s.Prefix.Tokens = int(float64(s.Prefix.Tokens) * prompt)
		out.Load = append(out.Load, s)
	}
	return out
}

// longer scales a distribution; its longest stays where it is for shorter factors
// only, so that nothing grows beyond what the model takes in.
func longer(l scenarios.Lengths, factor float64) scenarios.Lengths {
	if !l.Set() {
		return l
	}
	least, most := float64(l.Least)*factor, float64(l.Most)*factor
	if l.Mean > 0 {
		l.Mean *= factor
		most = min(most, float64(l.Most))
	}
	l.Least = int(math.Round(least))
	l.Most = max(1, l.Least, int(math.Round(most)))
	return l
}

// Foretell follows the recommendations of servers, each up to a few changes, and
// holds what was predicted of each change against what it did. done, where it is
// not nil, is called after each server with their number so far.
func Foretell(ctx context.Context, cases []Case, o Options, done func(n int)) ([]Foretold, error) {
	each := make([][]Foretold, len(cases))
	var wg sync.WaitGroup
	var mu sync.Mutex
	work := make(chan int)
	n := 0
	for range min(runtime.GOMAXPROCS(0), len(cases)) {
		wg.Go(func() {
			for i := range work {
				each[i] = foretell(ctx, &cases[i], o)
				mu.Lock()
				if n++; done != nil {
					done(n)
				}
				mu.Unlock()
			}
		})
	}
	for i := range cases {
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	wg.Wait()
	var out []Foretold
	for i := range each {
		out = append(out, each[i]...)
	}
	return out, context.Cause(ctx)
}

// foretell follows one server.
func foretell(ctx context.Context, c *Case, o Options) []Foretold {
	o.Seed = c.Seed
	sc := c.Scenario
	before, err := Run(&sc, nil, o)
	if err != nil || before.refused() {
		return nil
	}
	var out []Foretold
	for step := 1; step <= mostSteps && ctx.Err() == nil; step++ {
		rec := before.Diagnosis.Recommendation
		if rec == nil {
			break
		}
		f := Foretold{
			Scenario: sc.Name, Seed: c.Seed, Step: step, Held: held(&sc), Before: before,
			Finding: string(rec.Finding), Advice: string(rec.Kind),
		}
		if rec.Flag != "" {
			f.Advice = rec.Flag
		}
		change, untried := recommended(&sc, &before.Diagnosis)
		if change == nil {
			f.Unscored = untried
			out = append(out, f)
			break
		}
		f.Change = describe(change)
		after, err := Run(&sc, change, o)
		switch {
		case err != nil:
			f.Unscored = oneLine(err.Error())
		case after.refused():
			f.Unscored = "the server does not start: " + oneLine(after.Refused.Error())
		}
		if f.Unscored != "" {
			out = append(out, f)
			break
		}
		f.After, f.Scores = after, scores(rec.Predicted, before, after)
		out = append(out, f)
		next, ok := changed(&sc, change, after)
		if !ok {
			break
		}
		sc, before = next, after
	}
	return out
}

// changed is the scenario after a change; not ok where its command cannot be
// written with words alone.
func changed(sc *scenarios.Scenario, change *scenarios.Change, after *Outcome) (scenarios.Scenario, bool) {
	next := *sc
	next.Server = after.Command
	if len(change.Load) > 0 {
		next.Load = change.Load
	}
	return next, !strings.ContainsAny(after.Command, "'\"\\")
}

// scores holds predictions against what the page showed before and after.
func scores(predicted []engine.Prediction, before, after *Outcome) []Scored {
	var out []Scored
	for _, p := range predicted {
		was, is := metric(before, "page."+p.Metric), metric(after, "page."+p.Metric)
		if measured := is/was - 1; !math.IsNaN(measured) && !math.IsInf(measured, 0) {
			s := Scored{Metric: p.Metric, Low: p.Low.Or(math.NaN()), Mid: p.Mid.Or(math.NaN()), High: p.High.Or(math.NaN()), Measured: measured}
			out = append(out, s)
		}
	}
	return out
}

// String is a prediction in a line.
func (s *Scored) String() string {
	return fmt.Sprintf("%s .. %s .. %s, measured %s", percent(s.Low), percent(s.Mid), percent(s.High), percent(s.Measured))
}
