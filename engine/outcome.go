package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

const (
	// LeastWindows is the number of judged windows, and of windows with load, needed for
	// "healthy": the same that a rule needs to be significant.
	LeastWindows = 3
	// doubtfulQueue is the share of waiting requests, from R5, above which a server is not
	// healthy unless a finding explains the queue.
	doubtfulQueue = 0.30
	// explainingShare is the share of the windows in which a finding that is not significant must have
	// fired to be named as a possible cause of a queue.
	explainingShare = 0.10
	// doubtfulStall is the time without a token at the end from which a run of few windows at work
	// is uncertain.
	doubtfulStall = 2 * WindowLength
	// lostShare is the share of failed scrapes, or of time in which the engine was hung, above
	// which a run does not represent the server.
	lostShare = 0.25
)

// outcome returns the result in one word, and the doubt that it leaves. Healthy is the
// strongest claim and requires enough windows, a server that answers to the end, and no
// unexplained queue.
func outcome(d *Diagnosis, r *Run, load bool) (Outcome, string) {
	a := &r.Agg
	switch {
	case d.Condition.Ill():
		return OutcomeUnhealthy, ""
	case d.Windows.Evaluable == 0:
		return OutcomeNotEvaluable, ""
	case d.Recommendation != nil:
		return OutcomeRecommendation, unrepresentative(r)
	}
	if why := unrepresentative(r); why != "" {
		return OutcomeNotEvaluable, why
	}
	switch {
	case !load && asleep(r.Windows):
		return OutcomeNoLoad, "the engine sleeps or is paused: wake it, then measure under load"
	case !load:
		if e := endingsOf(r.Windows, r.Facts); e.invalid > e.answered {
			return OutcomeNoLoad, "no request reaches the engine: " + e.perSecond(e.invalid) + " a second are refused as invalid (4xx); the server's log says why"
		}
		return OutcomeNoLoad, ""
	case silentFor(r.Windows) > 0:
		return OutcomeNotEvaluable, fmt.Sprintf("no tokens generated for %s at the end, with requests in the server: it may be hung, but only %s without tokens confirm it", figure.Elapsed(silentFor(r.Windows)), figure.Elapsed(HungMinimum))
	case a.Working == 0:
		return OutcomeNotEvaluable, "requests were in the server, but no window shows it working"
	case d.Windows.Evaluable < LeastWindows:
		return OutcomeNotEvaluable, fmt.Sprintf("only %d of %d windows could be judged: too few to call the server healthy", d.Windows.Evaluable, d.Windows.Collected)
	case a.Working < LeastWindows:
		return OutcomeNotEvaluable, fmt.Sprintf("the server worked in only %d of %d windows: too few to call it healthy", a.Working, d.Windows.Collected)
	}
	if why := d.unexplainedQueue(a); why != "" {
		return OutcomeNotEvaluable, why
	}
	var open []string
	first, unjudged := [...]FindingID{UnderBatching, KVPressure, ConcurrencySaturation}, 0
	for _, id := range first {
		switch f := d.Finding(id); {
		case f == nil:
		case f.State == NotEvaluable:
			unjudged++
			open = append(open, fmt.Sprintf("%s (%s)", id, f.Reason))
		case f.Undecided():
			open = append(open, fmt.Sprintf("%s in %d of %d windows (needs %s)", id, f.Evaluable-f.Judged, f.Evaluable, strings.Join(f.Missing, ", ")))
		}
	}
	switch {
	case unjudged == len(first):
		return OutcomeNotEvaluable, "none of the main rules could be judged: " + strings.Join(open, ", ")
	case len(open) > 0:
		return OutcomeHealthy, "not judged: " + strings.Join(open, ", ")
	}
	return OutcomeHealthy, ""
}

// silentFor returns how long no token had been generated at the end of a run, with requests in the server; 0 where that
// is short, no longer than a step took, or the run has enough windows in which tokens were.
func silentFor(windows []Window) time.Duration {
	if len(windows) == 0 {
		return 0
	}
	moved := 0
	for i := range windows {
		if w := &windows[i]; w.Active || w.Delta[CounterGenerationTokens].Or(0) > 0 {
			moved++
		}
	}
	last := &windows[len(windows)-1]
	if moved >= LeastWindows || !(last.Running.Or(0) > 0) || last.Stall < max(doubtfulStall, last.LongestStep) {
		return 0
	}
	return last.Stall
}

