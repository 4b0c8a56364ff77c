package rules

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R1.
const (
	underOccupancy    = 0.25 // share of the seats taken, below
	underBacklog      = 2    // requests waiting, below
	underPrefillShare = 0.40 // seconds of prefill per second of window, below
	underPrefillSum   = 4.0  // seconds of prefill in a window, below
	underConfidence   = 0.80
)

func underBatching() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.UnderBatching, Code: "R1", Title: "Under-batching", Group: engine.GroupLoad, Impact: 3,
			Check: checkUnderBatching, Conclude: concludeUnderBatching, Unjudged: offerSeats,
		},
		explain: Explanation{
			Condition: []string{
				fmt.Sprintf("requests run, and in the fullest data-parallel rank they take less than %s of the seats", percent(underOccupancy)),
				fmt.Sprintf("fewer than %d requests wait", underBacklog),
				fmt.Sprintf("prefill does not fill the time: neither %s of the window nor %s, per rank; on pages without its histogram, time to first token or the prompt tokens at this hardware's pace bound it from above", percent(underPrefillShare), seconds(underPrefillSum)),
				fmt.Sprintf("or, beyond the documented rule: the seats are all taken, as few wait, and running is below %s of what the KV pool and the ridge batch would hold", percent(underOccupancy)),
			},
			Thresholds: []Threshold{
				{"running / max_num_seqs", "<", underOccupancy, "ratio", fromSeed},
				{"waiting", "<", underBacklog, "req", fromSeed},
				{"prefill seconds / window seconds", "<", underPrefillShare, "ratio", fromSeed},
				{"prefill seconds in a window", "<", underPrefillSum, "s", fromSeed},
				{"running / what pool and ridge hold", "<", underOccupancy, "ratio", fromDecisions},
			},
			Formula: []string{
				"concurrency to reach = the least of the seats, the sequences that fill the KV pool to " + percent(seatKVHeadroom) + " at the context they reach, and the ridge batch",
				"ridge batch = tokens per step at which the linear layers take as long to compute as their weights to read; dense: peak FLOP/s x bytes per weight / (2 x memory bandwidth)",
				"gain from the physical model as a closed loop: X(B) at the new concurrency over X(B) now",
			},
			Confidence: []string{number(underConfidence) + " fixed"},
			Remedy: []string{
				"raise client concurrency: no flag of the server helps",
				"not recommended where the physical model shows that the GPU is full at this batch already, or the KV pool holds no more",
			},
			Limits: []string{
				"needs the seats (max_num_seqs) and, for the documented condition, the prefill histogram",
				"suppressed by front-end: where the API server is the limit, that few run is its consequence",
			},
		},
	}
}

func checkUnderBatching(w *engine.Window, f *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if !working(w) {
		return idle()
	}
	if frozen(w) {
		return still(w)
	}
	seats := seatsOf(w, f)
	if !seats.OK {
		return lacks(inputSeats)
	}
	if !w.Waiting.OK {
		return lacks(inputWaiting)
	}
	if w.Waiting.V >= underBacklog {
		return quiet("requests wait", figure{w.Waiting, ">=", underBacklog, "req"})
	}
	busiest := fullest(w)
	occupancy := figure{stat.Some(busiest / seats.V), "<", underOccupancy, "ratio"}
	if occupancy.value.V >= underOccupancy {
		if !seatsTaken(w, seats.V) {
			occupancy.op = ">="
			return quiet("seats taken", occupancy)
		}
		room := roomBeyondSeats(w, f)
		if !room.OK {
			occupancy.op = ">="
			return quiet("seats taken, and what pool and ridge would hold is not known", occupancy)
		}
		occupancy = figure{stat.Some(busiest / room.V), "<", underOccupancy, "ratio"}
		if occupancy.value.V >= underOccupancy {
			occupancy.op = ">="
			return quiet("share taken of what pool and ridge would hold", occupancy)
		}
		if c := prefillGate(w, f); c.State == engine.Suppressed {
			return c
		}
		return fired("share taken of what pool and ridge would hold", occupancy)
	}
	if c := prefillGate(w, f); c.State != engine.Fired {
		return c
	}
	return fired("seats taken", occupancy)
}

