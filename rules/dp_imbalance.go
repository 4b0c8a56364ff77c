package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of dp-imbalance.
const (
	imbalanceRatio      = 1.5 // busiest rank over the mean, above; of running or of KV usage
	imbalanceQueue      = 1.0 // requests waiting in one rank, at least
	imbalanceConfidence = 0.80
	// imbalanceLowShare is the lower end of the predicted gain as a share of its lower bound.
	imbalanceLowShare = 0.5
)

var dpImbalance = definition{engine.Rule{
	ID: engine.DPImbalance, Code: "beyond", Title: "Uneven data-parallel ranks", Group: engine.GroupLoad, Impact: 2,
	Check: checkDPImbalance, Conclude: concludeDPImbalance,
}, Explanation{
	Condition: []string{
		fmt.Sprintf("the server has several data-parallel ranks, and the busiest runs or holds more than %v times the mean", imbalanceRatio),
		"requests wait in one rank while another has a free slot and room in its pool",
	},
	Thresholds: []Threshold{
		{"max / mean of running or KV peak over ranks", ">", imbalanceRatio, "", fromJudgement},
		{"waiting in one rank", ">=", imbalanceQueue, "req", fromJudgement},
		{"KV peak of the rank with room", "<", kvPressureUsage, "ratio", fromJudgement},
	},
	Formula: []string{
		"even load = (running + waiting) / ranks, at most the slots and the sequences that fit into the pool of a rank",
		"gain = ranks x throughput of a rank at the even load / current throughput of the ranks - 1, by the physical model; bounded by the measured throughput of the busiest rank, once constant in the batch and once proportional to it, which without a model are the ends of the range",
	},
	Confidence: []string{fmt.Sprintf("%v (fixed)", imbalanceConfidence)},
	Remedy:     []string{"spread the requests: do not pin them to a rank, and balance by running and waiting requests"},
	Limits: []string{
		"ranks behind other ports are not on this page",
		"a rank with unknown KV usage does not count as one with room, nor in the mean of KV usage",
		"a rank without gauges is idle only if its counters are 0 (with several API servers a gauge that was never set is missing); else it is not compared",
	},
}}

// spread describes how unevenly the ranks of a window are used.
type spread struct {
	running, kv float64 // largest over mean; 0 unknown
	waiting     float64 // most in one rank
	known       int     // ranks whose running requests are known
	free        int     // index of a rank with a free slot and room, -1 for none
	unsure      bool    // a rank has a free slot, but its KV usage is unknown
}

// spreadOf compares the ranks with known running requests: a rank without the gauge may be as
// busy as the others.
func spreadOf(w *engine.Window, slots stat.Opt) spread {
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
		hasSlot := !slots.OK || r.Running.V < slots.V-slotMargin
		switch {
		case !hasSlot || !r.Waiting.OK || r.Waiting.V >= imbalanceQueue:
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
		return lacks("several data-parallel ranks")
	}
	if !loaded(w) {
		return idle()
	}
	s := spreadOf(w, slotsOf(w, f))
	uneven := comparison{stat.Some(max(s.running, s.kv)), ">", imbalanceRatio, ""}
	switch {
	case s.known < 2:
		return lacks("num_requests_running of each rank")
	case s.waiting < imbalanceQueue:
		return above("requests waiting in one rank", stat.Some(s.waiting), imbalanceQueue, "req")
	case s.free < 0 && s.unsure:
		return lacks("kv_cache_usage_perc of each rank")
	case s.free < 0:
		uneven.op = ""
		return notFired("no rank has a free slot and room; busiest rank over the mean", uneven)
	case uneven.value.V <= imbalanceRatio:
		uneven.op = "<="
		return notFired("busiest rank over the mean", uneven)
	}
	return fired("busiest rank over the mean", uneven)
}

func concludeDPImbalance(r *engine.Run, t engine.Tally, f *engine.Finding) {
	f.Confidence = imbalanceConfidence
	in := firesIn(r, checkDPImbalance)
	var ratios, queues []float64
	for w := range windows(r, in) {
		s := spreadOf(w, slotsOf(w, r.Facts))
		ratios, queues = append(ratios, max(s.running, s.kv)), append(queues, s.waiting)
	}
	ratio, waiting := stat.Mean(ratios), stat.Mean(queues)
	f.Reason = "the busiest rank has " + figure.Count(ratio.V) + " times the mean"
	addEvidence(f,
		compared("rank_spread", ratio, "", ">", imbalanceRatio, engine.FromDerived,
			"the busiest rank runs or holds "+figure.Count(ratio.V)+" times the mean of the ranks"),
		compared("waiting_at_one_rank", waiting, "req", ">=", imbalanceQueue, engine.FromMeasured,
			figure.Counted(waiting.V, "request")+" waiting in one rank while another has room"))
	loads := rankLoads(r, in)
	for i := range loads {
		l := &loads[i]
		text := fmt.Sprintf("rank %s: %s running, %s waiting", l.name, figure.Count(l.running), figure.Count(l.waiting))
		if l.kv.OK {
			text += ", KV peak " + figure.PercentSign(l.kv.V)
		}
		from := engine.FromMeasured
		if l.untouched {
			text, from = fmt.Sprintf("rank %s has run nothing since the server started: its gauges were never set and its counters are 0", l.name), engine.FromDerived
		}
		addEvidence(f, sourced("running", stat.Some(l.running), "req", from, text))
	}
	p := poolOf(r, in)
	f.Fix = &engine.Fix{
		Kind:      engine.KindClient,
		Command:   "spread the requests over the ranks: do not pin them to one (X-data-parallel-rank), and balance by running and waiting requests",
		Why:       "One rank has a queue while another has free slots and blocks: the distribution of requests is the limit. No server flag helps.",
		Costs:     []string{"requests that share a prefix may reach a rank that has not cached it"},
		Predicted: evenLoad(r, &p, loads).predictions(),
	}
}

// rankLoad is the load of one rank: means over the selected windows.
type rankLoad struct {
	name             string
	running, waiting float64
	kv               stat.Opt // highest peak
	output           stat.Opt // output tokens per second
	untouched        bool
}

// rankLoads averages the ranks with known running requests, over the selected windows that
// have as many ranks as the last one.
func rankLoads(r *engine.Run, selected func(*engine.Window) bool) []rankLoad {
	var last *engine.Window
	for w := range windows(r, selected) {
		last = w
	}
	var loads []rankLoad
	for k := range last.Ranks {
		if !last.Ranks[k].Running.OK {
			continue
		}
		l := rankLoad{name: last.Ranks[k].Name, untouched: last.Ranks[k].Untouched}
		var running, waiting, output, secs float64
		outputOK := true
		for w := range windows(r, selected) {
			if len(w.Ranks) != len(last.Ranks) {
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

// evenLoad predicts the gain of spreading the same requests evenly over the ranks; the zero gain
// if no rank ran a request.
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
	if slots := r.Facts.MaxNumSeqs; slots.Known {
		each = min(each, float64(slots.Value))
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
		Low: stat.Some(min(low, low*imbalanceLowShare)), Mid: stat.Some(mid), High: stat.Some(high),
	}}}
}
