package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R2, main path.
const (
	kvPressureUsage   = 0.88 // peak share of the KV pool, at least
	kvCriticalUsage   = 0.95 // peak share from which two windows are enough
	kvCriticalWindows = 2
	vramCorroborates  = 0.78 // share of the GPU's memory that is shown as support, never required

	kvPreemptingConfidence = 0.95
	kvCriticalConfidence   = 0.85
	kvPressureConfidence   = 0.70
)

func kvPressure() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.KVPressure, Code: "R2", Title: "KV cache pressure", Group: engine.GroupMemory, Impact: 5,
			Check: checkKVPressure, Significant: kvSignificant, Conclude: concludeKVPressure,
			// Seats that stay empty because the pool is full are no lack of load.
			Suppresses: []engine.FindingID{engine.KVAdmission, engine.UnderBatching},
		},
		explain: Explanation{
			Condition: []string{
				"the peak KV usage of the window reaches " + percent(kvPressureUsage) + ", or a request was preempted (alone enough: a V0 server on a CPU shows 0 % for ever)",
				"page and GPU were read within a second of each other, where a GPU is readable",
			},
			Thresholds: []Threshold{
				{"kv_usage_peak", ">=", kvPressureUsage, "ratio", fromSeed},
				{"preemptions", ">", 0, "req", fromSeed},
				{"vram_peak / vram_total (support only)", ">=", vramCorroborates, "ratio", fromSeed},
			},
			Formula: []string{
				"context of a sequence = the larger of usage x capacity / running and mean prompt + mean output",
				"sequences the pool holds = capacity / context",
				"blocks needed = sequences x blocks of one context / " + percent(kvPressureUsage) + ", one null block added",
			},
			Gate: fmt.Sprintf("one window with preemptions; or %d windows at %s and more; else %s", kvCriticalWindows, percent(kvCriticalUsage), standardGate),
			Confidence: []string{
				number(kvPreemptingConfidence) + " with preemptions",
				number(kvCriticalConfidence) + " from " + percent(kvCriticalUsage) + " usage",
				number(kvPressureConfidence) + " from " + percent(kvPressureUsage) + " usage",
			},
			Remedy: append(moreKVRemedies(),
				"fewer seats, as many as the pool holds: a latency fix, recommended only where no more KV can be had and requests are preempted",
				"not a lower --max-model-len: V1 allots blocks on demand, so it frees nothing"),
			Limits: []string{"usage counts cached blocks that nobody references as free: low usage is not an empty cache"},
		},
	}
}

func checkKVPressure(w *engine.Window, _ *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if w.Skewed {
		return lacks(inputOneClock)
	}
	if !loaded(w) {
		return idle()
	}
	peak := kvPeak(w)
	usage := figure{peak, ">=", kvPressureUsage, "ratio"}
	if preempting(w) {
		c := fired("preemptions", figure{w.Delta[engine.CounterPreemptions], ">", 0, "req"})
		c.Critical = 1
		return c
	}
	if !peak.OK {
		return lacks(inputKV)
	}
	if peak.V < kvPressureUsage {
		usage.op = "<"
		return quiet("KV peak", usage)
	}
	c := fired("KV peak", usage)
	if peak.V >= kvCriticalUsage {
		c.Critical = 2
	}
	return c
}

// kvSignificant is R2's own gate.
func kvSignificant(t engine.Tally) bool {
	return t.Critical1 >= 1 || t.Critical2 >= kvCriticalWindows || t.Significant()
}

