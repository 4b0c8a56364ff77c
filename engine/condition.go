package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Condition is what is wrong with the server as a whole, in contrast to its settings. The zero
// Condition means that nothing is known to be wrong.
type Condition struct {
	State Illness
	// Lasted is how long it has lasted at least, up to the end of the last window; 0 if unknown.
	Lasted time.Duration
	// Reason is a clause with the figures that decided: "no tokens generated for 36 s with 16
	// running and 8 waiting".
	Reason string
	// Doubt states why a server that looks hung may be idle with a stale running gauge; "" if
	// it cannot be.
	Doubt string
	// Ended are the requests that show that a server is Failing.
	Ended Endings
}

// Illness is the kind of a Condition, as in documents.
type Illness string

// Illnesses, the worst first.
const (
	Down       Illness = "down"        // the page no longer answers
	Dead       Illness = "dead"        // the page answers, but the engine has ended
	Hung       Illness = "hung"        // requests are in the server, and the engine does not step
	PartlyHung Illness = "partly-hung" // the same of some data-parallel ranks
	Failing    Illness = "failing"     // requests end with server errors
)

// Ill reports whether the server is ill without doubt. An ill server cannot be judged or tuned.
func (c Condition) Ill() bool { return c.State != "" && c.Doubt == "" }

// Title names the condition, as a title: "Engine hung".
func (c Condition) Title() string {
	title := map[Illness]string{
		Down: "Server down", Dead: "Engine dead", Hung: "Engine hung", PartlyHung: "Part of the engine hung", Failing: "Requests fail",
	}[c.State]
	if c.Doubt != "" {
		title = "Engine hung, or idle with a stale gauge"
	}
	return title
}

// Word returns the state in words, after "it was".
func (i Illness) Word() string {
	if i == PartlyHung {
		return "partly hung"
	}
	return string(i)
}

// String returns the condition as a clause: "the engine is hung: no tokens …". It is "" if
// nothing is wrong.
func (c Condition) String() string {
	if c.State == "" {
		return ""
	}
	return map[Illness]string{
		Down: "the server does not answer", Dead: "the engine is dead", Hung: "the engine is hung", PartlyHung: "part of the engine is hung", Failing: "the server is failing",
	}[c.State] + ": " + c.Reason
}

// Limits of the illnesses.
const (
	// HungMinimum, HungSteps and HungBeyond bound the time without progress after which an
	// engine with requests is hung: at least HungMinimum, and HungSteps of the longest steps
	// seen, but no more than HungBeyond longer than the longest. A token budget bounds what a
	// step can take, and what looks like a long step may have been a shorter hang.
	HungMinimum = 10 * time.Second
	HungBeyond  = 20 * time.Second
	HungSteps   = 5
	// LongestStep is the longest standstill that one step may explain; a longer one was a stall, after
	// which the next is not expected to last as long.
	LongestStep = 30 * time.Second
	// FailingShare is the share of requests that end with an error above which a server is
	// failing, and failingChance is how likely the observed errors may be by chance at that
	// share: a single error among a few requests proves nothing.
	FailingShare  = 0.05
	failingChance = 0.001

	// MinimumBlocks is what a running sequence holds of the KV pool, in blocks, at least: its
	// last one, for vLLM never takes the last token from a shared prefix.
	MinimumBlocks = 1.0
	// KVInUse is the share of a pool of unknown size from which requests hold it.
	KVInUse     = 0.03
	kvEmpty     = 1e-6 // share of the pool below which no request holds any of it
	idleGPUUtil = 0.05 // share of time in which the busiest GPU works, below
)

// HungAfter returns the time without progress from which on an engine with steps of at most
// this length is hung.
func HungAfter(longestStep time.Duration) time.Duration {
	return max(HungMinimum, min(HungSteps*longestStep, longestStep+HungBeyond))
}

