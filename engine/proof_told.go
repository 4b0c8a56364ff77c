package engine

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Told says what the answers to fixed prompts show; changed says that some differ.
func (c *Canary) Told() (text string, changed bool) {
	switch {
	case c == nil:
		return "", false
	case c.Why != "" || c.Prompts <= 0:
		return "answers not compared: " + cmp.Or(c.Why, "none was given"), false
	}
	text = fmt.Sprintf("%d of %d answers are the same", c.Same, c.Prompts)
	if c.Drift.OK {
		text += fmt.Sprintf(", log probabilities drift by %.3g", c.Drift.V)
	}
	return text, c.Same < c.Prompts
}

// Told is the score in words, "" where no prediction's outcome was measured.
func (s Score) Told() string {
	if s.Made <= 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d predictions held", s.Within, s.Made)
	if s.Error.OK && !math.IsNaN(s.Error.V) {
		text += ", median error " + figure.Percent(s.Error.V) + figure.NBSP + "%"
	}
	return text
}

// Told says how much of the limits is used up: "2 of 5 restarts, 40 s of 10 min down".
func (m Limits) Told() string {
	restarts := fmt.Sprintf("%d", m.UsedStarts)
	if m.Restarts > 0 {
		restarts += fmt.Sprintf(" of %d", m.Restarts)
	}
	word := " restarts"
	if restarts == "1" {
		word = " restart"
	}
	down := SpellTime(m.UsedOutages)
	if m.Downtime > 0 {
		down += " of " + SpellTime(m.Downtime)
	}
	text := restarts + word + ", " + down + " down"
	if m.From != m.To {
		text += ", only from " + ofDay(m.From) + " to " + ofDay(m.To)
	}
	return text
}

func ofDay(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d/time.Hour)%24, int(d/time.Minute)%60)
}

// SpellTime spells a length of time in whole units: 12 s, 4 min 12 s, 2 h 5 min.
func SpellTime(d time.Duration) string {
	s := int(max(d, 0).Round(time.Second) / time.Second)
	part := func(n int, unit string) string { return fmt.Sprintf("%d%s%s", n, figure.NBSP, unit) }
	switch {
	case s < 60:
		return part(s, "s")
	case s < 3600 && s%60 == 0:
		return part(s/60, "min")
	case s < 3600:
		return part(s/60, "min") + figure.NBSP + part(s%60, "s")
	case s%3600 < 60:
		return part(s/3600, "h")
	}
	return part(s/3600, "h") + figure.NBSP + part(s/60%60, "min")
}
