package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// candidates are all changes that come into question, each set of settings once:
// what comes first is nearer to a rule.
func (s *search) candidates() []candidate {
	var out []candidate
	add := func(list ...candidate) {
		for _, c := range list {
			changes := c.changes()
			if c.Flag == "" || slices.ContainsFunc(out, func(o candidate) bool { return alike(o.changes(), changes) }) {
				continue
			}
			out = append(out, c)
		}
	}
	anchors := s.anchors()
	for i := range anchors {
		add(s.ruled(&anchors[i])...)
	}
	for i := range anchors {
		add(s.roomier(&anchors[i])...)
	}
	add(s.seats(anchors)...)
	add(s.budgets(&anchors[0])...)
	add(s.graphs(&anchors[0])...)
	add(s.caching(&anchors[0])...)
	return out
}

// ruled are the remedies of the rules that fired: the recommendation, the best of
// the other groups, and, where an objective is missed, those that no goal of
// throughput would take.
func (s *search) ruled(a *anchor) []candidate {
	var out []candidate
	add := func(id FindingID, fix *Fix) {
		if !fix.Changeable() {
			return
		}
		if c, ok := s.from(a, id, *fix); ok {
			out = append(out, c)
		}
	}
	if r := a.d.Recommendation; r != nil {
		add(r.Finding, &r.Fix)
	}
	for _, id := range a.d.Runners {
		if f := a.d.finding(id); f != nil && f.Fix != nil {
			add(id, f.Fix)
		}
	}
	if _, missed := s.aim.breach(s.d, nil); missed > 0 {
		for i := range a.d.Findings {
			f := &a.d.Findings[i]
			if f.State == Fired && f.Significant && f.Fix != nil && f.Fix.Withheld != "" && f.ID == PrefillInterference {
				add(f.ID, f.Fix)
			}
		}
	}
	return out
}

// from makes a candidate of a remedy found at an anchor.
func (s *search) from(a *anchor, id FindingID, fix Fix) (candidate, bool) {
	c := candidate{Recommendation: Recommendation{Finding: id, Fix: fix}, rule: true}
	if len(a.changes) == 0 {
		if r := s.d.Recommendation; r != nil && r.Finding == id {
			c.Rejected = r.Rejected
		}
		return c, true
	}
	changes := a.with(fix.changes()...)
	if len(changes) == 0 {
		return c, false
	}
	c.set(changes)
	c.Predicted = a.relative(s.aim.goal, fix.Predicted)
	c.Why = fmt.Sprintf("%s was measured with %s, and showed what it lacks. %s", listed(a.changes), signed("%+.0f %%", math.Expm1(a.offset)), fix.Why)
	c.rule = false
	return c, true
}

// set makes a candidate's changes these, the first of them the flag that it is named
// by.
func (c *candidate) set(changes []Change) {
	c.Kind, c.Flag, c.From, c.To = KindFlag, changes[0].Flag, changes[0].From, changes[0].To
	c.Also = slices.Clone(changes[1:])
	c.Command = changedBy(changes)
}

// made is a candidate of the search itself.
func (s *search) made(a *anchor, id FindingID, g roofline.Gain, why string, changes ...Change) (candidate, bool) {
	all := a.with(changes...)
	if len(all) == 0 {
		return candidate{}, false
	}
	c := candidate{Recommendation: Recommendation{Finding: id}}
	c.set(all)
	c.Why = why
	c.Risk = 1
	c.Price = []string{oneRestart}
	c.Predicted = a.relative(s.aim.goal, predictions(g))
	return c, true
}

const oneRestart = "one restart: no request is served while the model loads and warms up"

// enlarge is a way to a larger pool.
type enlarge struct {
	Change
	growth float64 // how many times larger
}

