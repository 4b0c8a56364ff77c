package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Search chooses the next change: from the proposals of the rules with their computed numbers,
// weighed by the calibrated model and the trials so far. It is a pure function of its fields.
type Search struct {
	Baseline *engine.Diagnosis // of the kept configuration
	Goal     Goal
	Trials   []Trial
	// Auto means that no person approves each change: flags that alter answers must be allowed
	// explicitly, and nothing is tried that does not justify a restart.
	Auto  bool
	Allow []string // flags that may be changed; nil is all that do not alter answers
	// RestartsLeft is the number of remaining restarts, including reverts; negative is unlimited.
	RestartsLeft int
	// RestartSpread is half the interval, as a logarithm, of the difference that restarts cause.
	// A smaller gain cannot be distinguished from it.
	RestartSpread float64
	// Detectable is the least gain, as a logarithm, that a trial of one start would distinguish from noise; 0 if unknown.
	Detectable float64
	// Blocked is set by Next if a worthwhile change that a rule proposes is not allowed.
	Blocked bool
	// PassedOver reports whether a change was skipped, or tried by hand.
	PassedOver func(key string) bool
}

// Key returns a key for the change of a fix.
func Key(id engine.FindingID, f *engine.Fix) string {
	if f.Kind != engine.KindFlag || f.Flag == "" {
		return string(id)
	}
	return ChangesKey(f.Changes())
}

