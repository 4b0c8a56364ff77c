package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of dp-imbalance.
const (
	imbalanceRatio      = 1.5 // busiest rank over the mean, above; of running or of KV usage
	imbalanceQueue      = 1.0 // requests waiting at one rank, at least
	imbalanceConfidence = 0.80
	// imbalanceLeast is the part of the bound that is promised: half of a
	// predicted benefit, as everywhere (physics.md section 10).
	imbalanceLeast = 0.5
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
			Formula: []string{
				"even load = (running + waiting) / ranks for each, at most its seats and what its pool holds",
				"gain = ranks x rate of a rank at the even load / the ranks' rates now - 1, the rates by the physical model; bounded by the busiest rank's measured rate, taken as constant in the batch and as proportional to it (a rate grows with the batch, and less than in proportion), which without a model are the ends, their mean the middle",
			},
			Confidence: []string{number(imbalanceConfidence) + " fixed"},
			Remedy:     []string{"spread the requests: no pinning to a rank, a balancer that sees running and waiting requests"},
			Limits: []string{
				"ranks behind other ports are not on this page",
				"a rank whose KV usage is not known is not one with room, nor part of the mean of KV usage",
				"a rank without gauges is idle only where its counters stand at 0 (several API servers: a gauge that was never set is left out); else it is unknown and not compared",
			},
		},
	}
}

// spread is how unevenly a window's ranks are used.
type spread struct {
	running, kv float64 // largest over mean; 0 unknown
	waiting     float64 // most at one rank
	known       int     // ranks whose running requests are known
	free        int     // rank with free seat and room, -1 none
	unsure      bool    // a rank has a free seat, and its room is not known
}