// enlargements are the flags that keep the pool of a server small, with what they
// could be set to: as a rule proposes, else as far as memory goes.
func (d *Diagnosis) enlargements() []enlarge {
	var out []enlarge
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.State != Fired || f.Fix == nil || f.Fix.Kind != KindFlag {
			continue
		}
		c := Change{Flag: f.Fix.Flag, From: f.Fix.From, To: f.Fix.To}
		if growth := d.growth(c); growth.V > 1 && !slices.ContainsFunc(out, func(e enlarge) bool { return e.Change == c }) {
			out = append(out, enlarge{c, growth.V})
		}
	}
	u := d.Facts.GPUMemoryUtilization
	if !u.Known || d.Facts.NumGPUBlocksOverride.Known || !d.Facts.GPUKnown || d.Facts.Device.Value == "cpu" {
		return out
	}
	for _, to := range [...]float64{defaultPool, mostPool} {
		c := Change{Flag: "--gpu-memory-utilization", From: strconv.FormatFloat(u.Value, 'g', -1, 64), To: strconv.FormatFloat(to, 'f', 2, 64)}
		growth := d.growth(c)
		if to <= u.Value+0.005 || growth.V < leastEnlarged || d.vramTaken(to-u.Value) || slices.ContainsFunc(out, func(e enlarge) bool { return e.Flag == c.Flag && sameValue(e.To, c.To) }) {
			continue
		}
		out = append(out, enlarge{c, growth.V})
	}
	return out
}

const (
	// defaultPool is vLLM's share of the memory in the newest releases, and mostPool
	// the most that is tried: above it starts fail for lack of memory.
	defaultPool, mostPool = 0.92, 0.95
	// leastEnlarged is the growth of a pool that is worth to ask for.
	leastEnlarged = 1.05
	// vramSpare is the share of a GPU's memory that has to stay free.
	vramSpare = 0.02
)

// vramTaken says that the memory which a share more would claim is not there.
func (d *Diagnosis) vramTaken(more float64) bool {
	for i := range d.GPUs {
		g := &d.GPUs[i]
		if used := g.Peak[GPUVRAMUsed].Div(g.Last[GPUVRAMTotal]); used.OK && used.V+more > 1-vramSpare {
			return true
		}
	}
	return false
}

// growth is how many times larger the pool gets with a change; absent where it is
// none of the pool, or cannot be told.
func (d *Diagnosis) growth(c Change) stat.Opt {
	from, okFrom := number(c.From)
	to, okTo := number(c.To)
	switch c.Flag {
	case "--num-gpu-blocks-override":
		if okFrom && okTo && from > 0 {
			return stat.Some(to / from)
		}
		if okFrom && from > 0 && c.To == "" && d.Facts.BlockSize.Known && d.Facts.BlockSize.Value > 0 {
			if tokens := d.memoryPool(d.Facts.GPUMemoryUtilization.Value); tokens > 0 {
				return stat.Some(tokens / float64(d.Facts.BlockSize.Value) / from)
			}
		}
	case "--gpu-memory-utilization":
		if !okFrom || !okTo {
			return stat.None
		}
		was, is := d.memoryPool(from), d.memoryPool(to)
		if was > 0 {
			return stat.Some(is / was)
		}
	}
	return stat.None
}

// memoryPool estimates the tokens of a pool sized by a share of the memory, 0 where
// that is not known.
func (d *Diagnosis) memoryPool(util float64) float64 {
	config, missing := ReplicaConfig(&d.Facts)
	if len(missing) > 0 || util <= 0 {
		return 0
	}
	tokens, _, _ := config.Capacity(util)
	return tokens
}

// fullShare is how full a pool may be planned at the context that sequences reach.
const fullShare = 0.8

