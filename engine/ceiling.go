package engine

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ceilings fills the run's PROFILE and physical ceilings from its facts and aggregates,
// with a reason for each that is absent.
func ceilings(r *Run) {
	r.Ceiling = &Ceiling{}
	r.Offered = r.estimateOffered()
	r.classic()
	r.physical()
}

func (r *Run) classic() {
	a, f, c := &r.Agg, r.Facts, r.Ceiling
	if !f.GPUKnown || !f.ModelKnown {
		c.ClassicReason = "needs " + strings.Join(absentHardware(f), " and ")
		return
	}
	in := roofline.ClassicInput{
		GPU:               f.GPU,
		TotalParams:       f.ModelSpec.TotalParams,
		ActiveParams:      f.ModelSpec.ActiveParams,
		BytesPerParam:     f.ClassicBytes,
		BytesPerParamFrom: f.ClassicBytesFrom,
		TP:                max(1, f.TensorParallel.Value),
		PromptTokens:      a.PromptLen,
		Running:           a.Running,
		GenerationPerS:    a.Rate[CounterGenerationTokens],
		PrefillShare:      a.PrefillShare,
		MaxModelLen:       FactOpt(f.MaxModelLen),
		CostPerHour:       FactOpt(f.CostPerHour),
	}
	if len(a.GPUs) > 0 {
		in.VRAMTotalBytes = a.GPUs[0].Last[GPUVRAMTotal]
	}
	classic := roofline.NewClassic(in)
	c.Classic = &classic
}

func absentHardware(f *Facts) []string {
	var out []string
	if !f.GPUKnown {
		out = append(out, "a GPU of the catalog ("+f.GPUName.Note+")")
	}
	if !f.ModelKnown {
		out = append(out, "a model of the catalog ("+f.ParamsTotal.Note+")")
	}
	return out
}

// physical evaluates the physical model at the measured operating point. A replica is one
// data-parallel rank; the ceilings are those of all ranks together.
func (r *Run) physical() {
	a, f, c := &r.Agg, r.Facts, r.Ceiling
	why := func(text string) { c.PhysicalReason, r.PerfReason = text, text }
	config, missing := ReplicaConfig(f)
	if len(missing) > 0 {
		why("needs " + strings.Join(missing, ", ") + notes(f))
		return
	}
	if a.Running.Or(0) <= 0 {
		why("no request was seen running while tokens moved")
		return
	}
	ranks := max(1, a.Ranks)
	m, assumed, ok := r.measuredPoint(float64(ranks)) // of the page, which may show fewer than the server has
	if !ok {
		why("the mean context of a running request is not known: no KV usage and no prompt lengths")
		return
	}
	operating, perf, err := config.Operate(m, ranks)
	if err != nil {
		why(err.Error())
		return
	}
	operating.Assumptions = append(operating.Assumptions, assumed...)
	c.Physical, r.Perf = &operating, perf
	if busy := r.busyRanks(); busy <= unevenRanks*float64(ranks) {
		uneven, _, _ := r.measuredPoint(busy)
		if even, rank, err := config.Operate(uneven, ranks); err == nil {
			operating.BestTokensPerS, operating.BestBatch, r.busyRank = even.BestTokensPerS, even.BestBatch, rank
		}
	}
	if g := a.Rate[CounterGenerationTokens]; g.OK && impossible(config, m, m.Resident, ranks, g.V) {
		measured, ideal := figure.Compared(g.V, operating.IdealTokensPerS.V, "tok/s")
		c.Impossible = fmt.Sprintf("measured %s is above the ideal ceiling of %s: model, GPU, dtype or tensor parallelism is misread (%s, %s weights, %s, TP %d)",
			measured, ideal, f.ModelSpec.ID, f.WeightDType.Value, f.GPU.Name, config.TP)
		r.Perf = nil
		r.PerfReason = c.Impossible
	}
}

// unevenRanks is the share of busy ranks up to which the mean of all ranks does not describe the steps of one: of
// two ranks, one runs three times as many requests as the other.
const unevenRanks = 0.8

// busyRanks returns the effective number of data-parallel ranks: the square of the sum of their running requests over
// the sum of the squares. It is that of all ranks if they run equally many, and 1 if one runs all.
func (r *Run) busyRanks() float64 {
	var busy stat.Average
	for i := range r.Windows {
		w := &r.Windows[i]
		sum, squares := 0.0, 0.0
		for k := range w.Ranks {
			running := w.Ranks[k].Running.Or(0)
			sum, squares = sum+running, squares+running*running
		}
		if w.Evaluable && squares > 0 {
			busy.Add(stat.Some(sum*sum/squares), sum*w.Seconds())
		}
	}
	return busy.Mean().Or(float64(max(1, r.Agg.Ranks)))
}

