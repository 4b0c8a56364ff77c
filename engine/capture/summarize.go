package capture

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Summarize returns all figures of a capture. m may lack Facts if nothing is known.
func Summarize(c *Capture, m Machine) *Summary {
	if m.Facts == nil {
		nothing := facts.Resolve(facts.Inputs{})
		m.Facts = &nothing
	}
	s := &Summary{Span: c.Span()}
	tokens := c.observedTokens()
	if c.Kind == Probe {
		tokens = c.tokens()
		s.Requests = c.requestsSummary()
	}
	s.Tree = c.Tree.Usage(c.Begin, c.End)
	s.GPUs = c.gpuUsage()
	s.Energy = c.totalEnergy(s.GPUs)
	d := c.derive(tokens, s.GPUs, s.Energy, m)
	s.Derived = d.list
	s.Sizing = d.sizing(m.Cards)
	s.Warnings = slices.Concat(processWarnings(c), endings(c), starvation(c, s.Tree))
	return s
}

// observedTokens returns the tokens of an observation by the server's counter.
func (c *Capture) observedTokens() Tokens {
	t := Tokens{From: fromServer, Used: c.Counted().Tokens}
	t.Counter, _ = c.pageGrowth(func(p *PageSample) stat.Opt { return p.GenerationTokens })
	return t
}
