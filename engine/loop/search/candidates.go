package search

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// candidates returns all changes to consider, each set of settings once, those closest to a rule
// first.
func (s *Search) candidates() []candidate {
	var out []candidate
	add := func(list ...candidate) {
		for _, c := range list {
			changes := c.Changes()
			if c.Flag == "" || slices.ContainsFunc(out, func(o candidate) bool { return engine.SameChanges(o.Changes(), changes) }) {
				continue
			}
			out = append(out, c)
		}
	}
	anchors := s.anchors()
	for i := range anchors {
		add(s.fromRules(&anchors[i])...)
	}
	for i := range anchors {
		add(s.largerPools(&anchors[i])...)
	}
	add(s.slotCandidates(anchors)...)
	add(s.tokenBudgetCandidates(&anchors[0])...)
	add(s.cudaGraphCandidates(&anchors[0])...)
	add(s.tensorParallelCandidates(&anchors[0])...)
	add(s.hiddenCandidates(&anchors[0])...)
	return out
}

// fromRules returns the remedies of the rules that fired: the recommendation, the best of the other
// groups and, if an objective is missed, those that do not serve a throughput goal.
func (s *Search) fromRules(a *anchor) []candidate {
	var out []candidate
	add := func(id engine.FindingID, fix *engine.Fix) {
		if fix.Changeable() {
			out = append(out, s.fromRule(a, id, *fix))
		}
	}
	if r := a.d.Recommendation; r != nil {
		add(r.Finding, &r.Fix)
	}
	for _, id := range a.d.Runners {
		if f := a.d.Finding(id); f != nil && f.Fix != nil {
			add(id, f.Fix)
		}
	}
	if _, missed := s.Goal.breach(s.Baseline, nil); missed > 0 {
		for i := range a.d.Findings {
			f := &a.d.Findings[i]
			if f.State == engine.Fired && f.Significant && f.Fix != nil && f.Fix.Withheld != "" && f.ID == engine.PrefillInterference {
				add(f.ID, f.Fix)
			}
		}
	}
	return out
}

// fromRule returns the candidate for a remedy found at an anchor, or a zero candidate if it changes
// nothing.
func (s *Search) fromRule(a *anchor, id engine.FindingID, fix engine.Fix) candidate {
	c := candidate{Recommendation: engine.Recommendation{Finding: id, Fix: fix}, rule: true}
	if len(a.changes) == 0 {
		if r := s.Baseline.Recommendation; r != nil && r.Finding == id {
			c.Rejected = r.Rejected
		}
		return c
	}
	changes := a.with(fix.Changes()...)
	if len(changes) == 0 {
		return candidate{}
	}
	c.setChanges(changes)
	c.Predicted = a.relative(s.Goal.Metric, fix.Predicted)
	c.Why = fmt.Sprintf("%s was measured at %s, and showed what limits it. %s", engine.JoinChanges(a.changes), figure.ChangeSign(math.Expm1(a.offset)), fix.Why)
	c.rule, c.Finding = false, engine.SearchStep
	return c
}

// setChanges sets the candidate's changes. The first one names it.
func (c *candidate) setChanges(changes []engine.Change) {
	c.Kind, c.Flag, c.From, c.To = engine.KindFlag, changes[0].Flag, changes[0].From, changes[0].To
	c.Also = slices.Clone(changes[1:])
	c.Command = restartWith(changes)
}

// propose returns a candidate of the search itself, or a zero candidate if it changes nothing.
func (s *Search) propose(a *anchor, g roofline.Gain, why string, changes ...engine.Change) candidate {
	all := a.with(changes...)
	lacks := func(c engine.Change) bool { return c.Flag == "" } // the engine has no such flag
	if len(all) == 0 || slices.ContainsFunc(changes, lacks) {
		return candidate{}
	}
	c := candidate{Recommendation: engine.Recommendation{Finding: engine.SearchStep}}
	all, _ = a.d.Facts.WithPool(all)
	c.setChanges(all)
	c.Why = why
	c.Risk = 1
	c.Costs = []string{lever.Restart}
	c.Predicted = a.relative(s.Goal.Metric, predictions(g))
	return c
}

// cudaGraphCandidates proposes to remove --enforce-eager. Even if the model predicts next to nothing, the time of
// a step beyond the model may be kernel launches: it bounds the gain, and only a trial can
// measure it.
func (s *Search) cudaGraphCandidates(a *anchor) []candidate {
	p := a.d.Performance
	if !lever.GraphsOff(&a.d.Facts) || !a.d.Facts.GPUKnown {
		return nil
	}
	var g roofline.Gain
	why := "CUDA graphs are off: the host launches every kernel of every step."
	if p != nil {
		g = p.NoEager()
		if excess := min(p.Raw, unexplainedMost) - 1; excess > MinGain && g.Throughput.Mid.Or(0) < MinGain {
			g = roofline.Gain{
				Throughput: roofline.Range{Low: stat.Some(0), High: stat.Some(excess)},
				ITL:        roofline.Range{Low: stat.Some(1/(1+excess) - 1), High: stat.Some(0)},
			}
			why += fmt.Sprintf(" Steps take %s times what the hardware needs; the share of kernel launches is unknown until tried.", whole(p.Raw))
		}
	}
	return []candidate{s.propose(a, g, why, lever.Eager.Change(&a.d.Facts, ""))}
}

