package bench

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Case is one server on which recommendations are applied.
type Case struct {
	Scenario settings.Scenario
	Seed     uint64
}

// heldOut reports whether a server is in the half that is held out, by the hash of its name: all
// variants of one scenario are in the same half.
func heldOut(sc *settings.Scenario) bool {
	h := fnv.New32a()
	h.Write([]byte(sc.Name))
	return h.Sum32()>>8&1 == 1
}

const (
	// variants is the number of variants of each scenario.
	variants = 3
	// randomCases is the number of random servers.
	randomCases = 400
	// maxSteps is the maximum number of recommendations that are applied to one server.
	maxSteps = 3
)

// Cases returns the servers that predictions are scored on: every scenario of a list, unchanged and
// with variants of load and lengths, and random servers.
func Cases(list []settings.Scenario, seed uint64) []Case {
	var out []Case
	for i := range list {
		out = append(out, Case{list[i], seed})
		for v := range uint64(variants) {
			out = append(out, Case{vary(&list[i], seed, v), seed + 1 + v})
		}
	}
	for n := range randomCases {
		out = append(out, Case{Random(seed, n), seed})
	}
	return out
}

// vary returns a scenario with more or fewer clients and longer or shorter requests. The factors are
// uniform on a logarithmic scale.
func vary(sc *settings.Scenario, seed, variant uint64) settings.Scenario {
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
		s.Output = longer(s.Output, output)
		s.Prefix.Tokens = int(float64(s.Prefix.Tokens) * prompt)
		out.Load = append(out.Load, s)
	}
	return out
}

// longer scales a distribution of lengths. A factor above 1 does not raise the maximum, so that no
// request exceeds the model's context.
func longer(l settings.Lengths, factor float64) settings.Lengths {
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

// ScorePredictions applies the recommendations for each server, at most maxSteps, and compares the
// predicted effect of each with the measured one.
func ScorePredictions(ctx context.Context, cases []Case, o Options) ([]ScoredPrediction, error) {
	each := make([][]ScoredPrediction, len(cases))
	err := parallel(ctx, len(cases), func(i int) { each[i] = followServer(ctx, &cases[i], o) })
	return slices.Concat(each...), err
}

// followServer applies and scores the recommendations for one server.
func followServer(ctx context.Context, c *Case, o Options) []ScoredPrediction {
	o.Seed = c.Seed
	sc := c.Scenario
	before, err := Run(&sc, nil, o)
	if err != nil || before.refused() {
		return nil
	}
	var out []ScoredPrediction
	for step := 1; step <= maxSteps && ctx.Err() == nil; step++ {
		rec := before.Diagnosis.Recommendation
		if rec == nil {
			break
		}
		f := ScoredPrediction{
			Scenario: sc.Name, Seed: c.Seed, Step: step, HeldOut: heldOut(&sc),
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
		f.Scores = scores(rec.Predicted, before, after)
		out = append(out, f)
		next, ok := changed(&sc, change, after)
		if !ok {
			break
		}
		sc, before = next, after
	}
	return out
}

// changed returns the scenario after a change; false if its command cannot be written without
// quoting.
func changed(sc *settings.Scenario, change *settings.Change, after *Outcome) (settings.Scenario, bool) {
	next := *sc
	next.Server = after.Command
	if len(change.Load) > 0 {
		next.Load = change.Load
	}
	return next, !strings.ContainsAny(after.Command, "'\"\\")
}

// scores compares predictions with the metrics page before and after.
func scores(predicted []engine.Prediction, before, after *Outcome) []Scored {
	var out []Scored
	for _, p := range predicted {
		was, is := metric(before, "page."+p.Metric), metric(after, "page."+p.Metric)
		if measured := is/was - 1; stat.IsFinite(measured) {
			s := Scored{Metric: p.Metric, Low: p.Low.Or(math.NaN()), Mid: p.Mid.Or(math.NaN()), High: p.High.Or(math.NaN()), Measured: measured}
			out = append(out, s)
		}
	}
	return out
}