// prefillGate keeps R1 silent where prefill fills the time of a rank. The
// histogram counts finished requests, so the sum is the window's mass. Pages
// without it are judged by what bounds prefill from above; where no bound is
// below the limits, the histogram is missing and nothing is guessed.
func prefillGate(w *engine.Window, f *engine.Facts) engine.Check {
	h := &w.Hist[engine.HistPrefill]
	if !h.OK {
		if prefillBounded(w, f) {
			return engine.Check{State: engine.Fired}
		}
		return lacks(inputPrefill)
	}
	sum := h.Sum / float64(ranks(w))
	share := figure{stat.Some(sum / w.Seconds()), ">=", underPrefillShare, "ratio"}
	switch {
	case share.value.V >= underPrefillShare:
		return suppressed("prefill saturated at", share)
	case sum >= underPrefillSum:
		return suppressed("prefill took, in one window,", figure{stat.Some(sum), ">=", underPrefillSum, "s"})
	}
	return engine.Check{State: engine.Fired}
}

// prefillBounded says whether prefill certainly stays below R1's limits on a
// page without its histogram: time to first token contains it, and all prompt
// tokens at the pace that this hardware reaches take at least as long as those
// that were computed.
func prefillBounded(w *engine.Window, f *engine.Facts) bool {
	below := func(sum float64) bool {
		return sum < underPrefillShare*w.Seconds() && sum < underPrefillSum
	}
	if h := &w.Hist[engine.HistTTFT]; h.OK && below(h.Sum/float64(ranks(w))) {
		return true
	}
	prompt := w.Delta[engine.CounterPromptTokens]
	if !prompt.OK || !f.GPUKnown || !f.ModelKnown {
		return false
	}
	budget := prefillChunk
	if f.MaxNumBatchedTokens.Known {
		budget = float64(f.MaxNumBatchedTokens.Value)
	}
	_, pace := replica(f).PrefillRate(budget, 0, budget)
	return pace > 0 && below(prompt.V/float64(ranks(w))/pace)
}

// prefillChunk is the prompt tokens of a step where the token budget is not
// known: vLLM's default for most hardware.
const prefillChunk = 2048.0

// roomBeyondSeats returns the requests of one rank that seatKVHeadroom of the KV
// pool and the ridge batch would both hold; absent where either is unknown.
func roomBeyondSeats(w *engine.Window, f *engine.Facts) stat.Opt {
	ridge := ridgeBatch(f)
	if !ridge.OK || !w.KV.OK || w.KV.V <= 0 {
		return stat.None
	}
	held := seatKVHeadroom * w.Running.V / float64(ranks(w)) / w.KV.V
	return stat.Some(min(held, ridge.V))
}

// ridgeBatch returns the tokens per step at which the linear layers of this
// model become compute bound (physics.md section 2): below it, one more
// sequence costs next to no time. Absent where GPU or model are not known.
func ridgeBatch(f *engine.Facts) stat.Opt {
	if !f.GPUKnown || !f.ModelKnown || !f.WeightDType.Known {
		return stat.None
	}
	ridge := replica(f).RidgeTokens()
	if ridge <= 0 {
		return stat.None
	}
	return stat.Some(ridge)
}

// replica is engine.ReplicaConfig without its list of what is missing, which
// allocates.
func replica(f *engine.Facts) roofline.Config {
	return roofline.Config{
		GPU: f.GPU, Model: f.ModelSpec, TP: max(1, f.TensorParallel.Value), PP: 1, ExpertParallel: f.ExpertParallel.Value,
		Weight: catalog.DType(f.WeightDType.Value), KV: catalog.DType(f.KVCacheDType.Value), Compute: catalog.DType(f.ComputeDType.Value),
	}
}

