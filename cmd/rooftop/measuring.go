package main

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// measuring shows the progress of a measurement on the progress line.
type measuring struct {
	*cli.Progress
	last time.Duration
	rate stat.Opt
}

func (p *measuring) update(s *session.Progress) {
	if s.Window != nil {
		p.rate = s.Window.Rate[engine.CounterGenerationTokens]
	} else if s.Elapsed-p.last < time.Second/2 {
		return
	}
	p.last = s.Elapsed
	text := fmt.Sprintf("measuring %2.0f/%.0f s", s.Elapsed.Seconds(), s.Duration.Seconds())
	switch page := s.Sample.Page; {
	case page == nil:
		text += "  no answer: " + s.Sample.PageErr
	default:
		text += fmt.Sprintf("  %s running  %s waiting  KV %s", optional("%.0f", page.Gauges[engine.GaugeRunning], 1),
			optional("%.0f", page.Gauges[engine.GaugeWaiting], 1), optional("%.0f %%", page.KVUsageMax, 100))
		if p.rate.OK {
			text += fmt.Sprintf("  %.0f tok/s", p.rate.V)
		}
	}
	p.Show(text)
}

// optional formats a number times a factor, or its absence.
func optional(format string, v stat.Opt, times float64) string {
	if !v.OK {
		return "-"
	}
	return fmt.Sprintf(format, times*v.V)
}