// roomier are changes of pool and seats together: seats with the pool they need,
// and, where even the larger pool is too small, as many seats as it holds.
func (s *search) roomier(a *anchor) []candidate {
	p, need := a.d.performance, a.d.needed()
	seats := a.d.Facts.MaxNumSeqs
	if p == nil || !need.OK || !seats.Known || !p.Measured.KVCapacity.OK {
		return nil
	}
	if need.V <= fullShare*holds(p, p.Measured.KVCapacity.V) && !a.d.preempts() {
		return nil // the pool holds what is in
	}
	var out []candidate
	for _, e := range a.d.enlargements() {
		tokens := p.Measured.KVCapacity.V * e.growth
		room := holds(p, tokens)
		to := seatsFor(min(need.V, fullShare*room))
		if to > int(fullShare*room) {
			to = seatsWithin(fullShare * room)
		}
		if budget := a.d.Facts.MaxNumBatchedTokens; budget.Known {
			to = min(to, budget.Value)
		}
		id := KVPressure
		seat := Change{Flag: "--max-num-seqs", From: strconv.Itoa(seats.Value), To: strconv.Itoa(to)}
		why := fmt.Sprintf("The pool gets room for about %s sequences at the context they reach", whole(math.Floor(room)))
		alone := p.MoreKV(tokens)
		if c, ok := s.made(a, id, alone, why+".", e.Change); ok {
			out = append(out, c)
		}
		var g roofline.Gain
		switch {
		case to > seats.Value && p.Measured.Waiting.Or(0) > 0:
			open := *p
			open.Measured.MaxNumSeqs = stat.Some(float64(to))
			g, id = open.MoreKV(tokens), SeatSaturation
			why += fmt.Sprintf(", and %d seats use it: one restart for both.", to)
		case to > 0 && to < seats.Value && need.V > room:
			open := *p
			open.Measured.KVCapacity = stat.Some(tokens)
			g = open.LowerSeats(to)
			why += fmt.Sprintf("; %d seats keep it from overflowing.", to)
		default:
			continue
		}
		if c, ok := s.made(a, id, g, why, e.Change, seat); ok {
			out = append(out, c)
		}
	}
	return out
}

// graphs takes --enforce-eager back. Where the model finds next to nothing in it, what
// a step takes beyond the model may be launches all the same: that bounds the gain,
// and only trying tells.
func (s *search) graphs(a *anchor) []candidate {
	eager, p := a.d.Facts.EnforceEager, a.d.performance
	if !eager.Known || !eager.Value || eager.Source == FromDefault || a.d.Facts.Device.Value == "cpu" || !a.d.Facts.GPUKnown {
		return nil
	}
	var g roofline.Gain
	why := "CUDA graphs are off: every kernel is launched by the host, step after step."
	if p != nil {
		g = p.NoEager()
		if excess := min(p.Raw, unexplainedMost) - 1; excess > leastWorth && g.Throughput.Mid.Or(0) < leastWorth {
			g = roofline.Gain{
				Throughput: roofline.Range{Low: stat.Some(0), High: stat.Some(excess)},
				ITL:        roofline.Range{Low: stat.Some(1/(1+excess) - 1), High: stat.Some(0)},
			}
			why += fmt.Sprintf(" Steps take %s times what the hardware needs for them; what launches have of that is unknown until tried.", whole(p.Raw))
		}
	}
	return s.one(s.made(a, SlowSteps, g, why, Change{Flag: "--enforce-eager", From: "on"}))
}

// unexplainedMost bounds what a step may take beyond the model for launches to be
// thought of as the reason.
const unexplainedMost = 5

func (s *search) one(c candidate, ok bool) []candidate {
	if !ok {
		return nil
	}
	return []candidate{c}
}

// caching switches prefix caching on where it was switched off and prompts can share
// blocks: what they share cannot be seen before it is on. Prefill's part of the step
// bounds the gain.
func (s *search) caching(a *anchor) []candidate {
	f := &a.d.Facts
	prompt := a.d.Quantity("prompt_tokens_mean").Value
	if !f.PrefixCaching.Known || f.PrefixCaching.Value || f.PrefixCaching.Source == FromDefault || f.PrefixCaching.Source == FromMetrics ||
		!prompt.OK || f.BlockSize.Known && prompt.V < cachedBlocks*float64(f.BlockSize.Value) {
		return nil
	}
	share := a.d.Quantity("prefill_share").Value
	if p := a.d.performance; p != nil && p.PrefillShare().OK {
		share = p.PrefillShare()
	}
	var g roofline.Gain
	why := "Prefix caching is off: a beginning that prompts share is computed again for each. Whether they share one is unknown until tried."
	if share.OK && share.V < 1 {
		most := 1/(1-share.V) - 1
		g.Throughput = roofline.Range{Low: stat.Some(0), High: stat.Some(most)}
		why += fmt.Sprintf(" Prompts take %.0f %% of the steps.", 100*share.V)
	}
	return s.one(s.made(a, LowPrefixReuse, g, why, Change{Flag: "--enable-prefix-caching", From: "off", To: "on"}))
}

