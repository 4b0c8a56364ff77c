package rules

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R5.
const (
	seatQueueRatio = 0.30 // queued / (running + queued), at least
	seatKVHeadroom = 0.80 // peak KV usage below which more seats have room

	// computingGain is the gain that more seats must promise where the steps compute:
	// every token then comes slower, by as much as the batch grows.
	computingGain = 0.06

	seatConfidence      = 0.90 // TTFT and KV usage both present
	seatBlindConfidence = 0.60 // one or both absent
)

func seatSaturation() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.SeatSaturation, Code: "R5", Title: "Seat saturation", Group: engine.GroupSeats, Impact: 4,
			Check: checkSeatSaturation, Conclude: concludeSeatSaturation, Unjudged: offerSeats,
		},
		explain: Explanation{
			Condition: []string{
				fmt.Sprintf("running lies within %s requests of the seats, in every data-parallel rank; a window whose peak reached them may lie %s below in the mean or median of its polls, with short answers %s / mean output (%s at most), because vLLM counts running after it removed what finished in the step", number(seatMargin), percent(seatSlack), number(finishSlack), percent(mostSlack)),
				"at least " + percent(seatQueueRatio) + " of the requests in the server wait for capacity",
				"running above the seats skips the rule: the cap is not the constraint then",
			},
			Thresholds: []Threshold{
				{"|running - max_num_seqs|", "<=", seatMargin, "req", fromSeed},
				{"1 - running / max_num_seqs, where the peak reached the seats", "<=", seatSlack, "ratio", fromVLLM},
				{"the same x mean output, with short answers", "<=", finishSlack, "tok", fromVLLM},
				{"queued / (running + queued)", ">=", seatQueueRatio, "ratio", fromSeed},
				{"kv_usage_peak: raise the seats", "<", seatKVHeadroom, "ratio", fromSeed},
			},
			Formula: []string{
				"seats needed = running + queued, rounded up to a size of which vLLM captures a CUDA graph (1, 2, 4, steps of 8 to 256, of 16 above), per rank",
				"never more than fill the KV pool to " + percent(seatKVHeadroom) + " at the context they reach, nor than max_num_batched_tokens",
				"gain = X(min(seats, running + queued, pool)) / X(running) - 1 of the physical model",
			},
			Confidence: []string{
				number(seatConfidence) + " where time to first token and KV usage are both present",
				number(seatBlindConfidence) + " where one is absent",
			},
			Remedy: []string{
				"KV peak below " + percent(seatKVHeadroom) + ": raise --max-num-seqs",
				"KV peak from " + percent(seatKVHeadroom) + ": do not raise the seats; more KV or a replica",
				"not recommended where the physical model shows that more seats gain nothing, or where the steps are compute bound and the gain is below " + percent(computingGain),
			},
			Limits: []string{"no vLLM release exports max_num_seqs: where the launch command cannot be read, give -m"},
		},
	}
}

func checkSeatSaturation(w *engine.Window, f *engine.Facts) engine.Check {
	if c, ok := underLoad(w); !ok {
		return c
	}
	seats := seatsOf(w, f)
	if !seats.OK {
		return lacks(inputSeats)
	}
	if !queued(w).OK {
		return lacks(inputWaiting)
	}
	if aboveSeats(w, seats.V) {
		return quiet("running is above max_num_seqs, so the cap is not the constraint: running", figure{stat.Some(fullest(w)), ">", seats.V, "req"})
	}
	if !seatsTakenWithin(w, seats.V, shortSlack(w)) {
		return quiet("running", figure{stat.Some(emptiest(w)), "<", seats.V, "req"})
	}
	ratio := figure{queueRatio(w), ">=", seatQueueRatio, "ratio"}
	if ratio.value.Or(0) < seatQueueRatio {
		ratio.op = "<"
		if w.Deferred.Or(0) > 0 {
			return quiet("queue ratio without requests deferred for another reason", ratio)
		}
		return quiet("queue ratio", ratio)
	}
	return fired("queue ratio with all seats taken", ratio)
}

