package rules

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Slots are vLLM's --max-num-seqs: the requests that one data-parallel rank runs at once.
// Every comparison with them is per rank.

const (
	// slotMargin is how far, in requests, the mean of running requests may lie below the slots
	// for the slots to count as in use. R5 of PROFILE defines it.
	slotMargin = 0.5
	// slotSlack widens slotMargin in windows whose peak reached the slots: vLLM counts running
	// requests after it removed those that finished in the step, so short outputs show a full
	// server a few percent below its slots. The larger of mean and median over the polls
	// counts: one poll that sees a batch of synchronized clients empty lowers the mean by 10 %.
	slotSlack = 0.05
	// finishSlack widens slotSlack for short outputs: it is a multiple of the share of a batch
	// that ends in a step, which is 1 / mean output length. With async scheduling, a slot is empty
	// for the step after its request ended.
	finishSlack = 1.5
	// maxSlack bounds the slack: a batch with a fifth of its slots free is not full.
	maxSlack = 0.15
)

// shortSlack returns how far, as a share of the slots, running requests may lie below the slots
// of a full server: with outputs of nine tokens, a ninth of a full batch ends in every step before
// vLLM counts it.
func shortSlack(w *engine.Window) float64 {
	output := meanOf(w, engine.HistGenerationTokens)
	if output.Or(0) < 1 {
		return slotSlack
	}
	return min(max(slotSlack, finishSlack/output.V), maxSlack)
}

// slotsOf returns the slots of one rank: the resolved fact, else the gauge of the page; absent
// without either.
func slotsOf(w *engine.Window, f *engine.Facts) stat.Opt {
	if f.MaxNumSeqs.Known && f.MaxNumSeqs.Value > 0 {
		return stat.Some(float64(f.MaxNumSeqs.Value))
	}
	for i := range w.Ranks {
		if g := w.Ranks[i].MaxNumSeqs; g.OK && g.V > 0 {
			return g
		}
	}
	return stat.None
}

// runningRange returns the mean running requests of the least busy rank and of the busiest; both
// are the mean over the ranks if no rank has the gauge.
func runningRange(w *engine.Window) (least, most float64) {
	known := false
	for i := range w.Ranks {
		r := w.Ranks[i].Running
		switch {
		case !r.OK:
		case !known:
			known, least, most = true, r.V, r.V
		default:
			least, most = min(least, r.V), max(most, r.V)
		}
	}
	if !known {
		least = w.Running.Or(0) / float64(ranks(w))
		most = least
	}
	return least, most
}

// slotsInUse reports whether every rank ran as many requests as it has slots, by the gauge of running
// requests or by Little's law (engine.Window.Occupied): the gauge alone misses slots that are handed
// on at once.
func slotsInUse(w *engine.Window, slots float64) bool {
	if least, _ := runningRange(w); least >= slots-slotMargin {
		return true
	}
	all := slots * float64(ranks(w))
	full := all * (1 - shortSlack(w))
	if w.Occupied.Or(0) >= full && !preempting(w) {
		return true
	}
	return w.RunningPeak.Or(0) >= all-slotMargin && typicalRunning(w) >= full
}

// allSlotsInUse returns the result of a rule that needs a free slot.
func allSlotsInUse(w *engine.Window, slots float64) engine.Check {
	all := slots * float64(ranks(w))
	in := w.Running.Or(0)
	if w.Occupied.OK {
		in = max(in, min(w.Occupied.V, all))
	}
	return notFired("all slots in use: running", comparison{stat.Some(in), "of", all, "req"})
}

// typicalRunning returns the running requests of all ranks: the larger of mean and median over
// the polls.
func typicalRunning(w *engine.Window) float64 { return w.Running.Max(w.RunningMedian).Or(0) }

// aboveSlots reports whether a rank ran more requests than it has slots.
func aboveSlots(w *engine.Window, slots float64) bool {
	_, most := runningRange(w)
	return most > slots+slotMargin
}