// cachedBlocks is how many blocks a mean prompt must have for something to be reused.
const cachedBlocks = 2

// budgets are numbers of tokens in a step, where latencies are what matters: a
// smaller step lets the streams beside a prompt go on, a larger one brings it to its
// first token sooner.
func (s *search) budgets(a *anchor) []candidate {
	p, budget := a.d.performance, a.d.Facts.MaxNumBatchedTokens
	_, missed := s.aim.breach(s.d, nil)
	if p == nil || !budget.Known || s.aim.goal != verdict.Latency && missed == 0 || !a.d.Facts.ChunkedPrefill.Value {
		return nil
	}
	least := max(leastStep, a.d.Facts.MaxNumSeqs.Value)
	var best *candidate
	for to := mostStep; to >= least; to /= 2 {
		if to == budget.Value {
			continue
		}
		c, ok := s.budgeted(a, to)
		if !ok || s.barred(&c) {
			continue
		}
		probe := c
		s.weigh(&probe)
		if _, good := s.aim.value(s.d, probe.Predicted, 0); !good || !probe.gain.OK {
			continue
		}
		if c.value = probe.value; best == nil || c.value > best.value+leastMore {
			best = &c
		}
	}
	if best == nil {
		return nil
	}
	return []candidate{*best}
}

// budgeted is a number of tokens in a step.
func (s *search) budgeted(a *anchor, to int) (candidate, bool) {
	p, now := a.d.performance, a.d.Facts.MaxNumBatchedTokens.Value
	g := p.TokenBudget(to)
	why := "More tokens a step: prompts come to their first token sooner."
	if to < now {
		why = "Fewer tokens a step: streams pause for a shorter time while a prompt is computed."
		// Cutting prompts finer makes none of them cheaper.
		for _, end := range [...]*stat.Opt{&g.Throughput.Low, &g.Throughput.Mid} {
			end.V = min(0, end.V)
		}
	}
	c, ok := s.made(a, TokenBudget, g, why, Change{Flag: "--max-num-batched-tokens", From: strconv.Itoa(now), To: strconv.Itoa(to)})
	if !ok {
		return c, false
	}
	if tail := s.pause(a.d, p.FullStep(float64(to), p.Measured.PrefillContext)); tail.OK {
		c.Predicted = append(c.Predicted, Prediction{Metric: predictITLTail, Unit: "ratio", Low: tail, Mid: tail, High: tail})
	}
	return c, true
}

const (
	leastStep, mostStep = 256, 16384 // tokens
	predictITLTail      = "itl_p99_s"
	// paused is how many times the mean the 99th percentile of the time between
	// tokens is where prompts in the step set it.
	paused = 2
)

// pause is the relative change of the 99th percentile of the time between tokens
// where the largest step takes this many seconds; absent where no prompt sets it.
func (s *search) pause(d *Diagnosis, step float64) stat.Opt {
	mean, tail := d.Quantity(predictITL).Value, d.Quantity(predictITLTail).Value
	p, budget := d.performance, d.Facts.MaxNumBatchedTokens
	if !mean.OK || !tail.OK || tail.V < paused*mean.V || !budget.Known {
		return stat.None
	}
	now := p.FullStep(float64(budget.Value), p.Measured.PrefillContext)
	if now <= 0 {
		return stat.None
	}
	return stat.Some(max(step/now, mean.V/tail.V) - 1)
}