// spreadOf compares the ranks whose running requests are known: a rank without
// the gauge may be as busy as the others.
func spreadOf(w *engine.Window, seats stat.Opt) spread {
	s := spread{free: -1}
	var sumRunning, sumKV, maxRunning, maxKV, knownKV float64
	for i := range w.Ranks {
		r := &w.Ranks[i]
		if !r.Running.OK {
			continue
		}
		s.known++
		sumRunning += r.Running.V
		maxRunning = max(maxRunning, r.Running.V)
		if r.KVPeak.OK {
			knownKV++
			sumKV += r.KVPeak.V
			maxKV = max(maxKV, r.KVPeak.V)
		}
		s.waiting = max(s.waiting, r.Waiting.Or(0))
		hasSeat := !seats.OK || r.Running.V < seats.V-seatMargin
		switch {
		case !hasSeat || !r.Waiting.OK || r.Waiting.V >= imbalanceQueue:
		case !r.KVPeak.OK:
			s.unsure = true
		case r.KVPeak.V < kvPressureUsage:
			s.free = i
		}
	}
	if sumRunning > 0 {
		s.running = maxRunning * float64(s.known) / sumRunning
	}
	if sumKV > 0 {
		s.kv = maxKV * knownKV / sumKV
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
	case s.known < 2:
		return lacks(inputRankRunning)
	case s.waiting < imbalanceQueue:
		return quiet("requests waiting at one rank", figure{stat.Some(s.waiting), "<", imbalanceQueue, "req"})
	case s.free < 0 && s.unsure:
		return lacks(inputRankKV)
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
	in := func(w *engine.Window) bool { return checkDPImbalance(w, facts).State == engine.Fired }
	var ratio, waiting []float64
	for i := range r.Windows {
		if w := &r.Windows[i]; in(w) {
			s := spreadOf(w, seatsOf(w, facts))
			ratio, waiting = append(ratio, max(s.running, s.kv)), append(waiting, s.waiting)
		}
	}
	f.Reason = "the busiest rank has " + number(average(ratio)) + " times the mean"
	f.Evidence = append(f.Evidence,
		evidence("rank_spread", stat.Some(average(ratio)), "", ">", stat.Some(imbalanceRatio), engine.FromDerived,
			"the busiest rank runs or holds "+number(average(ratio))+" times the mean of the ranks"),
		evidence("waiting_at_one_rank", stat.Some(average(waiting)), "req", ">=", stat.Some(imbalanceQueue), engine.FromMeasured,
			number(average(waiting))+" requests wait at one rank while another has room"))
	loads := rankLoads(r, in)
	for i := range loads {
		l := &loads[i]
		text := fmt.Sprintf("rank %s: %s running, %s waiting", l.name, number(l.running), number(l.waiting))
		if l.kv.OK {
			text += ", KV peak " + percent(l.kv.V)
		}
		from := engine.FromMeasured
		if l.untouched {
			text, from = fmt.Sprintf("rank %s has run nothing since the server started: its gauges were never set and its counters stand at 0", l.name), engine.FromDerived
		}
		f.Evidence = append(f.Evidence, evidence("running", stat.Some(l.running), "req", "", stat.None, from, text))
	}
	p := poolOf(r, in)
	f.Fix = &engine.Fix{
		Kind:      engine.KindClient,
		Command:   "spread the requests over the ranks: do not pin them to one (X-data-parallel-rank), and balance by running and waiting requests",
		Why:       "One rank queues while another has free seats and blocks: where requests are sent is the limit. No flag of the server helps.",
		Price:     []string{"requests that share a prefix may land on a rank that has not cached it"},
		Predicted: evenLoad(r, &p, loads).predictions(),
	}
	setImpact(f, 2)
}

// rankLoad is one rank's load, means over the windows that count.
type rankLoad struct {
	name             string
	running, waiting float64
	kv               stat.Opt // highest peak
	output           stat.Opt // output tokens per second
	untouched        bool
}

// rankLoads averages the ranks whose running requests are known, over the
// windows that count and show as many of them as the last one.
func rankLoads(r *engine.Run, count func(*engine.Window) bool) []rankLoad {
	var last *engine.Window
	for i := range r.Windows {
		if w := &r.Windows[i]; count(w) {
			last = w
		}
	}
	var loads []rankLoad
	for k := range last.Ranks {
		if !last.Ranks[k].Running.OK {
			continue
		}
		l := rankLoad{name: last.Ranks[k].Name, untouched: last.Ranks[k].Untouched}
		var running, waiting, output, secs float64
		outputOK := true
		for i := range r.Windows {
			w := &r.Windows[i]
			if !count(w) || len(w.Ranks) != len(last.Ranks) {
				continue
			}
			s, k := w.Seconds(), &w.Ranks[k]
			running += k.Running.Or(0) * s
			waiting += k.Waiting.Or(0) * s
			output += k.Generation.Or(0)
			outputOK = outputOK && k.Generation.OK
			l.kv = l.kv.Max(k.KVPeak)
			secs += s
		}
		l.running, l.waiting = running/secs, waiting/secs
		if outputOK {
			l.output = stat.Some(output / secs)
		}
		loads = append(loads, l)
	}
	return loads
}

// evenLoad predicts the same requests spread evenly over the ranks.
func evenLoad(r *engine.Run, p *pool, loads []rankLoad) gain {
	n := float64(len(loads))
	total, present, modelled := 0.0, 0.0, 0.0
	busiest, measured := &loads[0], true
	for i := range loads {
		l := &loads[i]
		total += l.running + l.waiting
		measured = measured && l.output.OK
		if l.running > busiest.running {
			busiest = l
		}
		if r.Perf != nil {
			modelled += r.Perf.Throughput(l.running)
		}
	}
	if busiest.running <= 0 {
		return gain{}
	}
	each := total / n
	if seats := r.Facts.MaxNumSeqs; seats.Known {
		each = min(each, float64(seats.Value))
	}
	each = min(each, max(busiest.running, p.holds.Or(each)))
	rate := func(l *rankLoad) float64 {
		if measured {
			return l.output.V
		}
		return l.running
	}
	for i := range loads {
		present += rate(&loads[i])
	}
	if present <= 0 {
		return gain{}
	}
	grows := each / busiest.running
	low := n*rate(busiest)*min(1, grows)/present - 1
	high := n*rate(busiest)*max(1, grows)/present - 1
	mid := (low + high) / 2
	if modelled > 0 {
		mid = min(high, max(low, n*r.Perf.Throughput(each)/modelled-1))
	}
	return gain{Gain: roofline.Gain{Throughput: roofline.Range{
		Low: stat.Some(min(low, low*imbalanceLeast)), Mid: stat.Some(mid), High: stat.Some(high),
	}}}
}
