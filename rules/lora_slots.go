package rules

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of lora-slots: requests wait for the adapters of others, not for capacity.
const (
	loraWaiting = 1.0 // requests that wait, at least
	// loraSlack is how far, in adapters, the mean of a window may lie below the limit: requests end
	// and their adapter's place is free until the next step.
	loraSlack = 0.5
	// loraQueue is the mean number of adapters that wait for a place, at least.
	loraQueue = 0.5
	loraKV    = kvPressureUsage // peak KV usage, below

	loraConfidence     = 0.90
	loraLessConfidence = 0.50 // only the gauge of deferred requests shows it
	// loraOverhead is the share of throughput that steps with many adapters may cost: S-LoRA
	// (arXiv 2311.03285, section 7) and Punica (arXiv 2310.18547, figure 11) measure up to a quarter.
	loraOverhead = 0.25
)

var loraSlots = definition{engine.Rule{
	ID: engine.LoRASlots, Code: "beyond", Title: "LoRA adapters", Group: engine.GroupSlots, Impact: 4,
	Check: checkLoRASlots, Conclude: concludeLoRASlots,
	// Few requests run because their adapters have no place in the step: more would wait for one.
	Suppresses: []engine.FindingID{engine.UnderBatching},
}, Explanation{
	Condition: []string{
		fmt.Sprintf("at least %v request waits although a slot is free, the KV peak is below %s, and no request was preempted", loraWaiting, figure.PercentSign(loraKV)),
		"the running requests use as many LoRA adapters as one step takes (--max-loras), and requests of other adapters wait, which are deferred if the page counts those",
		"on a page without adapters, if --enable-lora is known to be set: requests are deferred, that is, they wait for something other than capacity",
	},
	Thresholds: []Threshold{
		{"waiting", ">=", loraWaiting, "req", fromDecision},
		{"max_loras - adapters of running requests", "<=", loraSlack, "", fromJudgement},
		{"adapters that wait for a place", ">=", loraQueue, "", fromJudgement},
		{"kv_usage_peak", "<", loraKV, "ratio", fromDecision},
	},
	Formula: []string{
		"adapters = the most that running and waiting requests used within half a minute",
		fmt.Sprintf("gain: all waiting requests run, as far as slots and pool allow; its lower end is reduced by %s, because steps with several adapters compute more", figure.PercentSign(loraOverhead)),
		"memory of an adapter = rank x (inputs + outputs) of each linear layer x 2 bytes",
	},
	Confidence: []string{
		fmt.Sprintf("%v if the page shows the adapters", loraConfidence),
		fmt.Sprintf("%v if only the gauge of deferred requests shows it: they may wait for a KV transfer or a grammar", loraLessConfidence),
	},
	Remedy: []string{"raise --max-loras to the adapters that are used at once", "or send fewer adapters to each replica"},
	Limits: []string{"adapters that one step takes are known from the page or the launch; with several engines the page shows the adapters of the one that stepped last"},
}}

func checkLoRASlots(w *engine.Window, f *engine.Facts) engine.Check {
	if result, ok := underLoad(w); !ok {
		return result
	}
	if !w.Waiting.OK {
		return lacks(inputWaiting)
	}
	if w.Waiting.V < loraWaiting {
		return above("requests waiting", w.Waiting, loraWaiting, "req")
	}
	if preempting(w) {
		return notFired("the KV pool is the limit: preemptions", comparison{w.Delta[engine.CounterPreemptions], ">", 0, "req"})
	}
	if peak := kvPeak(w); peak.OK && peak.V >= loraKV {
		return notFired("KV peak", comparison{peak, ">=", loraKV, "ratio"})
	}
	if slots := slotsOf(w, f); slots.OK && (slotsInUse(w, slots.V) || aboveSlots(w, slots.V)) {
		return notFired("all slots in use: running", comparison{w.Running, ">=", slots.V * float64(ranks(w)), "req"})
	}
	most := w.LoRAs.Max
	if !most.OK {
		most = engine.FactOpt(f.MaxLoRAs)
	}
	if !w.LoRAs.Running.OK || !most.OK {
		return deferredByLoRA(w, f)
	}
	if w.LoRAs.Running.V < most.V-loraSlack {
		return notFired("adapters in use", comparison{w.LoRAs.Running, "<", most.V, ""})
	}
	if w.Deferred.OK && w.Deferred.V < loraWaiting {
		return above("deferred requests", w.Deferred, loraWaiting, "req")
	}
	return above("adapters that wait for a place", w.LoRAs.Waiting, loraQueue, "")
}

// deferredByLoRA checks a page that does not show adapters.
func deferredByLoRA(w *engine.Window, f *engine.Facts) engine.Check {
	switch {
	case !f.EnableLoRA.Value:
		return engine.Check{State: engine.NotFired, Why: "no LoRA adapter is in use"}
	case !w.Deferred.OK:
		return lacks(inputAdapters)
	}
	return above("deferred requests", w.Deferred, loraWaiting, "req")
}

// adapters is what a run shows of LoRA.
type adapters struct {
	most    int      // that one step takes
	wanted  int      // that running and waiting requests used at once
	waiting stat.Opt // requests of all ranks that wait, mean
	seen    bool     // the page shows the adapters
}

func adaptersOf(r *engine.Run) adapters {
	a := adapters{most: max(1, r.Facts.MaxLoRAs.Value)}
	var waiting stat.Average
	for w := range windows(r, firesIn(r, checkLoRASlots)) {
		waiting.Add(w.Waiting, w.Seconds())
		if w.LoRAs.Max.OK {
			a.most = int(w.LoRAs.Max.V)
		}
		if w.LoRAs.Wanted.OK {
			a.wanted, a.seen = max(a.wanted, int(w.LoRAs.Wanted.V)), true
		}
	}
	a.waiting = waiting.Mean()
	return a
}