func concludeSeatSaturation(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	in := func(w *engine.Window) bool { return checkSeatSaturation(w, facts).State == engine.Fired }
	p := poolOf(r, in)
	seats := runSeats(r).V
	peak := stat.None
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Evaluable && in(w) {
			peak = peak.Max(kvPeak(w))
		}
	}
	ttft := r.Agg.Mean(engine.HistTTFT).Max(r.Agg.P99(engine.HistTTFT)).Max(r.Agg.Lifetime[engine.HistTTFT])
	f.Confidence = seatBlindConfidence
	if ttft.OK && peak.OK {
		f.Confidence = seatConfidence
	}
	ratio := stat.Some(p.queued).Div(stat.Some(p.running + p.queued))
	f.Reason = fmt.Sprintf("all %s seats taken, queue ratio %s", number(seats), percent(ratio.Or(0)))
	f.Evidence = append(f.Evidence,
		evidence("running_mean", stat.Some(p.running), "req", ">=", stat.Some(seats-seatMargin), engine.FromMeasured,
			fmt.Sprintf("%s ran at once on %s seats%s", number(p.running), number(seats), perRank(int(p.ranks)))),
		evidence("queue_ratio", ratio, "ratio", ">=", stat.Some(seatQueueRatio), engine.FromMeasured,
			fmt.Sprintf("%s waited, %s of all requests in the server", number(p.queued*p.ranks), percent(ratio.Or(0)))))
	if peak.OK {
		f.Evidence = append(f.Evidence, evidence("kv_usage_peak", peak, "ratio", "<", stat.Some(seatKVHeadroom), engine.FromMeasured,
			"the KV pool was "+percent(peak.V)+" full at its peak"))
	} else {
		f.Missing = append(f.Missing, inputKV)
	}
	if q := r.Agg.Mean(engine.HistQueue); q.OK {
		f.Evidence = append(f.Evidence, measured("queue_mean_s", q, "s", "a request waited "+seconds(q.V)+" for its seat"))
	}
	f.Evidence = append(f.Evidence, poolEvidence(&p)...)
	if !ttft.OK {
		f.Missing = append(f.Missing, inputTTFT)
	}
	f.Fix = moreSeats(r, &p, int(seats), peak)
	setImpact(f, 4)
}

// moreSeats chooses between more seats and more KV, and computes the number.
func moreSeats(r *engine.Run, p *pool, seats int, peak stat.Opt) *engine.Fix {
	need := max(seatsFor(p.running+p.queued), seatsFor(float64(seats)+1))
	to, limits := seatLimits(r.Facts, p, need)
	noRoom, room := "", p.room()
	switch {
	case peak.OK && peak.V >= seatKVHeadroom:
		noRoom = fmt.Sprintf("the KV pool is %s full at its peak: more seats would only preempt each other", percent(peak.V))
	case room.OK && seatsWithin(room.V) <= seats:
		noRoom = fmt.Sprintf("%s fill the KV pool to %s at the context they reach", counted(room.V, "sequence", "sequences"), percent(seatKVHeadroom))
	}
	if noRoom != "" {
		return poolBeforeSeats(r, p, seats, need, noRoom)
	}
	taken := fmt.Sprintf("All %s%s are taken while %s requests wait", counted(float64(seats), "seat", "seats"), perRank(int(p.ranks)), number(p.queued*p.ranks))
	from := strconv.Itoa(seats)
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-seqs", From: from, To: strconv.Itoa(to),
		Command: setFlag(r.Facts, "--max-num-seqs", from, strconv.Itoa(to), r.Facts.MaxNumSeqs.Source),
		Price:   []string{priceRestart},
		Risk:    1,
	}
	switch {
	case to <= seats:
		fix.To, fix.Withheld = from, joinAnd(limits)
		fix.Command = "raise --max-num-batched-tokens before --max-num-seqs"
		fix.Why = taken + ", but they cannot be raised: " + joinAnd(limits) + "."
		return fix
	case to < need:
		fix.Why = fmt.Sprintf("%s; %d is what can be held of them: %s.", taken, to, joinAnd(limits))
	default:
		fix.Why = fmt.Sprintf("%s; %d seats hold those that run and wait.", taken, to)
	}
	g := raiseSeats(r, p, to)
	fix.Predicted = g.predictions()
	fix.Why += g.sentence()
	fix.Price = append(fix.Price, seatPrice(p, g, to)...)
	if g.worthless() {
		fix.Withheld = g.because(fmt.Sprintf("more seats gain nothing here: the physical model expects %s tokens per second from %d seats", change(g.Throughput.Mid.V), to))
	} else if computes(r) && g.Throughput.Mid.V < computingGain {
		fix.Withheld = fmt.Sprintf("the steps compute most of their time: %d seats promise no more than %s tokens per second, and %s", to, change(max(0, g.Throughput.Mid.V)), slowerTokens(g))
	}
	fix.Rejected = append(fix.Rejected, engine.Rejected{
		What: "a replica", Why: "this one has room left: seats cost a restart, not a GPU",
	})
	return fix
}