// unexplainedMost bounds the time of a step, as a multiple of the model's, for which launches are a
// plausible reason.
const unexplainedMost = 5

// tokenBudgetCandidates proposes token budgets of a step: larger ones than a small budget, because each
// reading of the weights then serves more tokens; and, if latencies matter, any, because a smaller step
// lets other streams continue during a prefill.
func (s *Search) tokenBudgetCandidates(a *anchor) []candidate {
	p, budget := a.d.Performance, a.d.Facts.MaxNumBatchedTokens
	_, missed := s.Goal.breach(s.Baseline, nil)
	latency := s.Goal.Metric == verdict.Latency || missed > 0
	if p == nil || !budget.Known || !a.d.Facts.ChunkedPrefill.Value || !latency && budget.Value >= lever.UsualBudget {
		return nil
	}
	var list []candidate
	if latency {
		least := max(leastStep, a.d.Facts.MaxNumSeqs.Value)
		for to := lever.MostBudget; to >= least; to /= 2 {
			list = append(list, s.withTokenBudget(a, to))
		}
	} else {
		for to := lever.UsualBudget; to <= lever.MostBudget; to *= 2 {
			list = append(list, s.withTokenBudget(a, to))
		}
	}
	best := s.bestOf(list)
	if !latency && !engine.PredictionOf(list[0].Predicted, engine.QuantityThroughput).Mid.OK {
		best = append(best, list[0]) // its gain is unknown
	}
	return best
}

// withTokenBudget returns the candidate for a token budget of a step, or a zero candidate if it is the
// present one.
func (s *Search) withTokenBudget(a *anchor, to int) candidate {
	p, now := a.d.Performance, a.d.Facts.MaxNumBatchedTokens.Value
	if to == now {
		return candidate{}
	}
	g := p.TokenBudget(to)
	why := "More tokens per step: prompts reach their first token sooner."
	if to < now {
		why = "Fewer tokens per step: running requests pause for less time while a prompt is computed."
		// Cutting prompts into smaller pieces makes none of them cheaper.
		for _, end := range [...]*stat.Opt{&g.Throughput.Low, &g.Throughput.Mid} {
			end.V = min(0, end.V)
		}
	}
	if now < lever.UsualBudget && to == lever.UsualBudget && g.Throughput.Mid.Or(0) < 2*MinGain && p.PrefillShare().Or(0) >= unsureShare {
		// The model does not know how much of the matrix units small steps waste.
		g.Throughput = roofline.Range{Low: stat.Some(0), High: stat.Some(unsureGain)}
		why = fmt.Sprintf("Steps of %d tokens waste a part of the matrix units: how large a part is unknown until tried.", now)
	}
	c := s.propose(a, g, why, lever.TokenBudget.Change(&a.d.Facts, strconv.Itoa(to)))
	c.predictPause(a.d, p.FullStep(float64(to), p.Measured.PrefillContext))
	return c
}

const (
	leastStep = 256 // tokens
	// unsureShare is the least share of prefill in a step for which a larger budget than a small one may
	// gain more than the model predicts, and unsureGain what it gained at most on simulated servers.
	unsureShare, unsureGain = 0.1, 0.25
	// pauseRatio is the least ratio of the 99th percentile to the mean of the time between tokens at
	// which prefills in the step determine the percentile.
	pauseRatio = 2
	// pauseError is the factor by which the predicted pause may be wrong.
	pauseError = 1.3
)

// predictPause adds the relative change of the 99th percentile of the time between tokens for a
// largest step of this many seconds. It adds none if prefills do not determine it.
func (c *candidate) predictPause(d *engine.Diagnosis, step float64) {
	mean, tail := d.Quantity(engine.QuantityITL).Value, d.Quantity(engine.QuantityITLTail).Value
	p, budget := d.Performance, d.Facts.MaxNumBatchedTokens
	if c.Flag == "" || !mean.OK || !tail.OK || tail.V < pauseRatio*mean.V || !budget.Known {
		return
	}
	if now := p.FullStep(float64(budget.Value), p.Measured.PrefillContext); now > 0 {
		by := max(step/now, mean.V/tail.V)
		c.Predicted = append(c.Predicted, engine.Prediction{
			Metric: engine.QuantityITLTail, Unit: "ratio", Low: stat.Some(by/pauseError - 1), Mid: stat.Some(by - 1), High: stat.Some(by*pauseError - 1),
		})
	}
}
