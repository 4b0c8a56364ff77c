package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// search weighs which change comes next: what the rules propose with their computed
// numbers, then what the calibrated model and the trials so far make of them. It is
// a pure function of its fields.
type search struct {
	d       *Diagnosis // of the kept configuration
	aim     aim
	trials  []tried
	records []foretold
	// auto says that nobody looks at each change: flags that change answers need to
	// be asked for, and nothing is tried that is not worth a restart.
	auto  bool
	allow []string // flags that may be changed, nil all that do not change answers
	// left is how many restarts remain, those for ways back among them; negative is
	// no limit.
	left int
	// restart is half the interval, as a logarithm, that restarts put about one start of
	// a configuration: a gain below that cannot be told from them.
	restart float64
	// hindered is set by next: a change that a rule proposes, and that is worth it, may
	// not be made because its flag is not among those that are allowed.
	hindered bool
	// against says whether a change was passed over, or tried by hand.
	against func(key string) bool
}

// candidate is a change that may come next.
type candidate struct {
	Recommendation
	rule bool     // the number is that of a rule, and not of the search
	gain stat.Opt // logarithm of what it is predicted to gain of the goal
	// spread is the standard deviation of that, 0 where it has no ends.
	spread float64
	value  float64 // gain and objectives weighed together
	again  bool    // tried before, without a verdict
}

// Changeable says that a fix is a change to the server's flags that can be made: to
// a value, or, where To is "", by leaving out what is given.
func (f *Fix) Changeable() bool {
	return f.Kind == KindFlag && f.Flag != "" && (f.To != "" || f.From != "")
}

// changes are all settings of a fix.
func (f *Fix) changes() []Change {
	return append([]Change{{Flag: f.Flag, From: f.From, To: f.To}}, f.Also...)
}

// minTrial is how many restarts a trial needs: its own, and the one that undoes it.
const minTrial = 2

// next is the change to try, nil where none is worth it; why then says so in a
// sentence, "" where there was none to weigh.
func (s *search) next() (r *Recommendation, why string) {
	s.hindered = false
	list := s.candidates()
	best := -1
	var refused refusals
	for i := range list {
		c := &list[i]
		s.weigh(c)
		if text, order := s.refuse(c); text != "" {
			refused.add(text, order, c.value)
			s.hindered = s.hindered || order == refusedAllowed && s.allow != nil && c.rule && s.aim.deserves(c.value)
			continue
		}
		if best < 0 || c.before(&list[best]) {
			best = i
		}
	}
	if best < 0 {
		return s.elsewhere(), refused.why()
	}
	return &list[best].Recommendation, ""
}

// before says whether a candidate is tried before another: the higher value, and
// the number of a rule where both are worth about the same.
func (c *candidate) before(o *candidate) bool {
	mine, other := c.value, o.value
	if c.rule {
		mine += ruleFirst
	}
	if o.rule {
		other += ruleFirst
	}
	mine -= eachFlag * float64(len(c.Also))
	other -= eachFlag * float64(len(o.Also))
	return mine > other
}

// ruleFirst is by how much a number that the search made up has to be predicted
// better than one that a rule computed to be tried before it.
const ruleFirst = 0.05

// eachFlag is by how much a change of one flag more has to be predicted better: what
// comes of it is harder to tell apart.
const eachFlag = 0.03

// elsewhere is what is recommended where no flag of this server is left: something
// for the clients, the host or the hardware.
func (s *search) elsewhere() *Recommendation {
	r := s.d.Recommendation
	if r == nil || r.Kind == KindFlag && r.Flag != "" || s.against(key(r.Finding, &r.Fix)) {
		return nil
	}
	return r
}

// weigh corrects what is predicted by what earlier predictions missed, and weighs it.
func (s *search) weigh(c *candidate) {
	c.Predicted = s.aim.foresee(s.d, c.Predicted)
	if fix := foretell(s.records, c.Flag); fix.made > 0 {
		c.Predicted = fix.apply(s.aim.goal, c.Predicted)
		if text := fix.told(c.Flag); text != "" && benefit(s.aim.goal, c.Predicted).mid.OK {
			c.Price = append(c.Price[:len(c.Price):len(c.Price)], text)
		}
	}
	b := benefit(s.aim.goal, c.Predicted)
	c.gain, c.spread = b.mid, b.spread()
	if t, n := unproven(s.trials, c.changes()); n > 0 && t.effect.OK && s.auto {
		c.again = true
		c.gain = stat.Some(pooled(b, t))
	}
	c.value, _ = s.aim.value(s.d, c.Predicted, c.gain.Or(hoped(b)))
	if c.again && c.value > 0 {
		c.value *= secondTime
	}
}

// secondTime is what a change is worth that was tried and could not be judged: what
// kept it from a verdict may do so again, and its neighbours teach more.
const secondTime = 0.5

// pooled is what a prediction and a measurement without a verdict say together, each
// by how sure it is.
func pooled(b span3, t *tried) float64 {
	if !b.mid.OK {
		return t.effect.V
	}
	spread, noise := max(leastWidth, b.spread()), max(leastWidth, t.noise)
	if b.spread() == 0 {
		spread = foretoldNoise
	}
	mine, other := 1/(spread*spread), 1/(noise*noise)
	return (mine*b.mid.V + other*t.effect.V) / (mine + other)
}

