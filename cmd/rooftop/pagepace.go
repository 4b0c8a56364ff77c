package main

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/collect/witness"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// pageEvery is how often the server's own metrics are read. Rendering them takes
// milliseconds of a vLLM's event loop, and a probe needs them for what they counted
// from its start to its end.
const pageEvery = time.Second

// pagePace reads a server's metrics no more often than rendering them allows.
type pagePace struct {
	page  *witness.Witness
	clock func() time.Duration
	pacer vllm.Pacer
}

func newPagePace(page *witness.Witness, clock func() time.Duration) *pagePace {
	return &pagePace{page: page, clock: clock, pacer: vllm.Pacer{Base: pageEvery}}
}

// Sample reads the page once.
func (p *pagePace) Sample(ctx context.Context) capture.PageSample {
	s := p.page.Sample(ctx, p.clock)
	if s.Error == "" {
		p.pacer.Observe(s.Took)
	}
	return s
}

// Interval is how long to wait from one read to the next.
func (p *pagePace) Interval() time.Duration { return p.pacer.Interval() }
