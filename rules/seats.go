package rules

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Seats are vLLM's --max-num-seqs: the requests that one data-parallel rank
// runs at once. Every comparison with them is per rank (decisions.md 11).

const (
	// seatMargin is how near the mean of running must come to the seats to call
	// them taken, in requests. Documented with R5.
	seatMargin = 0.5
	// seatSlack widens that for windows whose peak reached the seats: vLLM counts
	// running after it removed the requests that finished in the step, so with
	// short outputs a full server shows a few percent below its seats. It holds for
	// the mean or the median of the window's polls, whichever is more: clients in
	// lock-step empty the batch for an instant, and one poll in seven that sees it
	// took the mean of 12 seats to 10.4 on a real server.
	seatSlack = 0.05
	// finishSlack is how often the share of a batch that ends in a step may lie
	// below the seats: one in the mean output ends, with polls that see more.
	finishSlack = 1.5
	// mostSlack bounds that, so that a batch with a fifth of its seats free is not
	// called full.
	mostSlack = 0.15
)

// shortSlack is how far below its seats, as a ratio of them, running may lie in a
// window that reached them: with answers of nine tokens a ninth of a full batch is
// taken out in every step, before anybody can count it.
func shortSlack(w *engine.Window) float64 {
	output := meanOf(w, engine.HistGenerationTokens)
	if output.Or(0) < 1 {
		return seatSlack
	}
	return min(max(seatSlack, finishSlack/output.V), mostSlack)
}

// seatsOf returns the seats of one rank: the resolved fact, else the page's
// gauge.
func seatsOf(w *engine.Window, f *engine.Facts) stat.Opt {
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

// fullest returns the mean running requests of the busiest rank.
func fullest(w *engine.Window) float64 {
	most := stat.None
	for i := range w.Ranks {
		most = most.Max(w.Ranks[i].Running)
	}
	if !most.OK {
		return w.Running.Or(0) / float64(ranks(w))
	}
	return most.V
}

// emptiest returns the mean running requests of the least busy rank.
func emptiest(w *engine.Window) float64 {
	least := stat.None
	for i := range w.Ranks {
		if r := w.Ranks[i].Running; r.OK && (!least.OK || r.V < least.V) {
			least = r
		}
	}
	if !least.OK {
		return w.Running.Or(0) / float64(ranks(w))
	}
	return least.V
}

// seatsTaken says whether every rank ran as many requests as it has seats.
func seatsTaken(w *engine.Window, seats float64) bool { return seatsTakenWithin(w, seats, seatSlack) }

// seatsTakenWithin is seatsTaken with another slack.
func seatsTakenWithin(w *engine.Window, seats, slack float64) bool {
	if emptiest(w) >= seats-seatMargin {
		return true
	}
	all := seats * float64(ranks(w))
	if w.RunningPeak.Or(0) < all-seatMargin {
		return false
	}
	return usually(w) >= all*(1-slack)
}

// usually returns the running requests of all ranks as most polls saw them: the
// mean, or the median where that is more.
func usually(w *engine.Window) float64 { return w.Running.Max(w.RunningMedian).Or(0) }

// aboveSeats says whether a rank ran more requests than it has seats.
func aboveSeats(w *engine.Window, seats float64) bool { return fullest(w) > seats+seatMargin }

// The ladder of sensible numbers of seats: those for which vLLM captures CUDA
// graphs (1, 2, 4, then steps of 8 to 256, then of 16), so that a full batch
// runs in a graph of its own size.
const (
	fineSeats   = 8
	coarseSeats = 16
	coarseFrom  = 256
)

// seatsFor returns the smallest number of the ladder that seats n requests. A
// tail of less than half a request needs no seat of its own.
func seatsFor(n float64) int {
	need := int(math.Ceil(n - seatMargin))
	switch {
	case need <= 1:
		return 1
	case need <= 2:
		return 2
	case need <= 4:
		return 4
	case need <= coarseFrom:
		return roundUp(need, fineSeats)
	}
	return roundUp(need, coarseSeats)
}

// seatsWithin returns the largest number of the ladder that is not above n, 0
// where n is below one.
func seatsWithin(n float64) int {
	most := int(math.Floor(n + 1e-9))
	switch {
	case most < 1:
		return 0
	case most < 2:
		return 1
	case most < 4:
		return 2
	case most < fineSeats:
		return 4
	case most < coarseFrom:
		return most / fineSeats * fineSeats
	}
	return most / coarseSeats * coarseSeats
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// flatRunning looks for the seats of a server that does not tell them: running
// never above a whole number and near it in every window in which requests
// waited. It is an estimate, offered in words only. Zero where nothing is flat.
func flatRunning(r *engine.Run) int {
	const enough = 3 // windows, as in the standard gate
	peak, n := stat.None, 0
	for i := range r.Windows {
		w := &r.Windows[i]
		if w.Evaluable && len(w.Ranks) <= 1 && queued(w).Or(0) >= 1 {
			peak = peak.Max(w.RunningPeak.Max(w.Running))
			n++
		}
	}
	if n < enough || !peak.OK || peak.V < 1 {
		return 0
	}
	for i := range r.Windows {
		w := &r.Windows[i]
		if w.Evaluable && queued(w).Or(0) >= 1 && usually(w) < peak.V-max(seatMargin, seatSlack*peak.V) {
			return 0
		}
	}
	return int(math.Round(peak.V))
}
