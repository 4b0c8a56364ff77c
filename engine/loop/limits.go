package loop

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// budget tracks the use of the limits of an automatic run.
type budget struct {
	plan *Plan
	*recorder

	used     Limits        // the amounts used
	longest  time.Duration // longest outage around a restart by rooftop
	restarts int           // observed or made by rooftop
	rounds   int           // changes made by rooftop
}

// countRestart counts a restart of the server with its outage.
func (b *budget) countRestart(outage time.Duration, own bool) {
	b.restarts++
	b.used.UsedOutages += outage
	if own {
		b.longest = max(b.longest, outage)
	}
}

// limits returns the plan's limits with the amounts used.
func (b *budget) limits() Limits {
	m := b.plan.Limits
	m.UsedStarts, m.UsedOutages = b.used.UsedStarts, b.used.UsedOutages
	return m
}

// exhaustedLimit returns which limit prevents another change, or "". A change requires the restarts
// and the downtime for both itself and its revert.
func (b *budget) exhaustedLimit() string {
	m, used := &b.plan.Limits, &b.used
	if m.Restarts > 0 && used.UsedStarts+2 > m.Restarts {
		return fmt.Sprintf("no restart is left for another change and its revert: %d of %d were used", used.UsedStarts, m.Restarts)
	}
	if m.Downtime <= 0 || b.startAllowance() >= b.assumedDowntime() {
		return ""
	}
	takes := "no server starts within " + figure.Elapsed(leastStart)
	if known := b.longestKnownRestart(); known > 0 {
		takes = "restarts of this server took up to " + figure.Elapsed(known)
	}
	return fmt.Sprintf("no downtime is left for a change and its revert: %s of %v was used, and %s", figure.Elapsed(used.UsedOutages), m.Downtime, takes)
}

// leastStart is shorter than any start of vLLM: importing it alone takes longer.
const leastStart = 5 * time.Second

// longestKnownRestart returns the longest known outage around a restart: of this run, including
// failed starts with their revert, or of earlier runs. It is 0 if none is known.
func (b *budget) longestKnownRestart() time.Duration { return max(b.plan.Start, b.longest) }

// assumedDowntime returns the downtime to assume for a restart, at least.
func (b *budget) assumedDowntime() time.Duration {
	return cmp.Or(b.longestKnownRestart(), leastStart)
}

// startAllowance returns how long the server may be down until a change has started, so that its
// revert still fits into the allowed downtime: half of what is left if the duration of a start
// is unknown. It is negative if nothing is left, and 0 without a limit.
func (b *budget) startAllowance() time.Duration {
	m := &b.plan.Limits
	if m.Downtime <= 0 {
		return 0
	}
	left := m.Downtime - b.used.UsedOutages
	if known := b.longestKnownRestart(); known > 0 {
		return left - known
	}
	return left / 2
}

// restartsLeft returns the remaining restarts, or a negative number without a limit.
func (b *budget) restartsLeft() int {
	m := b.plan.Limits
	if m.Restarts <= 0 {
		return -1
	}
	return max(0, m.Restarts-b.used.UsedStarts)
}

// restartLeft reports whether the limits allow another restart.
func (b *budget) restartLeft() bool {
	most := b.plan.Limits.Restarts
	return !b.plan.Auto || most == 0 || b.used.UsedStarts < most
}