// measuredPoint returns the measurements of one data-parallel rank, with the load divided equally among ranks, in the
// terms of the physical model, and the assumptions made. ok is false if the context of a running request is unknown.
func (r *Run) measuredPoint(ranks float64) (m roofline.Measured, assumed []string, ok bool) {
	a, f := &r.Agg, r.Facts
	m = roofline.Measured{
		StepSeconds:  a.StepTime,
		OutputPerS:   a.Rate[CounterGenerationTokens].Times(1 / ranks),
		PrefillPerS:  a.PrefillPerS.Times(1 / ranks),
		Waiting:      a.Waiting.Times(1 / ranks),
		TTFTSeconds:  a.Mean(HistTTFT),
		QueueSeconds: a.Mean(HistQueue), PrefillSeconds: a.Mean(HistPrefill),
		PreemptsPerS: a.Rate[CounterPreemptions].Times(1 / ranks),
		KVCapacity:   FactOpt(f.KVCapacityTokens), MaxNumSeqs: FactOpt(f.MaxNumSeqs), TokenBudget: FactOpt(f.MaxNumBatchedTokens),
		Offered: r.Offered, FrontShare: r.FrontShare(),
	}
	if prompt := a.Rate[CounterPromptTokens]; !m.PrefillPerS.OK && prompt.OK {
		// Counting cached tokens as computed overstates the work. A ceiling that ignored
		// prefill would call a server slow that only computes prompts.
		m.PrefillPerS = prompt.Times(1 / ranks)
		assumed = append(assumed, "every prompt token is taken as computed: which of them were cached is not known")
	}
	m.Batch = a.Running.V / ranks
	m.PerSequence = 1
	if drafts := a.Rate[CounterSpecDrafts]; drafts.OK && drafts.V > 0 {
		m.PerSequence = 1 + a.Rate[CounterSpecAccepted].Or(0)/drafts.V
	}
	read, resident := r.context()
	if !read.OK {
		return m, nil, false
	}
	m.Context, m.Resident = read.V, resident
	if a.PromptLen.OK && a.OutputLen.OK {
		m.Workload = roofline.Workload{Prompt: a.PromptLen.V, Computed: a.PromptLen.V * (1 - a.HitRate.Or(0)), Output: a.OutputLen.V}
		m.WorkloadKnown = true
	} else if p, n := a.Rate[CounterPromptTokens], a.Rate[CounterRequestSuccess]; p.OK && n.OK && n.V > 0 && a.Rate[CounterGenerationTokens].OK {
		prompt := p.V / n.V
		m.Workload = roofline.Workload{Prompt: prompt, Computed: prompt * (1 - a.HitRate.Or(0)), Output: a.Rate[CounterGenerationTokens].V / n.V}
		m.WorkloadKnown = true
	}
	return m, assumed, true
}

// impossible reports whether an output rate exceeds the ideal ceiling. The ceiling is taken
// at the shorter of both contexts, so that it is an upper bound.
func impossible(c roofline.Config, m roofline.Measured, resident stat.Opt, ranks int, perS float64) bool {
	m.Context = min(m.Context, resident.Or(m.Context))
	o, _, err := c.Operate(m, ranks)
	return err == nil && o.Impossible(perS)
}

// context returns the tokens that a running request reads from the KV cache in a step, and
// the tokens that it holds of the pool. The pool counts shared prefix blocks once, so the
// held tokens are a lower bound of those read: each sequence reads its whole context.
// Without a known pool both are the mean prompt plus half the output.
func (r *Run) context() (read, resident stat.Opt) {
	a, f := &r.Agg, r.Facts
	if a.PromptLen.OK {
		read = stat.Some(a.PromptLen.V + a.OutputLen.Or(0)/2)
	}
	if f.KVCapacityTokens.Known && a.KVPerRequest.Or(0) > 0 {
		resident = a.KVPerRequest.Times(f.KVCapacityTokens.Value)
	}
	return read.Max(resident), resident
}

func notes(f *Facts) string {
	var out []string
	if !f.GPUKnown && f.GPUName.Note != "" {
		out = append(out, f.GPUName.Note)
	}
	if !f.ModelKnown && f.ParamsTotal.Note != "" {
		out = append(out, f.ParamsTotal.Note)
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}
