package page

import "github.com/rooftop-dev/rooftop/engine/figure"

// maxPercentRatio is the largest relative change written as a percentage. Above it, figures such
// as +51,282 % are hard to read.
const maxPercentRatio = 10

// ChangeOrMultiple formats a relative change: in percent, or as a multiple if it is large.
func ChangeOrMultiple(change float64) string {
	if change > maxPercentRatio {
		return "×" + figure.Significant(1+change)
	}
	return figure.ChangeSign(change)
}

// ChangeRange formats an interval of relative changes: in percent, or as multiples if it reaches large ones.
func ChangeRange(low, high float64) string {
	if high <= maxPercentRatio {
		return figure.ChangeRange(low, high)
	}
	from, to := ChangeOrMultiple(low), ChangeOrMultiple(high)
	if from == to {
		return to
	}
	return from + " to " + to
}
