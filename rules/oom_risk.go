package rules

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Confidence of R4, by where the bytes of a weight come from.
const (
	oomKnownConfidence    = 0.95 // DTYPE / VLLM_DTYPE, the command line or config.json
	oomCatalogConfidence  = 0.90 // kv_cache_dtype or the catalog
	oomFallbackConfidence = 0.60 // bf16 assumed
	// oomUtilization is assumed where --gpu-memory-utilization is not known.
	oomUtilization = 0.90
	// oomReserveGB is kept of each GPU for activations and the first KV blocks;
	// roofline.UsableVRAMGB takes it off.
	oomReserveGB = 3.0
)

func oomRisk() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.OOMRisk, Code: "R4", Title: "OOM risk", Group: engine.GroupMemory, Impact: 5,
			Once: judgeOOMRisk,
		},
		explain: Explanation{
			Condition: []string{
				"the weights of one tensor-parallel rank are larger than its GPU: kv_headroom_gb < 0, whatever the traffic",
				"where a KV pool or a running request proves that the weights do fit, the finding means that model, GPU or dtype is misread: listed as that, never recommended",
			},
			Thresholds: []Threshold{
				{"kv_headroom_gb = vram_total_gb - weight_gb / tp", "<", 0, "GB", fromSeed},
				{"reserve per GPU", "", oomReserveGB, "GB", fromSeed},
				{"gpu_memory_utilization where unknown", "", oomUtilization, "ratio", fromSeed},
			},
			Formula: []string{
				"weight_gb = parameters x bytes per parameter / 1e9",
				fmt.Sprintf("usable_vram = vram_total_gb x gpu_memory_utilization - %s GB", number(oomReserveGB)),
				"min_tp = ceil(weight_gb / usable_vram), then the next degree that the model's heads allow",
			},
			Confidence: []string{
				number(oomKnownConfidence) + " with the dtype from the environment, the command line or config.json",
				number(oomCatalogConfidence) + " with the dtype from kv_cache_dtype or the catalog",
				number(oomFallbackConfidence) + " with bf16 assumed",
			},
			Remedy: []string{"--tensor-parallel-size of the degree that fits", "`rooftop ceiling` answers it before a start"},
			Limits: []string{"counts every parameter of the catalog as loaded"},
		},
	}
}

func judgeOOMRisk(r *engine.Run, f *engine.Finding) {
	facts := r.Facts
	f.State = engine.NotEvaluable
	params := facts.ParamsTotal
	if !params.Known {
		params = facts.ParamsActive
	}
	bytes, confidence := weightBytes(facts)
	vram, vramFrom := vramGB(r)
	switch {
	case !params.Known || params.Value <= 0:
		f.Missing = append(f.Missing, "the model's parameters")
	case bytes <= 0:
		f.Missing = append(f.Missing, "the weights' dtype")
	}
	if !vram.OK {
		f.Missing = append(f.Missing, "the GPU's memory size")
	}
	if len(f.Missing) > 0 {
		f.Reason = "needs " + joinAnd(f.Missing)
		return
	}
	tp := max(1, facts.TensorParallel.Value)
	weights := params.Value * bytes / 1e9
	each := weights / float64(tp)
	headroom := vram.V - each
	f.Evaluable = r.Agg.Windows.Evaluable
	figures := fmt.Sprintf("%s GB of weights on a GPU of %s GB, tensor parallelism %d", number(each), number(vram.V), tp)
	if headroom >= 0 {
		f.State, f.Reason = engine.NotFired, figures
		return
	}
	f.State, f.Significant, f.Fired = engine.Fired, true, f.Evaluable
	f.Confidence, f.Reason = confidence, figures
	f.Evidence = append(f.Evidence,
		evidence("kv_headroom_gb", stat.Some(headroom), "GB", "<", stat.Some(0), vramFrom, figures),
		evidence("bytes_per_param", stat.Some(bytes), "", "", stat.None, engine.FromDerived, bytesText(facts, bytes)))
	f.Fix = moreTensorParallel(r, weights, vram.V, tp)
	if loadedWeights(r) {
		f.Title = "Weights larger than the GPU: a misreading"
		f.Fix.Withheld = "the server runs, so its weights fit: model, GPU or dtype is misread (" + bytesText(facts, bytes) + ")"
	}
	setImpact(f, 5)
}

