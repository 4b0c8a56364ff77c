package engine

import (
	"fmt"
	"strings"
	"time"
)

const (
	// leastWindows is how many judged windows, and how many with load, "healthy"
	// needs: as many as a rule needs to count.
	leastWindows = 3
	// doubtfulQueue is the share of waiting requests, R5's own, from which a
	// server is not healthy as long as nothing explains the queue.
	doubtfulQueue = 0.30
	// lostScrapes is the share of failed scrapes from which a run says too little
	// of a server to call it healthy.
	lostScrapes = 0.25
	// deadFor is how long a server must not have answered at the end of a run to
	// be called dead.
	deadFor = 2 * time.Second
)

// outcome is the answer in one word, and what it leaves open. Healthy is the
// strongest claim of all and has to be earned: enough windows, a server that
// answers to the end, and no queue whose cause is unknown.
func outcome(d *Diagnosis, r *Run, load bool) (Outcome, string) {
	a := &r.Agg
	switch {
	case d.Windows.Evaluable == 0:
		return OutcomeNotEvaluable, ""
	case d.Recommendation != nil:
		return OutcomeRecommendation, silence(d, r)
	}
	if why := silence(d, r); why != "" {
		return OutcomeNotEvaluable, why
	}
	switch {
	case !load && asleep(r.Windows):
		return OutcomeNoLoad, "the engine sleeps or is paused: wake it, then measure under load"
	case !load:
		return OutcomeNoLoad, ""
	case a.Working == 0:
		return OutcomeNotEvaluable, "requests were in, and in no window was the server seen working"
	case d.Windows.Evaluable < leastWindows:
		return OutcomeNotEvaluable, fmt.Sprintf("only %d of %d windows could be judged: too few to call the server healthy", d.Windows.Evaluable, d.Windows.Collected)
	case a.Working < leastWindows:
		return OutcomeNotEvaluable, fmt.Sprintf("the server worked in only %d of %d windows: too few to call it healthy", a.Working, d.Windows.Collected)
	}
	if why := d.queue(a); why != "" {
		return OutcomeNotEvaluable, why
	}
	var open []string
	for _, id := range [...]FindingID{UnderBatching, KVPressure, SeatSaturation} {
		if f := d.finding(id); f != nil && f.State == NotEvaluable {
			open = append(open, fmt.Sprintf("%s (%s)", id, f.Reason))
		}
	}
	if len(open) > 0 {
		return OutcomeHealthy, "not judged: " + strings.Join(open, ", ")
	}
	return OutcomeHealthy, ""
}

// silence says that the server was silent for so much of the run, or at its
// end, that what was measured does not speak for it; "" where it answered.
func silence(d *Diagnosis, r *Run) string {
	a := &r.Agg
	if a.Failed == 0 {
		return ""
	}
	last := time.Duration(0)
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Polls > 0 {
			last = w.Start + w.Duration
		}
	}
	why := ""
	if a.LastErr != "" {
		why = " (" + a.LastErr + ")"
	}
	if final := r.Windows[len(r.Windows)-1]; final.Failed > 0 && d.Duration-last >= deadFor {
		return fmt.Sprintf("the server stopped answering after %.1f s%s", last.Seconds(), why)
	}
	if float64(a.Failed) > lostScrapes*float64(a.Ticks) {
		return fmt.Sprintf("%d of %d scrapes failed%s: what was measured does not speak for the server", a.Failed, a.Ticks, why)
	}
	return ""
}

// queue says why a queue that nothing explains keeps a server from being called
// healthy; "" where there is none, or a significant finding accounts for it.
func (d *Diagnosis) queue(a *Aggregate) string {
	share := a.Waiting.Div(a.Running.Plus(a.Waiting))
	if share.Or(0) < doubtfulQueue {
		return ""
	}
	part := fmt.Sprintf("%.0f %% of the requests wait", 100*share.V)
	if seats := d.finding(SeatSaturation); seats != nil && seats.State == NotEvaluable {
		why := part + ", and whether the seats are the limit cannot be told: " + seats.Reason
		for _, e := range seats.Evidence {
			why += "; " + e.Text
		}
		return why
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.State == Fired && f.Significant && (f.Group == GroupMemory || f.Group == GroupSeats || f.Group == GroupHost) {
			return ""
		}
	}
	if a.Deferred.Or(0) >= a.Waiting.V/2 {
		return part + ", deferred by the scheduler: they wait for a KV transfer, a grammar or a LoRA slot, which no flag of capacity gives"
	}
	return part + " although seats and KV pool have room: look at LoRA slots (--max-loras), --long-prefill-token-threshold, priorities, and what the server's log says of scheduling"
}

func asleep(windows []Window) bool {
	for i := range windows {
		if windows[i].Asleep {
			return true
		}
	}
	return false
}
