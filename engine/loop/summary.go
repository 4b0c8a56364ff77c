package loop

import (
	"cmp"
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Summary returns the result of the comparison of answers as a sentence. changed reports whether answers
// differ.
func (c *AnswerCheck) Summary() (text string, changed bool) {
	switch {
	case c == nil:
		return "", false
	case c.Why != "" || c.Prompts <= 0:
		return "answers not compared: " + cmp.Or(c.Why, "there were none"), false
	}
	text = fmt.Sprintf("%d of %d answers are the same", c.Same, c.Prompts)
	if c.Drift.OK {
		text += fmt.Sprintf(", log probabilities differ by %.3g on average", c.Drift.V)
	}
	return text, c.Same < c.Prompts
}

// Summary returns the score in words, or "" if no outcome was measured.
func (s Score) Summary() string {
	if s.Made <= 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d predictions were within range", s.Within, s.Made)
	if s.Error.OK && !math.IsNaN(s.Error.V) {
		text += ", median error " + figure.Percent(s.Error.V) + figure.NBSP + "%"
	}
	return text
}

// Summary returns how much of the limits was used: "2 of 5 restarts, 40 s of 10 min down".
func (m Limits) Summary() string {
	restarts := fmt.Sprintf("%d", m.UsedStarts)
	if m.Restarts > 0 {
		restarts += fmt.Sprintf(" of %d", m.Restarts)
	}
	word := " restarts"
	if restarts == "1" {
		word = " restart"
	}
	down := figure.Elapsed(m.UsedOutages)
	if m.Downtime > 0 {
		down += " of " + figure.Elapsed(m.Downtime)
	}
	return restarts + word + ", " + down + " down"
}