func concludeKVPressure(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	p := poolOf(r, func(w *engine.Window) bool { return checkKVPressure(w, facts).State == engine.Fired })
	peak, preempted := r.Agg.KVPeak, stat.None
	for i := range r.Windows {
		w := &r.Windows[i]
		if w.Evaluable && !w.Skewed {
			peak = peak.Max(kvPeak(w))
			preempted = preempted.Plus(w.Delta[engine.CounterPreemptions])
		}
	}
	switch {
	case t.Critical1 > 0:
		f.Confidence = kvPreemptingConfidence
	case peak.Or(0) >= kvCriticalUsage:
		f.Confidence = kvCriticalConfidence
	default:
		f.Confidence = kvPressureConfidence
	}
	if peak.OK {
		f.Evidence = append(f.Evidence, evidence("kv_usage_peak", peak, "ratio", ">=", stat.Some(kvPressureUsage), engine.FromMeasured,
			"the KV pool was "+percent(peak.V)+" full at its peak"))
		f.Reason = "KV peak " + percent(peak.V)
	}
	if preempted.Or(0) > 0 {
		f.Evidence = append(f.Evidence, evidence("preemptions", preempted, "req", ">", stat.Some(0), engine.FromMeasured,
			counted(preempted.V, "preemption", "preemptions")+": blocks were taken from running requests, whose context is computed again"))
		f.Reason = counted(preempted.V, "preemption", "preemptions")
	}
	f.Evidence = append(f.Evidence, measured("running_mean", stat.Some(p.running*p.ranks), "req",
		fmt.Sprintf("%s ran and %s waited on average", number(p.running*p.ranks), number(p.queued*p.ranks))))
	f.Evidence = append(f.Evidence, poolEvidence(&p)...)
	if e, ok := vramEvidence(&r.Agg); ok {
		f.Evidence = append(f.Evidence, e)
	}
	if l := r.Agg.LookupRatio; l.OK && l.V >= lookupsBlocked {
		f.Evidence = append(f.Evidence, evidence("lookup_ratio", l, "", ">=", stat.Some(lookupsBlocked), engine.FromMeasured,
			"each prompt token was looked up "+number(l.V)+" times: waiting requests failed to get blocks step after step"))
	}

	m := moreKV(r, &p, p.wanted(facts), preempted.Or(0) > 0, "")
	f.Fix = m.fix
	if preempted.Or(0) == 0 && r.Agg.LookupRatio.Or(0) < lookupsBlocked {
		// Nothing was lost to the pool and nothing is known to have been held back.
		f.Fix = m.withheldIfPointless()
		if p.queued*p.ranks < nobodyWaits {
			f.Fix.Withheld = "the pool is nearly full, but no request waits for it and none was preempted: a larger one would hold the same requests"
		}
	}
	setImpact(f, 5)
}

// nobodyWaits is the mean queue below which nobody is taken to wait, in
// requests: a request passes through the queue on its way in.
const nobodyWaits = 0.5

// lookupsBlocked is the ratio of prefix lookups to prompt tokens from which
// admissions were blocked (vllm.md section 6).
const lookupsBlocked = 1.5

// poolEvidence says what the pool holds.
func poolEvidence(p *pool) []engine.Evidence {
	var out []engine.Evidence
	if p.capacity.OK {
		text := "the pool has room for " + number(p.capacity.V) + " tokens" + perRank(int(p.ranks))
		if p.est {
			text = "(est) " + text
		}
		out = append(out, evidence("kv_capacity_tokens", p.capacity, "tok", "", stat.None, p.from, text))
	}
	if p.context.OK {
		text := fmt.Sprintf("one sequence takes %s tokens by its end", number(p.context.V))
		if p.shared {
			text += ", shared prefixes counted once"
		}
		out = append(out, evidence("context_tokens", p.context, "tok", "", stat.None, engine.FromDerived, text))
	}
	if n := p.whole(); n.OK {
		out = append(out, evidence("sequences_held", n, "req", "", stat.None, engine.FromDerived,
			fmt.Sprintf("the pool holds %s at the context they reach%s", counted(n.V, "sequence", "sequences"), perRank(int(p.ranks)))))
	}
	return out
}

func vramEvidence(a *engine.Aggregate) (engine.Evidence, bool) {
	share := stat.None
	for i := range a.GPUs {
		g := &a.GPUs[i]
		share = share.Max(g.Peak[engine.GPUVRAMUsed].Div(g.Last[engine.GPUVRAMTotal]))
	}
	if !share.OK || share.V < vramCorroborates {
		return engine.Evidence{}, false
	}
	return evidence("vram_peak", share, "ratio", ">=", stat.Some(vramCorroborates), engine.FromGPU,
		"GPU memory was "+percent(share.V)+" full at its peak"), true
}
