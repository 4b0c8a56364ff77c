package engine

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Sentence returns the deciding condition as text, with the figure and its limit: "queue ratio
// 12 % < 30 %", "prefill saturated at 55 %".
func (c Check) Sentence() string {
	if !c.Figure.OK {
		return c.Why
	}
	unit := c.Unit
	if unit == "req" {
		unit = "" // the reason names the requests
	}
	if c.State == Suppressed || c.Op == "" || !c.Limit.OK {
		return c.Why + " " + figure.Value(c.Figure.V, unit)
	}
	value, limit := figure.Compared(c.Figure.V, c.Limit.V, unit)
	return strings.Join([]string{c.Why, value, figure.Operator(c.Op), limit}, " ")
}