// ConditionOf returns the condition of a server at the end of a window in which its page
// answered.
func ConditionOf(w *Window, f *Facts) Condition {
	if w.Dead > 0 {
		return Condition{State: Dead, Lasted: w.Dead, Reason: w.HealthWhy + ", no tokens generated for " + figure.Elapsed(max(w.Dead, w.Stall))}
	}
	if c := hung(w, f); c.State != "" {
		return c
	}
	if c := partlyHung(w, f); c.State != "" {
		return c
	}
	return failing(w)
}

// hung judges the whole server.
func hung(w *Window, f *Facts) Condition {
	if w.Asleep || w.Polls == 0 || w.Stall < HungAfter(w.LongestStep) {
		return Condition{}
	}
	s := standstill{w.Stall, w.Running, w.Waiting, w.KV, max(1, len(w.Ranks))}
	reason := s.String()
	if w.HealthWhy != "" {
		reason += " (" + w.HealthWhy + ")"
	}
	return Condition{State: Hung, Lasted: w.Stall, Reason: reason, Doubt: s.doubt(w, f)}
}

// partlyHung judges each rank of a server whose other ranks work.
func partlyHung(w *Window, f *Facts) Condition {
	if w.Asleep || len(w.Ranks) < 2 {
		return Condition{}
	}
	var names []string
	var all standstill
	for i := range w.Ranks {
		r := &w.Ranks[i]
		s := standstill{r.Stall, r.Running, r.Waiting, r.KVPeak, 1}
		if r.Stall < HungAfter(r.LongestStep) || s.doubt(w, f) != "" {
			continue
		}
		names = append(names, r.Name)
		all.duration = max(all.duration, s.duration)
		all.running, all.waiting = all.running.Plus(s.running), all.waiting.Plus(s.waiting)
	}
	if len(names) == 0 {
		return Condition{}
	}
	which := "rank " + names[0]
	if len(names) > 1 {
		which = "ranks " + figure.List(names...)
	}
	return Condition{State: PartlyHung, Lasted: all.duration,
		Reason: fmt.Sprintf("%s of %d, %s", which, len(w.Ranks), all)}
}

// failing judges the requests that ended.
func failing(w *Window) Condition {
	for _, e := range [...]struct {
		Endings
		how string
	}{{w.Answers, "were answered with a 5xx error"}, {w.Finishes, "finished with an error"}} {
		if e.Failed > 0 && e.Failed > FailingShare*e.Ended && stat.AtLeast(min(e.Failed, e.Ended), e.Ended, FailingShare) <= failingChance {
			return Condition{State: Failing, Ended: e.Endings,
				Reason: fmt.Sprintf("%s of the last %s %s", figure.Whole(e.Failed), figure.Counted(int(e.Ended), "request"), e.how)}
		}
	}
	return Condition{}
}

// ConditionAtEnd returns the condition at the end of a run. The server is down if its page, which
// was evaluable before, did not answer for the last two seconds; one that never was must not have failed between its
// answers, because it may be read now and then.
func ConditionAtEnd(windows []Window, f *Facts, length time.Duration) Condition {
	last := len(windows) - 1
	for last >= 0 && windows[last].Polls == 0 {
		last--
	}
	if last < 0 {
		return Condition{}
	}
	end := windows[last].End()
	answered := slices.ContainsFunc(windows, func(w Window) bool { return w.Evaluable }) ||
		!slices.ContainsFunc(windows[:last], func(w Window) bool { return w.Failed > 0 })
	if final := &windows[len(windows)-1]; answered && final.Failed > 0 && length-end >= downFor {
		reason := "it stopped answering after " + figure.Elapsed(end)
		if final.LastErr != "" {
			reason += " (" + final.LastErr + ")"
		}
		return Condition{State: Down, Lasted: length - end, Reason: reason}
	}
	return ConditionOf(&windows[last], f)
}