// ChangesKey returns a key for a set of changes, the same in any order.
func ChangesKey(changes []engine.Change) string {
	parts := make([]string, len(changes))
	for i, c := range changes {
		parts[i] = c.Flag + "=" + c.To
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// candidate is a change to consider.
type candidate struct {
	engine.Recommendation
	rule bool     // the number is computed by a rule, not by the search
	gain stat.Opt // logarithm of the predicted gain of the goal
	// spread is the standard deviation of gain, 0 without ends.
	spread float64
	value  float64 // gain and objectives combined
	again  bool    // tried before without a verdict
}

// minTrial is the number of restarts of a trial: its own, and its revert.
const minTrial = 2

// Next returns the change to try, or nil if none is worth it. why then is a sentence on the
// reason, "" if there were no candidates.
func (s *Search) Next() (r *engine.Recommendation, why string) {
	s.Blocked = false
	list := s.candidates()
	best, allowed := -1, list[:0:0]
	var refused []refusal
	var barred refusal // of what a rule recommends most
	for i := range list {
		c := &list[i]
		s.weigh(c)
		if text, order := s.refuse(c); text != "" {
			refused = append(refused, refusal{text, order, c.value})
			if order == refusedAllowed && c.rule && (barred.text == "" || c.value > barred.value) {
				barred = refusal{text, order, c.value}
			}
			s.Blocked = s.Blocked || order == refusedAllowed && s.Allow != nil && c.rule && s.Goal.worthRestart(c.value)
			continue
		}
		allowed = append(allowed, *c)
		if best < 0 || c.comesBefore(&list[best]) {
			best = i
		}
	}
	if best < 0 {
		return s.beyondFlags(), nearestRefusal(refused)
	}
	out := s.tellable(&list[best], allowed)
	if out.again {
		out.Why = strings.TrimSpace(out.Why + " It was tried without a verdict: a second start may give one.")
	}
	if barred.text != "" && barred.value > out.value {
		out.Why = strings.TrimSpace(out.Why + " The change that a rule recommends is " + barred.text + ".")
	}
	return &out.Recommendation, ""
}

// tellable returns the candidate to try instead of the best one: if its gain is smaller than a trial
// can distinguish from noise, the one with the largest gain among those that change the same flag further.
func (s *Search) tellable(best *candidate, allowed []candidate) *candidate {
	if !best.gain.OK || best.gain.V >= s.Detectable {
		return best
	}
	out := best
	for i := range allowed {
		if c := &allowed[i]; c.isFurther(best) && c.gain.OK && c.gain.V > out.gain.V {
			out = c
		}
	}
	if out != best {
		out.Why = strings.TrimSpace(out.Why + " The smaller step to " + best.To + " is predicted to gain less than a trial can distinguish from noise.")
	}
	return out
}

// isFurther reports whether a candidate is a larger step of the same flag in the same direction.
func (c *candidate) isFurther(o *candidate) bool {
	from, ok1 := lever.ParseNumber(o.From)
	near, ok2 := lever.ParseNumber(o.To)
	far, ok3 := lever.ParseNumber(c.To)
	return c.Flag == o.Flag && len(c.Also) == len(o.Also) && ok1 && ok2 && ok3 && (far-near)*(near-from) > 0
}

// comesBefore reports whether a candidate is tried before another: the higher value first, but a
// rule's candidate if both are about equal.
func (c *candidate) comesBefore(o *candidate) bool {
	order := func(c *candidate) float64 {
		v := c.value
		if c.rule {
			v += ruleAdvantage
		}
		return v - extraFlagCost*float64(len(c.Also))
	}
	return order(c) > order(o)
}

// ruleAdvantage is by how much a candidate of the search must exceed the value of one that a rule
// computed to be tried before it.
const ruleAdvantage = 0.05

// extraFlagCost is by how much the value of a change must be higher for each additional flag, because
// the effects of several flags are harder to separate.
const extraFlagCost = 0.03

// beyondFlags returns the recommendation if no flag of this server is left: a change of the
// clients, the host or the hardware.
func (s *Search) beyondFlags() *engine.Recommendation {
	r := s.Baseline.Recommendation
	if r == nil || r.Kind == engine.KindFlag && r.Flag != "" || s.PassedOver(Key(r.Finding, &r.Fix)) {
		return nil
	}
	return r
}

// weigh completes the prediction of a candidate, and sets its value.
func (s *Search) weigh(c *candidate) {
	c.Predicted = s.Goal.complete(s.Baseline, c.Predicted)
	b := Gain(s.Goal.Metric, c.Predicted)
	c.gain, c.spread = b.Mid, spread(b)
	if t, n := s.trialsWithoutVerdict(c); n > 0 && t.Effect.OK && s.Auto {
		c.again = true
		c.gain = stat.Some(combinedGain(b, t))
	}
	c.value, _ = s.Goal.value(s.Baseline, c.Predicted, c.gain.Or(assumedGain(b)))
	if c.again && c.value > 0 {
		c.value *= retryFactor
	}
}

// retryFactor is the factor on the value of a change that was tried without a verdict: the reason
// may recur, and similar changes provide more information.
const retryFactor = 0.5

const (
	// measurementNoise is the standard deviation of the measured logarithm of a gain (scatter of
	// restarts on both sides).
	measurementNoise = 0.06
	// leastWidth is the smallest half width assumed for a prediction.
	leastWidth = 0.02
	// z80 is the half width of an 80 % interval in standard deviations.
	z80 = 1.2816
)

// combinedGain combines a prediction with a measurement without a verdict, weighted by their precision.
func combinedGain(b roofline.Range, t *Trial) float64 {
	if !b.Mid.OK {
		return t.Effect.V
	}
	predicted, noise := max(leastWidth, spread(b)), max(leastWidth, t.Noise)
	if spread(b) == 0 {
		predicted = measurementNoise
	}
	mine, other := 1/(predicted*predicted), 1/(noise*noise)
	return (mine*b.Mid.V + other*t.Effect.V) / (mine + other)
}

// assumedGain returns the gain by which a change of unknown gain is ordered: a part of its upper bound.
func assumedGain(b roofline.Range) float64 {
	if b.High.OK {
		return min(assumedMost, max(0, b.High.V)*assumedShare)
	}
	return assumedUnbounded
}

const (
	assumedShare     = 0.25
	assumedMost      = 0.5
	assumedUnbounded = 0.05
)

// Orders of refusals. The first is closest to being tried, and is the one shown.
const (
	refusedWorth = iota
	refusedAllowed
	refusedTried
	refusedPassed
)

// refuse returns why a candidate is not tried, or "".
func (s *Search) refuse(c *candidate) (why string, order int) {
	changes := c.Changes()
	for _, change := range changes {
		if why := s.forbidden(change.Flag); why != "" {
			return fmt.Sprintf("not allowed: %s (%s)", engine.JoinChanges(changes), why), refusedAllowed
		}
	}
	if s.PassedOver(Key(c.Finding, &c.Fix)) {
		return engine.JoinChanges(changes) + " was tried without a gain, or skipped", refusedPassed
	}
	if why := s.excluded(changes); why != "" {
		return why, refusedTried
	}
	if t, n := s.trialsWithoutVerdict(c); n > 0 && s.Auto {
		if n > 1 || !t.sameLoad(s.Baseline, againLoad) || !s.hasRestarts(minTrial) {
			return engine.JoinChanges(t.Changes) + " was tried and could not be judged", refusedTried
		}
	}
	return s.worthTrying(c)
}

// leastNamedGain is the least predicted gain or loss, as a logarithm, that a sentence names.
const leastNamedGain = 0.005

// worthTrying returns why a candidate does not justify a restart, or "".
func (s *Search) worthTrying(c *candidate) (why string, order int) {
	if _, ok := s.Goal.value(s.Baseline, c.Predicted, 0); !ok {
		return fmt.Sprintf("%s would break an objective", engine.JoinChanges(c.Changes())), refusedWorth
	}
	if c.gain.OK {
		text := "no remaining change is predicted to help"
		switch {
		case c.gain.V >= leastNamedGain:
			text += ": the best is " + engine.JoinChanges(c.Changes()) + " with " + figure.ChangeSign(math.Expm1(c.gain.V))
		case c.gain.V <= -leastNamedGain:
			text = "all remaining changes would reduce the result (smallest loss: " + figure.ChangeSign(math.Expm1(c.gain.V)) + " with " + engine.JoinChanges(c.Changes()) + ")"
		}
		switch {
		case !s.Auto && c.rule:
			return "", 0
		case !s.Goal.worthRestart(c.value):
			return text, refusedWorth
		case !s.distinguishable(c):
			return text + ", which is within restart noise", refusedWorth
		}
		return "", 0
	}
	high := Gain(s.Goal.Metric, c.Predicted).High
	switch {
	case high.OK && high.V < s.Goal.MinGain:
		return fmt.Sprintf("no remaining change is predicted to help: the best is %s with %s at most", engine.JoinChanges(c.Changes()), figure.ChangeSign(math.Expm1(high.V))), refusedWorth
	case !s.hasRestarts(minTrial):
		return "no restart is left to try " + engine.JoinChanges(c.Changes()) + ", whose gain is unknown", refusedWorth
	}
	return "", 0
}

// distinguishable reports whether the gain of a candidate has a fair chance to be distinguished from the
// differences between restarts, assuming a second start of both sides if restarts remain for it.
// If an objective is missed, the improvement of that must be distinguishable.
func (s *Search) distinguishable(c *candidate) bool {
	if !s.Auto {
		return true
	}
	starts := 1.0
	if s.hasRestarts(2*minTrial) || c.again {
		starts = 2
	}
	least := s.RestartSpread * math.Sqrt(2/starts)
	if before, missed := s.Goal.breach(s.Baseline, nil); missed > 0 {
		after, then := s.Goal.breach(s.Baseline, c.Predicted)
		return then < missed || before-after >= least
	}
	return c.gain.V+zQuarter*math.Hypot(c.spread, measurementNoise) >= least
}

// zQuarter is the number of standard deviations beyond which a quarter of outcomes lies.
const zQuarter = 0.674

func (s *Search) hasRestarts(n int) bool { return s.RestartsLeft < 0 || s.RestartsLeft >= n }

// forbidden returns why a flag may not be changed, or "".
func (s *Search) forbidden(flag string) string {
	if !s.Auto {
		return ""
	}
	named := func(name string) bool { return engine.ArgumentName(name) == engine.ArgumentName(flag) }
	l := lever.Of(engine.Change{Flag: flag}.Canonical().Flag)
	switch {
	case s.Allow != nil && !slices.ContainsFunc(s.Allow, named):
		return "not one of the allowed flags"
	case s.Allow == nil && l != nil && l.Asks != "":
		return l.Asks
	case s.Allow == nil && catalog.ChangesAnswers(flag):
		return "it can change the model's answers; --allow-flags has to name it"
	}
	return ""
}

// refusal is the reason why a candidate was refused.
type refusal struct {
	text  string
	order int
	value float64
}

// nearestRefusal returns the reason of the candidate that came closest, and the flags that are not
// allowed.
func nearestRefusal(list []refusal) string {
	if len(list) == 0 {
		return ""
	}
	slices.SortStableFunc(list, func(a, b refusal) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(b.value, a.value))
	})
	text := list[0].text
	for _, o := range list[1:] {
		if o.order == refusedAllowed && list[0].order != refusedAllowed && !strings.Contains(text, o.text) {
			return text + "; " + o.text
		}
	}
	return text
}

// restartWith returns the changes as an instruction.
func restartWith(changes []engine.Change) string {
	parts := make([]string, len(changes))
	for i, c := range changes {
		switch {
		case c.To == "on":
			parts[i] = c.Flag
		case c.To == "off" || c.To == "":
			parts[i] = "no " + c.Flag
		default:
			parts[i] = c.Flag + " " + c.To
		}
		if c.From != "" && c.From != "on" && c.From != "off" {
			parts[i] += " (now " + c.From + ")"
		}
	}
	return "restart with " + strings.Join(parts, " and ")
}

func whole(v float64) string { return figure.Show(stat.Some(v), "") }