const (
	// inferredWindows is the number of windows with a queue needed to infer the slots, as in the
	// standard gate, and inferredShare how many of them must show the same limit.
	inferredWindows = 3
	inferredShare   = 0.90
	// inferredRoom is the number of further sequences of the present size for which a rank's KV pool
	// must have room: else the next prompt may be what does not fit.
	inferredRoom = 2
	// decodeSteps is the share of steps without a prompt from which the token budget is not the limit:
	// a budget that is, is used up by prompts in every step.
	decodeSteps = 0.30
)

// inferSlots infers the slots that the page alone shows: the most requests that ran at once, if requests
// wait while as many run in nearly every window and nothing else can hold them back. They complete the
// facts of a server whose launch cannot be read.
func inferSlots(list []engine.Window, f *engine.Facts) {
	most := 0.0
	for i := range list {
		if w := &list[i]; w.Evaluable {
			most = max(most, w.RunningPeak.Max(w.Running).Or(0)/float64(ranks(w)))
		}
	}
	slots := math.Round(most)
	n, limited := 0, 0
	for i := range list {
		w := &list[i]
		if !w.Evaluable || queued(w).Or(0) < 1 {
			continue
		}
		n++
		if limitedBySlots(w, f, slots) {
			limited++
		}
	}
	if slots < 1 || n < inferredWindows || float64(limited) < inferredShare*float64(n) {
		return
	}
	f.SlotsInferred = int(slots)
	for i := range list {
		if slotsOf(&list[i], f).OK {
			return
		}
	}
	f.MaxNumSeqsInferred = true
	f.MaxNumSeqs = engine.Know(f.SlotsInferred, engine.FromDerived,
		fmt.Sprintf("(est) inferred from the page: running stays at %v while requests wait and the KV pool has room; -m N replaces it", slots))
}

// limitedBySlots reports whether a window with queued requests shows that a number of slots is what they
// wait for: every rank reached it and stayed there, and KV pool, adapters and token budget have room.
func limitedBySlots(w *engine.Window, f *engine.Facts, slots float64) bool {
	kv := kvPeak(w)
	return w.RunningPeak.Max(w.Running).Or(0) >= slots*float64(ranks(w))-slotMargin && slotsInUse(w, slots) && !aboveSlots(w, slots) &&
		!preempting(w) && kv.OK && kv.V < slotKVHeadroom && slots*(1-kv.V) >= inferredRoom*kv.V &&
		w.Deferred.Or(0) < w.Waiting.V/2 && checkLoRASlots(w, f).State != engine.Fired && !budgetMayLimit(w, slots)
}

// budgetMayLimit reports whether the token budget may be what keeps requests waiting. A budget that limits
// is used up by prompts in every step, so that prompts are being computed all the time. They are where many
// slots are handed on, too; but then, if no prompt takes several steps, some steps have no more tokens than
// running requests. Without the times of prefills the budget is not suspected: real servers at the limit of
// their slots were recorded so.
func budgetMayLimit(w *engine.Window, slots float64) bool {
	prefill := &w.Hist[engine.HistPrefill]
	if prefill.Sum/w.Seconds()/float64(ranks(w)) < budgetPrefills {
		return false
	}
	longest := w.Hist[engine.HistITL].Quantile(0.99)
	if !longest.OK || prefill.Mean().Or(0) >= budgetChunks*longest.V {
		return true
	}
	steps, few := &w.Hist[engine.HistIterationTokens], 0.0
	for i, bound := range steps.Bounds {
		few += steps.Counts[i]
		if bound >= slots {
			break
		}
	}
	return few < decodeSteps*steps.Count || steps.Count == 0
}

// runSlots returns the slots of one rank, from the first window in which they are known.
func runSlots(r *engine.Run) stat.Opt {
	for w := range windows(r, always) {
		if s := slotsOf(w, r.Facts); s.OK {
			return s
		}
	}
	return stat.None
}