// computes says whether the tensor cores set the pace of the run's steps: a
// larger batch then takes longer in proportion, and only the rest of the step is
// left to share.
func computes(r *engine.Run) bool {
	return r.Perf != nil && r.Perf.Now.Achievable.Binding() == "compute"
}

// poolBeforeSeats is the fix where the pool has no room for more seats: more KV
// first. Seats follow as far as it then reaches, in a change of their own: what is
// predicted is the first alone, and both together only decide whether it is worth
// to begin.
func poolBeforeSeats(r *engine.Run, p *pool, seats, need int, noRoom string) *engine.Fix {
	why := "Do not raise the seats: " + noRoom + "."
	alone := moreKV(r, p, p.running+p.queued, false, why)
	fix := alone.fix
	with := 0
	if room := p.room(); fix.Kind == engine.KindFlag && room.OK && alone.growth.OK {
		with = min(need, seatsWithin(room.V*alone.growth.V))
	}
	if with > seats {
		fix.Command += fmt.Sprintf("; with the larger pool, and only then, --max-num-seqs %d", with)
		open := *r
		if r.Perf != nil {
			perf := *r.Perf
			perf.Measured.MaxNumSeqs = stat.Some(float64(with))
			open.Perf = &perf
		}
		if both := moreKV(&open, p, p.running+p.queued, false, why); both.gain.pointless() {
			fix.Withheld = both.gain.because(fmt.Sprintf("a larger pool gains nothing here, not even with %d seats", with))
		} else {
			fix.Why += fmt.Sprintf(" Alone it ends no queue: %d seats are the change after it.", with)
		}
	} else {
		fix = alone.withheldIfPointless()
	}
	fix.Rejected = append([]engine.Rejected{{What: fmt.Sprintf("--max-num-seqs %d alone", need), Why: noRoom}}, fix.Rejected...)
	return fix
}

// seatLimits bounds the seats needed by what the server can take, with the
// reasons of each bound that holds.
func seatLimits(f *engine.Facts, p *pool, need int) (to int, limits []string) {
	to = need
	if room := p.room(); room.OK && float64(to) > room.V {
		to = seatsWithin(room.V)
		limits = append(limits, fmt.Sprintf("%s fill the KV pool to %s at the context they reach", counted(room.V, "sequence", "sequences"), percent(seatKVHeadroom)))
	}
	if b := f.MaxNumBatchedTokens; b.Known && to > b.Value {
		to = seatsWithin(float64(b.Value))
		limits = append(limits, fmt.Sprintf("--max-num-batched-tokens is %d and must not be below the seats", b.Value))
	}
	return to, limits
}

// slowerTokens says what a larger batch costs each request.
func slowerTokens(g gain) string {
	if g.ITL.Mid.OK && g.ITL.Mid.V > 0 {
		return "each request's tokens come slower: inter-token latency " + change(g.ITL.Mid.V)
	}
	return "each request's tokens come slower as more share a step"
}

// seatPrice says what fuller steps cost.
func seatPrice(p *pool, g gain, to int) []string {
	slower := slowerTokens(g)
	if !p.usage.OK {
		return []string{slower, "how full the KV pool gets is not known: its usage could not be read"}
	}
	then := min(1, p.usage.V*min(float64(to), p.running+p.queued)/max(p.running, 1))
	return []string{slower, fmt.Sprintf("KV usage rises from %s to about %s", percent(p.usage.V), percent(then))}
}