// unrepresentative returns why the run does not represent the server: it failed to answer, or was
// hung, for too long; "" otherwise.
func unrepresentative(r *Run) string {
	a := &r.Agg
	const so = ": the measurements do not represent the server"
	if mostlyHung(r) {
		return "the engine was hung for at least " + figure.Elapsed(r.HungBefore) + ", and then continued" + so + "; its log may say why"
	}
	if float64(a.Failed) <= lostShare*float64(a.Ticks) {
		return ""
	}
	why := ""
	if a.LastErr != "" {
		why = " (" + a.LastErr + ")"
	}
	return fmt.Sprintf("%d of %d scrapes failed%s%s", a.Failed, a.Ticks, why, so)
}

// mostlyHung reports whether the engine was hung for too much of the run, and then continued.
func mostlyHung(r *Run) bool {
	n := len(r.Windows)
	return n > 0 && r.HungBefore.Seconds() > lostShare*(r.Windows[n-1].End()-r.Windows[0].Start).Seconds()
}

// unexplainedQueue returns why a queue prevents the outcome healthy; "" if there is no queue
// or a significant finding explains it.
func (d *Diagnosis) unexplainedQueue(a *Aggregate) string {
	share := a.Waiting.Div(a.Running.Plus(a.Waiting))
	if share.Or(0) < doubtfulQueue {
		return ""
	}
	part := figure.PercentSign(share.V) + " of the requests wait"
	if slots := d.Finding(ConcurrencySaturation); slots != nil && slots.State == NotEvaluable {
		return part + ", and it is unknown whether the slots are the limit: " + slots.Reason
	}
	var few *Finding // fired in too few windows to be significant
	for i := range d.Findings {
		f := &d.Findings[i]
		if !f.explainsQueue() {
			continue
		}
		if f.Significant {
			return ""
		}
		if float64(f.Fired) >= explainingShare*float64(f.Evaluable) && (few == nil || f.Fired > few.Fired) {
			few = f
		}
	}
	if few != nil {
		return fmt.Sprintf("%s; %s may explain it, but %s: too few to judge by", part, few.ID, few.FiredIn())
	}
	if a.Deferred.Or(0) >= a.Waiting.V/2 {
		return part + ", deferred by the scheduler: they wait for a KV transfer, a grammar or a LoRA slot, which no capacity flag provides"
	}
	if why := d.Facts.doubtfulSlots(); why != "" {
		return part + ": " + why
	}
	return part + " although slots and KV pool have room: look at " + figure.List(append(d.Facts.otherLimits(), "priorities", "the server's log on scheduling")...)
}

// otherLimits returns the flags that keep requests waiting with slots and KV pool free, as the launch
// command sets them; all, if it cannot be read as a whole.
func (f *Facts) otherLimits() []string {
	all := []string{"--max-num-active-seqs", "--max-num-scheduled-tokens", "--max-loras", "--long-prefill-token-threshold"}
	if f.Launch == "" || strings.Contains(f.Launch, "--config") {
		return all
	}
	var set []string
	words := strings.Fields(strings.ReplaceAll(f.Launch, "=", " "))
	for i, word := range words {
		if i+1 < len(words) && slices.Contains(all, strings.ReplaceAll(word, "_", "-")) {
			set = append(set, word+" "+words[i+1])
		}
	}
	return set
}

// overload returns what a queue comes from that a finding explains and that no change of the server shortens; "" if
// there is none.
func (d *Diagnosis) overload(a *Aggregate) string {
	share := a.Waiting.Div(a.Running.Plus(a.Waiting))
	if d.Outcome != OutcomeHealthy || share.Or(0) < doubtfulQueue {
		return ""
	}
	for i := range d.Findings {
		if f := &d.Findings[i]; f.explainsQueue() && f.Significant {
			return "requests wait: " + f.Reason + ", and no change of this server is known to help"
		}
	}
	return ""
}

// explainsQueue reports whether a finding is a reason for requests to wait.
func (f *Finding) explainsQueue() bool {
	return f.State == Fired && (f.Group == GroupMemory || f.Group == GroupSlots || f.Group == GroupHost)
}

// doubtfulSlots asks whether a number of slots that the launch does not name is right, if the page shows
// fewer; "" otherwise.
func (f *Facts) doubtfulSlots() string {
	if f.SlotsInferred == 0 || f.SlotsInferred >= f.MaxNumSeqs.Value {
		return ""
	}
	given := "-m " + f.FlagValue("--max-num-seqs", strconv.Itoa(f.MaxNumSeqs.Value))
	switch f.MaxNumSeqs.Source {
	case FromFlag, FromEnv:
	case FromDefault:
		given = fmt.Sprintf("%s's default of %d", f.Dialect().Name, f.MaxNumSeqs.Value)
	default:
		return ""
	}
	return fmt.Sprintf("running stays at %d while requests wait and the KV pool has room: is %s right?", f.SlotsInferred, given)
}

func asleep(windows []Window) bool {
	return slices.ContainsFunc(windows, func(w Window) bool { return w.Asleep })
}
