package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// progress is the one line that a person who waits sees on stderr, where that
// is a terminal. Scripts see nothing of it.
type progress struct {
	w     *world
	width int
	on    bool
	last  time.Duration
	rate  stat.Opt
}

func newProgress(w *world, o *output) *progress {
	width, tty := terminal(w.stderr)
	return &progress{w: w, width: width, on: tty && !o.plain}
}

func (p *progress) update(s *session.Progress) {
	if !p.on {
		return
	}
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
		text += fmt.Sprintf("  %s running  %s waiting  KV %s", whole(page.Gauges[engine.GaugeRunning]),
			whole(page.Gauges[engine.GaugeWaiting]), percent(page.KVUsageMax))
		if p.rate.OK {
			text += fmt.Sprintf("  %.0f tok/s", p.rate.V)
		}
	}
	p.put(text)
}

// say puts a text in the line's place.
func (p *progress) say(text string) {
	if p.on {
		p.put(text)
	}
}

// done clears the line for good: hands go on telling their steps while a screen has
// the terminal.
func (p *progress) done() {
	if p.on {
		p.put("")
	}
	p.on = false
}

func (p *progress) put(text string) {
	if r := []rune(text); len(r) >= p.width {
		text = string(r[:max(0, p.width-1)])
	}
	fmt.Fprint(p.w.stderr, "\r\x1b[K"+strings.ReplaceAll(text, "\n", " "))
}

func whole(v stat.Opt) string {
	if !v.OK {
		return "-"
	}
	return fmt.Sprintf("%.0f", v.V)
}

func percent(v stat.Opt) string {
	if !v.OK {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*v.V)
}
