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

// Counting is when a server's counter of output tokens changes. If it is "", the samples have to
// show it.
type Counting string

// Values of Counting.
const (
	EachStep Counting = "each step"      // as tokens are generated
	AtEnd    Counting = "end of request" // when a request ends, by all its tokens
)

// Counted is the output of all clients of a server during a run, by the server's own counter.
type Counted struct {
	// Tokens are scaled to the length of the run, because the counter is sampled around it. They
	// are absent, with the Reason, if the counter does not show the output of the run.
	Tokens stat.Opt
	// Estimate reports that some Tokens were generated before the run, or that some of the run's
	// tokens are missing. Note then has the bounds.
	Estimate     bool
	Note, Reason string
}

// Counted returns the output during the run by the server's counter.
func (c *Capture) Counted() Counted { return c.byCounter(0) }

// byCounter returns the output during the run by the server's counter, given that at least own
// tokens were generated during the run.
//
// A counter that changes with each engine step counts the tokens between two samples. One that
// changes at the end of requests does so only if no request ran at the first or the last sample:
// otherwise a part of what it counts was generated before, and the output of running requests is
// missing.
func (c *Capture) byCounter(own float64) Counted {
	looks, reason := counterLooks(c)
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
		return Counted{Reason: "the counter did not change while " + ranAtMost(looks) + howItCounts(c) + observeLonger}
	}
	steps := growths(looks)
	if !first.Running.OK || !last.Running.OK {
		if len(steps) < leastGauges {
			return Counted{Reason: fmt.Sprintf("the counter moved %s, and the server does not report whether requests were running at the start%s%s", howOften(len(steps)), howItCounts(c), observeLonger)}
		}
		all.Estimate, all.Note = true, "the counter changes when a request ends, and the server does not report how many were running at the start and at the end"
		return all
	}
	earlier := min(grown, largest(growths(untilRest(looks)), first.Running.V))
	low, high := max(own, grown-earlier), grown+largest(steps, last.Running.V)
	if grown <= own || low <= own {
		return Counted{Reason: fmt.Sprintf("the counter moved %s, by %s in total, with %s in flight at the start: all of it may predate the run%s%s",
			howOften(len(steps)), figure.Counted(grown, "token"), figure.Counted(first.Running.V, "request"), howItCounts(c), observeLonger)}
	}
	perSecond := 1 / (last.At - first.At).Seconds()
	all.Estimate = true
	all.Note = fmt.Sprintf("%s to %s tok/s: the counter changes when a request ends; %s in flight at the start, %s at the end",
		figure.Significant(low*perSecond), figure.Significant(high*perSecond), figure.Whole(first.Running.V), figure.Whole(last.Running.V))
	return all
}

// bySteps describes an estimate that does not use the counter.
const bySteps = "one token per request and engine step, because the server's token counter changes only when a request ends"

const observeLonger = "; observe for longer than a request"

// howItCounts explains why an unchanged counter does not show the output.
func howItCounts(c *Capture) string {
	if c.Counting == AtEnd {
		return ": this engine counts when a request ends"
	}
	return ": this engine may count when a request ends"
}

// counterLooks returns the samples with the server's counter, in order. If they show no growth, it
// returns none, and the reason.
func counterLooks(c *Capture) (looks []*PageSample, reason string) {
	if len(c.Pages) == 0 {
		return nil, "the server's metrics were not read"
	}
	looks = pagesWithCounter(c)
	switch {
	case len(looks) == 0:
		failed := slices.IndexFunc(c.Pages, func(p PageSample) bool { return p.Error != "" })
		if failed >= 0 {
			return nil, c.Pages[failed].Error
		}
		return nil, "the server does not count its tokens"
	case len(looks) == 1 || looks[len(looks)-1].At <= looks[0].At:
		return nil, "the server's counter was read only once"
	case !slices.IsSortedFunc(looks, func(a, b *PageSample) int { return cmp.Compare(a.GenerationTokens.V, b.GenerationTokens.V) }):
		return nil, "the server's counter fell during the run: was the server restarted?"
	}
	return looks, ""
}