// Silence returns a remark on a server, or a rank of it, that makes no progress for longer than its
// steps take, but not yet for long enough to count as hung; "" otherwise.
func Silence(w *Window, f *Facts) string {
	if w.Asleep || w.Polls == 0 {
		return ""
	}
	silent := func(stall, longest time.Duration, s standstill, who string) string {
		if after := HungAfter(longest); stall >= max(doubtfulStall, 2*longest) && stall < after && s.doubt(w, f) == "" {
			return who + s.String() + ": hung if it lasts for " + figure.Elapsed(after)
		}
		return ""
	}
	text := silent(w.Stall, w.LongestStep, standstill{w.Stall, w.Running, w.Waiting, w.KV, max(1, len(w.Ranks))}, "")
	for i := range w.Ranks {
		if r := &w.Ranks[i]; text == "" && len(w.Ranks) > 1 {
			text = silent(r.Stall, r.LongestStep, standstill{r.Stall, r.Running, r.Waiting, r.KVPeak, 1}, "rank "+r.Name+": ")
		}
	}
	return text
}

// hungBefore returns for how long, at least, the engine, or a rank of it, was hung in the windows and then continued.
func hungBefore(windows []Window, f *Facts) time.Duration {
	sum, now := time.Duration(0), time.Duration(0)
	for i := range windows {
		c := hung(&windows[i], f)
		if c.State == "" {
			c = partlyHung(&windows[i], f)
		}
		switch {
		case c.State != "" && c.Doubt == "":
			now = max(now, c.Lasted)
		case windows[i].Evaluable:
			sum, now = sum+now, 0
		}
	}
	return sum
}

// downFor is how long a server must not have answered at the end of a run to count as down.
const downFor = 2 * time.Second

// standstill is a time without progress of a server or rank with requests, and what the page
// showed then.
type standstill struct {
	duration         time.Duration
	running, waiting stat.Opt
	kv               stat.Opt // share of the pools in use
	ranks            int      // each with a pool
}

// String returns the standstill as a clause.
func (s standstill) String() string {
	return fmt.Sprintf("no tokens generated for %s with %s running and %s waiting", figure.Elapsed(s.duration), figure.Count(s.running.Or(0)), figure.Count(s.waiting.Or(0)))
}

// doubt returns why the server may be idle with a stale running gauge; "" if it cannot be.
func (s standstill) doubt(w *Window, f *Facts) string {
	g, v := f.Dialect().StaleGauges, f.EngineVersion
	old := "stale"
	if g.AtMost > 0 {
		old = figure.Elapsed(g.AtMost) + " old"
	}
	switch {
	case s.waiting.Or(0) > 0, g.Before == "", g.AtMost > 0 && s.duration > g.AtMost:
		return ""
	case !v.Known && !(g.Cached && w.Last[CounterPromptTokensCached].OK):
		return "the version is unknown, and the running gauge of releases before " + g.Before + " can be " + old
	case v.Known && OlderThan(v.Value, g.Before):
		return "the running gauge of " + f.Dialect().Name + " " + v.Value + " can be " + old
	case !g.Pool:
		return ""
	case s.kv.OK && s.kv.V < kvEmpty:
		return "the KV pool reads empty, although a running request holds at least one block"
	case w.GPUBusy.OK && w.GPUBusy.V < idleGPUUtil && !s.poolInUse(f):
		return "the GPU is idle, and less of the KV pool is in use than the running requests must hold"
	}
	return ""
}

// poolInUse reports whether the KV pool is in use to the minimum that the running sequences hold.
func (s standstill) poolInUse(f *Facts) bool {
	if !f.NumGPUBlocks.Known || f.NumGPUBlocks.Value <= 0 {
		return s.kv.Or(0) >= KVInUse
	}
	blocks := s.kv.Or(0) * float64(f.NumGPUBlocks.Value) * float64(s.ranks)
	return blocks > MinimumBlocks*(s.running.Or(0)-0.5) // half a block of tolerance: usage is a rounded share
}
