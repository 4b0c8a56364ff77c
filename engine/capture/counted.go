package capture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Counting says when a server's own counter of output tokens moves. "" is not known:
// then the looks at it have to show it.
type Counting string

// Ways to count.
const (
	EachStep Counting = "each step"      // as tokens come
	AtEnd    Counting = "end of request" // when a request ends, by all that it had
)

// Counted is the output of all clients of a server, over a run, by the server's own
// counter.
type Counted struct {
	// Tokens are in proportion to the run: the looks at the counter lie around it. They
	// are absent, with the Reason, where the counter does not tell what came in the run.
	Tokens stat.Opt
	// Estimate says that some of the Tokens came before the run, or that some of the
	// run's are not among them; Note then says within what bounds.
	Estimate     bool
	Note, Reason string
}

// Counted is what the server's own counter says of the run.
func (c *Capture) Counted() Counted { return c.byCounter(0) }

// byCounter knows that at least so many of the tokens came in the run.
//
// A counter that moves with each step of the engine counts what came between two looks.
// One that moves when a request ends does so only where no request ran at the first
// look or the last: of what it counts, a part may have come before, and what runs still
// is not counted.
func (c *Capture) byCounter(own float64) Counted {
	looks, reason := c.counterLooks()
	if reason != "" {
		return Counted{Reason: reason}
	}
	first, last := looks[0], looks[len(looks)-1]
	grown := last.GenerationTokens.V - first.GenerationTokens.V
	share := c.Span().Seconds() / (last.At - first.At).Seconds()
	all := Counted{Tokens: stat.Some(grown * share)}
	if c.stepwise(looks) || first.rests() && last.rests() {
		return all
	}
	if steps := last.SequenceSteps.V - first.SequenceSteps.V; first.SequenceSteps.OK && last.SequenceSteps.OK && steps > max(own, 0) {
		return Counted{Tokens: stat.Some(steps * share), Estimate: true, Note: bySteps}
	}
	if grown <= 0 {
		return Counted{Reason: "the counter did not move while " + ranAtMost(looks) + c.howItCounts() + observeLonger}
	}
	steps := growths(looks)
	if !first.Running.OK || !last.Running.OK {
		if len(steps) < leastGauges {
			return Counted{Reason: fmt.Sprintf("the counter moved %s, and the server does not say whether requests ran at the begin%s%s", howOften(len(steps)), c.howItCounts(), observeLonger)}
		}
		all.Estimate, all.Note = true, "the counter moves when a request ends, and the server does not say how many ran at the begin and at the end"
		return all
	}
	earlier := min(grown, largest(growths(untilRest(looks)), first.Running.V))
	low, high := max(own, grown-earlier), grown+largest(steps, last.Running.V)
	if grown <= own || low <= own {
		return Counted{Reason: fmt.Sprintf("the counter moved %s, by %s in all, and %s ran at the begin, so that all of it may have come before%s%s",
			howOften(len(steps)), plural(grown, "token"), plural(first.Running.V, "request"), c.howItCounts(), observeLonger)}
	}
	perSecond := 1 / (last.At - first.At).Seconds()
	all.Estimate = true
	all.Note = fmt.Sprintf("%s to %s tok/s: the counter moves when a request ends, and %s ran at the begin, %s at the end",
		figure.Significant(low*perSecond), figure.Significant(high*perSecond), figure.Whole(first.Running.V), figure.Whole(last.Running.V))
	return all
}

// bySteps says what an estimate is of that does not go by the counter.
const bySteps = "a token for each request in each step of the server, since its counter of tokens moves when a request ends"

const observeLonger = "; observe for longer than a request"

// howItCounts is why a counter that stands still says nothing.
func (c *Capture) howItCounts() string {
	if c.Counting == AtEnd {
		return ": this engine counts when a request ends"
	}
	return ": this engine may count when a request ends"
}

// counterLooks are the looks at the server's counter, in order; none, with the reason,
// where they make no growth.
func (c *Capture) counterLooks() (looks []*PageSample, reason string) {
	if len(c.Pages) == 0 {
		return nil, "the server's metrics were not read"
	}
	failed := ""
	for i := range c.Pages {
		p := &c.Pages[i]
		if failed = cmp.Or(failed, p.Error); p.Error == "" && p.GenerationTokens.OK {
			looks = append(looks, p)
		}
	}
	switch {
	case len(looks) == 0:
		return nil, cmp.Or(failed, "the server does not count its tokens")
	case len(looks) == 1 || looks[len(looks)-1].At <= looks[0].At:
		return nil, "the server's counter was read at one moment only"
	case !slices.IsSortedFunc(looks, func(a, b *PageSample) int { return cmp.Compare(a.GenerationTokens.V, b.GenerationTokens.V) }):
		return nil, "the server's counter fell during the run: was the server restarted?"
	}
	return looks, ""
}

