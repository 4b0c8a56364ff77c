package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of dp-imbalance.
const (
	imbalanceRatio      = 1.5 // busiest rank over the mean, above; of running or of KV usage
	imbalanceQueue      = 1.0 // requests waiting at one rank, at least
	imbalanceConfidence = 0.80
)

func dpImbalance() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.DPImbalance, Code: "beyond", Title: "Uneven data-parallel ranks", Group: engine.GroupLoad, Impact: 2,
			Check: checkDPImbalance, Conclude: concludeDPImbalance,
		},
		explain: Explanation{
			Condition: []string{
				fmt.Sprintf("the server has several data-parallel ranks, and the busiest runs or holds more than %s times the mean", number(imbalanceRatio)),
				"requests wait at one rank while another has a free seat and room in its pool",
			},
			Thresholds: []Threshold{
				{"max / mean of running or KV peak over ranks", ">", imbalanceRatio, "", fromJudgement},
				{"waiting at one rank", ">=", imbalanceQueue, "req", fromJudgement},
				{"KV peak of the rank with room", "<", kvPressureUsage, "ratio", fromJudgement},
			},
			Formula:    []string{"requests that would move = waiting at the full rank, to the ranks with free seats"},
			Confidence: []string{number(imbalanceConfidence) + " fixed"},
			Remedy:     []string{"spread the requests: no pinning to a rank, a balancer that sees running and waiting requests"},
			Limits:     []string{"ranks behind other ports are not on this page"},
		},
	}
}

// spread is how unevenly a window's ranks are used.
type spread struct {
	running, kv float64 // largest over mean; 0 unknown
	waiting     float64 // most at one rank
	busiest     int
	free        int // rank with free seat and room, -1 none
}

func spreadOf(w *engine.Window, seats stat.Opt) spread {
	s := spread{free: -1, busiest: 0}
	var sumRunning, sumKV, maxRunning, maxKV float64
	n := float64(len(w.Ranks))
	for i := range w.Ranks {
		r := &w.Ranks[i]
		sumRunning += r.Running.Or(0)
		sumKV += r.KVPeak.Or(0)
		maxRunning, maxKV = max(maxRunning, r.Running.Or(0)), max(maxKV, r.KVPeak.Or(0))
		if r.Waiting.Or(0) > s.waiting {
			s.waiting, s.busiest = r.Waiting.V, i
		}
		hasSeat := !seats.OK || r.Running.Or(0) < seats.V-seatMargin
		if hasSeat && r.Waiting.Or(0) < imbalanceQueue && r.KVPeak.Or(0) < kvPressureUsage {
			s.free = i
		}
	}
	if sumRunning > 0 {
		s.running = maxRunning * n / sumRunning
	}
	if sumKV > 0 {
		s.kv = maxKV * n / sumKV
	}
	return s
}

func checkDPImbalance(w *engine.Window, f *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if len(w.Ranks) < 2 {
		return lacks(inputRanks)
	}
	if !loaded(w) {
		return idle()
	}
	s := spreadOf(w, seatsOf(w, f))
	uneven := figure{stat.Some(max(s.running, s.kv)), ">", imbalanceRatio, ""}
	switch {
	case s.waiting < imbalanceQueue:
		return quiet("requests waiting at one rank", figure{stat.Some(s.waiting), "<", imbalanceQueue, "req"})
	case s.free < 0:
		uneven.op = ""
		return quiet("no rank has a free seat and room; busiest over mean", uneven)
	case uneven.value.V <= imbalanceRatio:
		uneven.op = "<="
		return quiet("busiest rank over the mean", uneven)
	}
	return fired("busiest rank over the mean", uneven)
}

func concludeDPImbalance(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	f.Confidence = imbalanceConfidence
	var last *engine.Window
	var ratio, waiting []float64
	for i := range r.Windows {
		w := &r.Windows[i]
		if checkDPImbalance(w, facts).State != engine.Fired {
			continue
		}
		s := spreadOf(w, seatsOf(w, facts))
		ratio, waiting, last = append(ratio, max(s.running, s.kv)), append(waiting, s.waiting), w
	}
	f.Reason = "the busiest rank has " + number(average(ratio)) + " times the mean"
	f.Evidence = append(f.Evidence,
		evidence("rank_spread", stat.Some(average(ratio)), "", ">", stat.Some(imbalanceRatio), engine.FromDerived,
			"the busiest rank runs or holds "+number(average(ratio))+" times the mean of the ranks"),
		evidence("waiting_at_one_rank", stat.Some(average(waiting)), "req", ">=", stat.Some(imbalanceQueue), engine.FromMeasured,
			number(average(waiting))+" requests wait at one rank while another has room"))
	for i := range last.Ranks {
		k := &last.Ranks[i]
		f.Evidence = append(f.Evidence, measured("running", k.Running, "req",
			fmt.Sprintf("rank %s: %s running, %s waiting, KV peak %s", k.Name, number(k.Running.Or(0)), number(k.Waiting.Or(0)), percent(k.KVPeak.Or(0)))))
	}
	f.Fix = &engine.Fix{
		Kind:    engine.KindClient,
		Command: "spread the requests over the ranks: do not pin them to one (X-data-parallel-rank), and balance by running and waiting requests",
		Why:     "One rank queues while another has free seats and blocks: where requests are sent is the limit. No flag of the server helps.",
		Price:   []string{"requests that share a prefix may land on a rank that has not cached it"},
	}
	setImpact(f, 2)
}