// stepwise reports whether the counter changes with each engine step. If c.Counting does not say,
// the counter must have changed between all samples of the run with running requests.
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

// runs reports whether requests were running, and rests whether none was. Both are false without
// the gauge.
func (p *PageSample) runs() bool  { return p.Running.V > 0 }
func (p *PageSample) rests() bool { return p.Running.OK && p.Running.V <= 0 }

// untilRest returns the samples up to the first without running requests. Everything counted later
// belongs to requests that began in the run.
func untilRest(looks []*PageSample) []*PageSample {
	if i := slices.IndexFunc(looks, (*PageSample).rests); i >= 0 {
		return looks[:i+1]
	}
	return looks
}

// growths returns the increases of the counter between samples, without zeros.
func growths(looks []*PageSample) []float64 {
	var list []float64
	for i := 1; i < len(looks); i++ {
		if by := looks[i].GenerationTokens.V - looks[i-1].GenerationTokens.V; by > 0 {
			list = append(list, by)
		}
	}
	return list
}

// largest returns the sum of the n largest steps: the maximum output of n requests, because each
// request is counted in one step.
func largest(steps []float64, n float64) float64 {
	list := slices.Clone(steps)
	slices.SortFunc(list, func(a, b float64) int { return cmp.Compare(b, a) })
	sum := 0.0
	for _, v := range list[:int(min(math.Ceil(n), float64(len(list))))] {
		sum += v
	}
	return sum
}

// ranAtMost describes how many requests ran: "1 request ran", "up to 4 requests ran".
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
	return "up to " + figure.Counted(most, "request") + " ran"
}

func howOften(n int) string {
	if n == 1 {
		return "once"
	}
	return figure.Whole(float64(n)) + " times"
}

// Rate is the output in tokens per second between two samples of the server's counter.
type Rate struct {
	From, To  time.Duration
	PerSecond float64
}

// CounterRates returns the output over time by the server's counter, where it is known. For a
// counter that changes when a request ends, the rates come from the server's count of steps, if
// there is one, and are an estimate. Otherwise they cover only output that began after a sample
// without running requests or, if requests run one at a time, after the previous request.
func (c *Capture) CounterRates() (rates []Rate, estimate bool) {
	if c.stepwise(pagesWithCounter(c)) {
		return c.steadyRates(generationTokens), false
	}
	if rates := c.steadyRates(func(p *PageSample) stat.Opt { return p.SequenceSteps }); len(rates) > 0 {
		return rates, true
	}
	return c.ratesOfWhole(), false
}

// ratesOfWhole returns the rates of a counter that changes when a request ends.
func (c *Capture) ratesOfWhole() []Rate {
	var out []Rate
	var from, before *PageSample // from: the sample after which all that is counted began
	for _, p := range pagesWithCounter(c) {
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

// steadyRates returns the rates of a number between successive samples.
func (c *Capture) steadyRates(value func(*PageSample) stat.Opt) []Rate {
	var out []Rate
	var before *PageSample
	for _, p := range c.pagesWith(value) {
		if before != nil && p.At > before.At && value(p).V >= value(before).V {
			out = append(out, between(before, p, value))
		}
		before = p
	}
	return out
}

func generationTokens(p *PageSample) stat.Opt { return p.GenerationTokens }

func between(a, b *PageSample, value func(*PageSample) stat.Opt) Rate {
	return Rate{a.At, b.At, (value(b).V - value(a).V) / (b.At - a.At).Seconds()}
}

func pagesWithCounter(c *Capture) []*PageSample { return c.pagesWith(generationTokens) }

// pagesWith returns the pages that have a number.
func (c *Capture) pagesWith(value func(*PageSample) stat.Opt) []*PageSample {
	var out []*PageSample
	for i := range c.Pages {
		if p := &c.Pages[i]; p.Error == "" && value(p).OK {
			out = append(out, p)
		}
	}
	return out
}