func concludeUnderBatching(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	f.Confidence = underConfidence
	in := func(w *engine.Window) bool { return checkUnderBatching(w, facts).State == engine.Fired }
	p := poolOf(r, in)
	seats := runSeats(r)
	full := seats.OK && p.running >= seats.V*(1-seatSlack)-seatMargin

	f.Evidence = append(f.Evidence,
		evidence("running_mean", stat.Some(p.running), "req", "", seats, engine.FromMeasured,
			fmt.Sprintf("%s ran at once%s; there are %s seats", number(p.running), perRank(int(p.ranks)), number(seats.V))),
		evidence("waiting_mean", stat.Some(p.queued*p.ranks), "req", "<", stat.Some(underBacklog), engine.FromMeasured,
			fmt.Sprintf("fewer than %d waited: the clients do not offer more", underBacklog)))
	f.Reason = fmt.Sprintf("%s of the seats taken (limit %s)", percent(p.running/seats.V), percent(underOccupancy))

	room, bound := seats, "the seats"
	if full {
		room = stat.None
		f.Reason = "all seats are taken, and they are fewer than a quarter of what pool and ridge would hold"
	}
	if held := p.room(); held.OK && (!room.OK || held.V < room.V) {
		room, bound = held, percent(seatKVHeadroom)+" of the KV pool"
	}
	if ridge := ridgeBatch(facts); ridge.OK && (!room.OK || ridge.V < room.V) {
		room, bound = stat.Some(math.Floor(ridge.V)), "the ridge batch"
	}
	if !room.OK {
		room, bound = seats, "the seats"
	}
	if u := p.usage; u.OK {
		f.Evidence = append(f.Evidence, measured("kv_usage_mean", u, "ratio", "the KV pool is "+percent(u.V)+" full"))
	}
	f.Fix = moreClients(r, &p, room.V, bound, full)
	setImpact(f, 3)
}

// moreClients is the fix of R1: nothing on the server, except that clients who
// fill every seat find no more of them.
func moreClients(r *engine.Run, p *pool, room float64, bound string, full bool) *engine.Fix {
	now, to := p.running*p.ranks, float64(seatsWithin(room))*p.ranks
	fix := &engine.Fix{
		Kind: engine.KindClient,
		From: number(math.Round(now)), To: number(to),
		Command: fmt.Sprintf("send more requests at once: about %s run now, up to %s fit", number(now), number(to)),
		Why: fmt.Sprintf("The server has room that nobody uses: %s would hold %s requests at once and %s run. No flag of the server helps.",
			bound, number(to), number(now)),
	}
	if full {
		fix.Command += fmt.Sprintf("; raise --max-num-seqs to %d with it", seatsWithin(room))
		fix.Rejected = append(fix.Rejected, engine.Rejected{
			What: fmt.Sprintf("--max-num-seqs %d alone", seatsWithin(room)),
			Why:  "nobody waits for a seat: more of them stay empty until the clients send more at once",
		})
	}
	if to <= now*(1+gainFloor) {
		fix.To, fix.Command = fix.From, "send more requests at once"
		fix.Why = fmt.Sprintf("Seats stand empty, but %s takes no more than the %s requests that run.", bound, number(now))
		fix.Price = []string{slowerTokens(gain{})}
		fix.Withheld = fmt.Sprintf("%s holds no more than the %s requests that run already", bound, number(now))
		return fix
	}
	g := moreConcurrency(r, p, to/p.ranks, full)
	fix.Price = []string{slowerTokens(g)}
	fix.Predicted = g.predictions()
	fix.Why += g.sentence()
	if g.worthless() {
		fix.Withheld = g.because(fmt.Sprintf("the GPU is full at low seat occupancy: the physical model expects %s tokens per second from %s requests at once",
			change(g.Throughput.Mid.V), number(to)))
	}
	return fix
}

// runSeats returns the seats of one rank over a run.
func runSeats(r *engine.Run) stat.Opt {
	for i := range r.Windows {
		if s := seatsOf(&r.Windows[i], r.Facts); s.OK {
			return s
		}
	}
	return stat.None
}

// offerSeats says, where the seats are unknown, what they look like.
func offerSeats(r *engine.Run, f *engine.Finding) {
	if runSeats(r).OK {
		return
	}
	f.Reason = "max_num_seqs is not known: give -m"
	n := flatRunning(r)
	if n == 0 {
		return
	}
	f.Evidence = append(f.Evidence, engine.Evidence{
		Name: "max_num_seqs", Value: stat.Some(float64(n)), Unit: "req", Source: engine.FromDerived,
		Text: fmt.Sprintf("(est) running stays at %d while requests wait: that may be the seats; give -m %d to have it judged", n, n),
	})
}
