package proberun

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// pageEvery is how often the server's metrics are read. Rendering them takes milliseconds of vLLM's
// event loop, and a probe needs only their values at its start and end.
const pageEvery = time.Second

// pagePace reads a server's metrics at a rate that does not disturb the server.
type pagePace struct {
	page  *enginepage.Totals
	clock func() time.Duration
	pacer enginepage.Pacer
}

func newPagePace(page *enginepage.Totals, clock func() time.Duration) *pagePace {
	return &pagePace{page: page, clock: clock, pacer: enginepage.Pacer{Base: pageEvery}}
}

// Sample reads the page once.
func (p *pagePace) Sample(ctx context.Context) capture.PageSample {
	s := p.page.Sample(ctx, p.clock)
	if s.Error == "" {
		p.pacer.Observe(s.Took)
	}
	return s
}

// Interval returns the time from one read to the next.
func (p *pagePace) Interval() time.Duration { return p.pacer.Interval() }