// hoped is what a change of unknown gain is ordered by: a part of the most that it
// could bring.
func hoped(b span3) float64 {
	if b.high.OK {
		return min(hopeMost, max(0, b.high.V)*hopeShare)
	}
	return hopeBlind
}

const (
	hopeShare = 0.25
	hopeMost  = 0.5
	hopeBlind = 0.05
)

// Orders of refusals: the one that is told is the nearest to being tried.
const (
	refusedWorth = iota
	refusedAllowed
	refusedTried
	refusedPassed
)

// refuse says why a candidate is not tried, "" where it may be.
func (s *search) refuse(c *candidate) (why string, order int) {
	changes := c.changes()
	for _, change := range changes {
		if why := s.forbidden(change.Flag); why != "" {
			return fmt.Sprintf("not allowed: %s (%s)", listed(changes), why), refusedAllowed
		}
	}
	if s.against(key(c.Finding, &c.Fix)) {
		return listed(changes) + " was tried without a gain, or passed over", refusedPassed
	}
	for i := range s.trials {
		if why := s.trials[i].speaks(changes, s.d); why != "" {
			return why, refusedTried
		}
	}
	if t, n := unproven(s.trials, changes); n > 0 && s.auto {
		if n > 1 || !t.sameLoad(s.d, againLoad) || !s.restarts(minTrial) {
			return listed(changes) + " was tried and could not be judged", refusedTried
		}
	}
	return s.pays(c)
}

// pays says why a candidate is not worth a restart, "" where it is.
func (s *search) pays(c *candidate) (why string, order int) {
	if _, ok := s.aim.value(s.d, c.Predicted, 0); !ok {
		return fmt.Sprintf("%s would miss what has to hold", listed(c.changes())), refusedWorth
	}
	if c.gain.OK {
		text := "nothing predicted is worth a restart: the best left is " + listed(c.changes()) + " with " + signed("%+.1f %%", math.Expm1(c.gain.V))
		if c.gain.V < 0 {
			text = "every change that is left is predicted to lose: the least is " + signed("%.1f %%", math.Expm1(c.gain.V)) + " with " + listed(c.changes())
		}
		switch {
		case !s.auto && c.rule:
			return "", 0
		case !s.aim.deserves(c.value):
			return text, refusedWorth
		case !s.provable(c):
			return text + ", which restarts differ by: it could not be told from them", refusedWorth
		}
		return "", 0
	}
	high := benefit(s.aim.goal, c.Predicted).high
	switch {
	case high.OK && high.V < s.aim.worth:
		return fmt.Sprintf("nothing predicted is worth a restart: the best left is %s with %s at most", listed(c.changes()), signed("%+.1f %%", math.Expm1(high.V))), refusedWorth
	case !s.restarts(minTrial):
		return "no restart remains to try " + listed(c.changes()) + ", whose gain is not known", refusedWorth
	}
	return "", 0
}

// provable says whether the gain of a candidate has a fair chance to be told from what
// restarts differ by: with a second start of both where restarts remain for it. Where
// an objective is missed, what brings it nearer has to.
func (s *search) provable(c *candidate) bool {
	if !s.auto {
		return true
	}
	starts := 1.0
	if s.restarts(2*minTrial) || c.again {
		starts = 2
	}
	least := s.restart * math.Sqrt(2/starts)
	if before, missed := s.aim.breach(s.d, nil); missed > 0 {
		after, then := s.aim.breach(s.d, c.Predicted)
		return then < missed || before-after >= least
	}
	return c.gain.V+quarter*math.Hypot(c.spread, foretoldNoise) >= least
}

// quarter is the number of standard deviations beyond which a quarter of outcomes lie.
const quarter = 0.674

func (s *search) restarts(n int) bool { return s.left < 0 || s.left >= n }

// forbidden says why a flag may not be changed, "" where it may.
func (s *search) forbidden(flag string) string {
	if !s.auto {
		return ""
	}
	named := func(name string) bool { return flagName(name) == flagName(flag) }
	switch {
	case s.allow != nil && !slices.ContainsFunc(s.allow, named):
		return "it is not among the flags that may be changed"
	case s.allow == nil && catalog.Default().ChangesAnswers(flag):
		return "it can change the model's answers, and was not asked for"
	}
	return ""
}

// refusals collect why candidates were refused.
type refusals struct {
	list []refusal
}

type refusal struct {
	text  string
	order int
	value float64
}

func (r *refusals) add(text string, order int, value float64) {
	r.list = append(r.list, refusal{text, order, value})
}

// why is the reason of the candidate that came nearest, with what is not allowed
// beside it.
func (r *refusals) why() string {
	if len(r.list) == 0 {
		return ""
	}
	slices.SortStableFunc(r.list, func(a, b refusal) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(b.value, a.value))
	})
	text := r.list[0].text
	for _, o := range r.list[1:] {
		if o.order == refusedAllowed && r.list[0].order != refusedAllowed && !strings.Contains(text, o.text) {
			return text + "; " + o.text
		}
	}
	return text
}

// changed spells a change of the search as what to do.
func changedBy(changes []Change) string {
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