func concludeLoRASlots(r *engine.Run, t engine.Tally, f *engine.Finding) {
	a := adaptersOf(r)
	p := poolOf(r, firesIn(r, checkLoRASlots))
	p.queued = a.waiting.Or(0) / p.ranks
	waiting := figure.Counted(a.waiting.Or(0), "request")
	free := " although slots and KV blocks were free"
	if !a.seen {
		f.Confidence = loraLessConfidence
		f.Reason = waiting + " deferred, with --enable-lora and --max-loras " + strconv.Itoa(a.most)
		addEvidence(f, compared("waiting_mean", a.waiting, "req", ">=", loraWaiting, engine.FromMeasured, waiting+" waited"+free+"; the page does not show their adapters"))
		f.Missing = append(f.Missing, inputAdapters)
		f.Fix = moreLoRAs(r, &p, a)
		return
	}
	f.Confidence = loraConfidence
	f.Reason = fmt.Sprintf("%s in use, one step takes %d", figure.Counted(a.wanted, "LoRA adapter"), a.most)
	addEvidence(f,
		compared("lora_adapters", stat.Some(float64(a.wanted)), "", ">", float64(a.most), r.Facts.MaxLoRAs.Source,
			fmt.Sprintf("running and waiting requests used %s within half a minute; one step takes %d", figure.Counted(a.wanted, "adapter"), a.most)),
		compared("waiting_mean", a.waiting, "req", ">=", loraWaiting, engine.FromMeasured, waiting+" waited"+free))
	addKnownEvidence(f, measured("waiting_deferred_mean", r.Agg.Deferred, "req",
		figure.Counted(r.Agg.Deferred.V, "request")+" of them deferred: no capacity flag helps"))
	addKnownEvidence(f, measured("kv_usage_mean", p.usage, "ratio", "the KV pool is "+figure.PercentSign(p.usage.V)+" full"))
	f.Fix = moreLoRAs(r, &p, a)
}

// moreLoRAs returns the fix: as many adapters in a step as were used at once, or twice as many as now
// if the page does not show them.
func moreLoRAs(r *engine.Run, p *pool, a adapters) *engine.Fix {
	facts, to := r.Facts, max(a.wanted, a.most+1)
	why := fmt.Sprintf("A step takes %s, and requests for %d were in the server: the others wait although slots and KV blocks are free.", figure.Counted(a.most, "LoRA adapter"), a.wanted)
	if !a.seen {
		to = 2 * a.most
		why = fmt.Sprintf("Requests wait although slots and KV blocks are free, and LoRA is on: a step takes %s. The page does not show which adapters are used, so they may wait for something else.", figure.Counted(a.most, "LoRA adapter"))
	}
	from := ""
	if facts.MaxLoRAs.Known {
		from = strconv.Itoa(a.most)
	}
	fix := flagFixFrom(facts, lever.LoRAs, from, strconv.Itoa(to), why, adapterCost(facts, to-a.most), "steps with several adapters compute a little more")
	g := loraGain(r, p)
	fix.Predicted = g.predictions()
	fix.Why += g.sentence()
	reject(fix, "--max-num-seqs", "slots are free: the queued requests wait for a place for their adapter")
	reject(fix, "fewer adapters for each replica", "needs no memory, but a router that sends each adapter to its own replica")
	return fix
}

// loraGain predicts the gain of running all waiting requests, as far as slots and pool allow. A step
// with several adapters computes more, which lowers the lower end.
func loraGain(r *engine.Run, p *pool) gain {
	slots := int(math.Ceil(p.running + p.queued))
	if s := runSlots(r); s.OK {
		slots = min(slots, int(s.V))
	}
	g := raiseSlots(r, p, slots)
	if low := &g.Throughput.Low; low.OK {
		low.V = (1+low.V)*(1-loraOverhead) - 1
	}
	return g
}

// adapterCost states the memory that more adapters take.
func adapterCost(f *engine.Facts, more int) string {
	if bytes := adapterBytes(&f.ModelSpec, f.MaxLoRARank.Value); f.ModelKnown && f.MaxLoRARank.Known && bytes > 0 {
		tp := float64(max(1, f.TensorParallel.Value))
		return fmt.Sprintf("GPU memory, which the KV pool loses: about %s for each of %s of rank %d on each GPU (est)",
			figure.Value(bytes/tp, "B"), figure.Counted(more, "more adapter"), f.MaxLoRARank.Value)
	}
	return "GPU memory for each more adapter, which the KV pool loses: its size depends on --max-lora-rank and the model"
}

// adapterBytes returns the memory that vLLM reserves for one adapter of a rank: two matrices of 16-bit
// numbers beside each linear layer of attention and FFN (vllm/lora/layers). It is 0 for a model whose
// shape is unknown, and for mixtures of experts and latent attention, whose layers differ.
func adapterBytes(m *catalog.Model, rank int) float64 {
	if m.Hidden <= 0 || m.Layers <= 0 || m.Heads <= 0 || m.HeadDim <= 0 || m.Intermediate <= 0 || m.Experts > 0 || m.Attention == catalog.AttentionMLA {
		return 0
	}
	hidden, q, kv, ffn := float64(m.Hidden), float64(m.Heads*m.HeadDim), float64(m.KVHeads*m.HeadDim), float64(m.Intermediate)
	widths := (hidden + q) + 2*(hidden+kv) + (q + hidden) + 2*(hidden+ffn) + (ffn + hidden)
	return float64(rank) * widths * float64(m.Layers) * catalog.BF16.Bytes()
}