// stepwise tells whether the counter moves with each step of the engine: where that is
// not known of it, because it moved between all looks of the run at which requests ran.
func (c *Capture) stepwise(looks []*PageSample) bool {
	if c.Counting != "" {
		return c.Counting == EachStep
	}
	moved := 0
	for i := 1; i < len(looks); i++ {
		a, b := looks[i-1], looks[i]
		if a.At >= c.End || b.At <= c.Begin || !a.runs() || !b.runs() {
			continue
		}
		if b.GenerationTokens.V <= a.GenerationTokens.V {
			return false
		}
		moved++
	}
	return moved >= leastGauges
}

// runs tells that requests run, rests that none does; neither of a page without the
// gauge.
func (p *PageSample) runs() bool  { return p.Running.V > 0 }
func (p *PageSample) rests() bool { return p.Running.OK && p.Running.V <= 0 }

// untilRest are the looks up to the first at which nothing ran: what was counted later
// is of requests that began in the run.
func untilRest(looks []*PageSample) []*PageSample {
	if i := slices.IndexFunc(looks, (*PageSample).rests); i >= 0 {
		return looks[:i+1]
	}
	return looks
}

// growths are the steps of the counter from look to look, without those of nothing.
func growths(looks []*PageSample) []float64 {
	var list []float64
	for i := 1; i < len(looks); i++ {
		if by := looks[i].GenerationTokens.V - looks[i-1].GenerationTokens.V; by > 0 {
			list = append(list, by)
		}
	}
	return list
}

// largest is the sum of the n largest values: as much as n requests can have had, each
// of which is in one step.
func largest(steps []float64, n float64) float64 {
	list := slices.Clone(steps)
	slices.SortFunc(list, func(a, b float64) int { return cmp.Compare(b, a) })
	sum := 0.0
	for _, v := range list[:int(min(math.Ceil(n), float64(len(list))))] {
		sum += v
	}
	return sum
}

// ranAtMost says how many requests ran: "1 request ran", "up to 4 requests ran".
func ranAtMost(looks []*PageSample) string {
	most, known := 0.0, false
	for _, p := range looks {
		most, known = max(most, p.Running.V), known || p.Running.OK
	}
	switch {
	case !known:
		return "requests may have run"
	case most <= 1:
		return "1 request ran"
	}
	return "up to " + plural(most, "request") + " ran"
}

func plural(n float64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figure.Whole(n) + " " + what + "s"
}

func howOften(n int) string {
	if n == 1 {
		return "once"
	}
	return figure.Whole(float64(n)) + " times"
}

// Rate is the output in tokens per second between two looks at the server's counter.
type Rate struct {
	From, To  time.Duration
	PerSecond float64
}

// CounterRates are the output by the server's own counter over time, as far as it tells
// it: of a counter that moves when a request ends, by the server's steps, where it counts
// these, which is an estimate, else only what began after a look at which
// nothing ran, or, where requests run one at a time, after the one before. The rest is
// not known.
func (c *Capture) CounterRates() (rates []Rate, estimate bool) {
	if c.stepwise(c.pagesWithCounter()) {
		return c.steadyRates(generationTokens), false
	}
	if rates := c.steadyRates(func(p *PageSample) stat.Opt { return p.SequenceSteps }); len(rates) > 0 {
		return rates, true
	}
	return c.ratesOfWhole(), false
}

// ratesOfWhole are those of a counter that moves when a request ends.
func (c *Capture) ratesOfWhole() []Rate {
	var out []Rate
	var from, before *PageSample // from: the look since which all that is counted was begun
	for _, p := range c.pagesWithCounter() {
		switch {
		case before == nil, p.GenerationTokens.V < before.GenerationTokens.V || p.At <= before.At:
			from = nil
		case p.GenerationTokens.V > before.GenerationTokens.V && from != nil:
			out = append(out, between(from, p, generationTokens))
			from = nil
		case p.rests() && before.rests():
			out = append(out, between(before, p, generationTokens))
		}
		grew := before != nil && p.GenerationTokens.V > before.GenerationTokens.V
		if p.rests() || grew && p.Running.OK && p.Running.V <= 1 && before.Running.OK && before.Running.V <= 1 {
			from = p
		}
		before = p
	}
	return out
}

// steadyRates are those of a number between neighbouring looks.
func (c *Capture) steadyRates(of func(*PageSample) stat.Opt) []Rate {
	var out []Rate
	var before *PageSample
	for i := range c.Pages {
		p := &c.Pages[i]
		if p.Error != "" || !of(p).OK {
			continue
		}
		if before != nil && p.At > before.At && of(p).V >= of(before).V {
			out = append(out, between(before, p, of))
		}
		before = p
	}
	return out
}

func generationTokens(p *PageSample) stat.Opt { return p.GenerationTokens }

func between(a, b *PageSample, of func(*PageSample) stat.Opt) Rate {
	return Rate{a.At, b.At, (of(b).V - of(a).V) / (b.At - a.At).Seconds()}
}

func (c *Capture) pagesWithCounter() []*PageSample {
	var out []*PageSample
	for i := range c.Pages {
		if p := &c.Pages[i]; p.Error == "" && p.GenerationTokens.OK {
			out = append(out, p)
		}
	}
	return out
}