// weightBytes returns the bytes of one parameter and the rule's confidence in
// them. What the launch or config.json says of the weights beats the documented
// order, which may take the cache's type for theirs.
func weightBytes(f *engine.Facts) (bytes, confidence float64) {
	if w := f.WeightDType; w.Known && (w.Source == engine.FromCmdline || w.Source == engine.FromConfig) && f.ClassicBytesFrom != string(engine.FromEnv) {
		if b := catalog.DType(w.Value).Bytes(); b > 0 {
			return b, oomKnownConfidence
		}
	}
	switch f.ClassicBytesFrom {
	case string(engine.FromEnv), string(engine.FromCmdline), string(engine.FromConfig), string(engine.FromFlag):
		return f.ClassicBytes, oomKnownConfidence
	case "kv_cache_dtype", "catalog":
		return f.ClassicBytes, oomCatalogConfidence
	}
	return f.ClassicBytes, oomFallbackConfidence
}

func bytesText(f *engine.Facts, bytes float64) string {
	from := f.ClassicBytesFrom
	if f.WeightDType.Known && catalog.DType(f.WeightDType.Value).Bytes() == bytes &&
		(f.WeightDType.Source == engine.FromCmdline || f.WeightDType.Source == engine.FromConfig) {
		from = string(f.WeightDType.Source)
	}
	if from == "" {
		from = "an assumption"
	}
	return fmt.Sprintf("%s bytes per parameter, from %s", number(bytes), from)
}

// vramGB returns the memory of the smallest GPU in 1e9 bytes: read, else the
// catalog's.
func vramGB(r *engine.Run) (stat.Opt, engine.Source) {
	least := stat.None
	for i := range r.Agg.GPUs {
		if v := r.Agg.GPUs[i].Last[engine.GPUVRAMTotal]; v.OK && (!least.OK || v.V < least.V) {
			least = v
		}
	}
	if least.OK {
		return least.Times(1e-9), engine.FromGPU
	}
	if r.Facts.GPUKnown && r.Facts.GPU.VRAMGiB > 0 {
		return stat.Some(r.Facts.GPU.VRAMGiB * (1 << 30) / 1e9), engine.FromCatalog
	}
	return stat.None, ""
}

// loadedWeights says whether something proves that the weights fit: a KV pool,
// or requests in the server.
func loadedWeights(r *engine.Run) bool {
	if r.Facts.NumGPUBlocks.Known || r.Facts.KVCapacityTokens.Known && r.Facts.KVCapacityTokens.Source == engine.FromMetrics {
		return true
	}
	for i := range r.Windows {
		if w := &r.Windows[i]; loaded(w) || w.Last[engine.CounterGenerationTokens].Or(0) > 0 {
			return true
		}
	}
	return false
}

func moreTensorParallel(r *engine.Run, weights, vram float64, tp int) *engine.Fix {
	util := oomUtilization
	if r.Facts.GPUMemoryUtilization.Known {
		util = r.Facts.GPUMemoryUtilization.Value
	}
	documented := roofline.MinTPClassic(weights, vram, util)
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--tensor-parallel-size", From: strconv.Itoa(tp),
		Why:   fmt.Sprintf("The weights take %s GB, which %s of %s GB cannot hold.", number(weights), counted(float64(tp), "GPU", "GPUs"), number(vram)),
		Price: []string{"more GPUs", priceRestart},
		Risk:  2,
	}
	if !documented.OK {
		fix.Kind, fix.Flag, fix.From = engine.KindHardware, "", ""
		fix.Command = "take a larger GPU: after the reserve this one has no memory for weights"
		return fix
	}
	degree := allowedDegree(&r.Facts.ModelSpec, int(documented.V))
	fix.To = strconv.Itoa(degree)
	fix.Command = "Set --tensor-parallel-size " + fix.To
	if degree != int(documented.V) {
		fix.Why += fmt.Sprintf(" At least %d are needed; the model's heads allow %d.", int(documented.V), degree)
	}
	return fix
}

// allowedDegree rounds a tensor-parallel degree up to one over which the model's
// heads can be split.
func allowedDegree(m *catalog.Model, least int) int {
	for t := least; t <= m.Heads; t++ {
		if roofline.HeadsAllow(m, t) {
			return t
		}
	}
	return least
}
