package rules

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Confidence of R4, by the source of the bytes per weight.
const (
	oomKnownConfidence    = 0.95 // DTYPE / VLLM_DTYPE, the command line or config.json
	oomCatalogConfidence  = 0.90 // kv_cache_dtype or the catalog
	oomFallbackConfidence = 0.60 // bf16 assumed
	// oomUtilization is assumed if --gpu-memory-utilization is unknown.
	oomUtilization = 0.90
	// oomReserveGB is reserved on each GPU for activations and the first KV blocks;
	// roofline.MinTPClassic subtracts it.
	oomReserveGB = 3.0
)

var oomRisk = definition{engine.Rule{
	ID: engine.OOMRisk, Code: "R4", Title: "OOM risk", Group: engine.GroupMemory, Impact: 5,
	Once: judgeOOMRisk,
}, Explanation{
	Condition: []string{
		"the weights of one tensor-parallel rank are larger than its GPU: kv_headroom_gb < 0, regardless of traffic",
		"if a KV pool or a running request proves that the weights fit, the finding means that model, GPU or dtype is misread: it is listed as such and never recommended",
	},
	Thresholds: []Threshold{
		{"kv_headroom_gb = vram_total_gb - weight_gb / tp", "<", 0, "GB", fromProfile},
		{"reserve per GPU", "", oomReserveGB, "GB", fromProfile},
		{"gpu_memory_utilization if unknown", "", oomUtilization, "ratio", fromProfile},
	},
	Formula: []string{
		"weight_gb = parameters x bytes per parameter / 1e9",
		fmt.Sprintf("usable_vram = vram_total_gb x gpu_memory_utilization - %v GB", oomReserveGB),
		"min_tp = ceil(weight_gb / usable_vram), then the next degree that divides the model's heads",
	},
	Confidence: []string{
		fmt.Sprintf("%v with the dtype from the environment, the command line or config.json", oomKnownConfidence),
		fmt.Sprintf("%v with the dtype from the model's name, kv_cache_dtype or the catalog", oomCatalogConfidence),
		fmt.Sprintf("%v with bf16 assumed", oomFallbackConfidence),
	},
	Remedy: []string{"--tensor-parallel-size with a degree that fits", "`rooftop ceiling` computes it before a start"},
	Limits: []string{"assumes that every parameter in the catalog is loaded"},
}}

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
		f.Reason = "needs " + figure.List(f.Missing...)
		return
	}
	tp := max(1, facts.TensorParallel.Value)
	weights := params.Value * bytes / 1e9
	each := weights / float64(tp)
	headroom := vram.V - each
	f.Evaluable = r.Agg.Windows.Evaluable
	figures := fmt.Sprintf("%s of weights on a GPU with %s, tensor parallelism %d", memorySize(each), memorySize(vram.V), tp)
	if headroom >= 0 {
		f.State, f.Reason = engine.NotFired, figures
		return
	}
	f.State, f.Significant, f.Fired = engine.Fired, true, f.Evaluable
	f.Confidence, f.Reason = confidence, figures
	addEvidence(f,
		compared("kv_headroom_gb", stat.Some(headroom), "GB", "<", 0, vramFrom, figures),
		sourced("bytes_per_param", stat.Some(bytes), "", engine.FromDerived, bytesText(facts, bytes)))
	f.Fix = moreTensorParallel(r, weights, vram.V, tp)
	if loadedWeights(r) {
		f.Title = "Weights larger than the GPU: misread facts"
		f.Fix.Withheld = "the server runs, so its weights fit; model, GPU or dtype is misread (" + bytesText(facts, bytes) + ")"
	}
}

// weightBytes returns the bytes per parameter and the rule's confidence in them. The launch, config.json
// and the model's name take precedence over the order of PROFILE, which may use the type of the cache.
func weightBytes(f *engine.Facts) (bytes, confidence float64) {
	if b := statedBytes(f); b > 0 && f.ClassicBytesFrom != string(engine.FromEnv) {
		if f.WeightDType.Source == engine.FromDerived {
			return b, oomCatalogConfidence
		}
		return b, oomKnownConfidence
	}
	switch f.ClassicBytesFrom {
	case string(engine.FromEnv), string(engine.FromCmdline), string(engine.FromConfig), string(engine.FromFlag):
		return f.ClassicBytes, oomKnownConfidence
	case "kv_cache_dtype", "catalog":
		return f.ClassicBytes, oomCatalogConfidence
	}
	return f.ClassicBytes, oomFallbackConfidence
}

// statedBytes returns the bytes per parameter that the launch, config.json or the model's name state, 0 if none does.
func statedBytes(f *engine.Facts) float64 {
	w := f.WeightDType
	if !w.Known || w.Source != engine.FromCmdline && w.Source != engine.FromConfig && w.Source != engine.FromDerived {
		return 0
	}
	return catalog.DType(w.Value).Bytes()
}

// memorySize formats a size of 1e9 bytes each, in the binary units of all device memory.
func memorySize(v float64) string { return figure.Value(v*1e9, "B") }

func bytesText(f *engine.Facts, bytes float64) string {
	from := f.ClassicBytesFrom
	if statedBytes(f) == bytes {
		if from = string(f.WeightDType.Source); f.WeightDType.Source == engine.FromDerived {
			from = "the model's name"
		}
	}
	if from == "" {
		from = "an assumption"
	}
	return fmt.Sprintf("%v bytes per parameter, from %s", bytes, from)
}

// vramGB returns the memory of the smallest GPU in 1e9 bytes, as read or else from the catalog,
// and its source; absent if unknown.
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

// loadedWeights reports whether a KV pool or a request proves that the weights fit.
func loadedWeights(r *engine.Run) bool {
	if r.Facts.NumGPUBlocks.Known || r.Facts.KVCapacityTokens.Known && r.Facts.KVCapacityTokens.Source == engine.FromMetrics {
		return true
	}
	for w := range windows(r, always) {
		if loaded(w) || w.Last[engine.CounterGenerationTokens].Or(0) > 0 {
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
	required := roofline.MinTPClassic(weights, vram, util)
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: lever.TensorParallel.Flag, From: strconv.Itoa(tp),
		Why:   fmt.Sprintf("The weights need %s; %s cannot hold them.", memorySize(weights), gpusOf(tp, vram)),
		Costs: []string{"more GPUs", lever.Restart},
		Risk:  2,
	}
	if !required.OK {
		fix.Kind, fix.Flag, fix.From = engine.KindHardware, "", ""
		fix.Command = "use a larger GPU: after the reserve this one has no memory for weights"
		return fix
	}
	degree := allowedDegree(&r.Facts.ModelSpec, int(required.V))
	fix.To = strconv.Itoa(degree)
	fix.Command = "Set --tensor-parallel-size " + fix.To
	if degree != int(required.V) {
		fix.Why += fmt.Sprintf(" At least %d GPUs are needed; the model's heads divide into %d.", int(required.V), degree)
	}
	return fix
}

// gpusOf formats a number of GPUs with their memory: "one 80 GiB GPU", "2 GPUs of 80 GiB each".
func gpusOf(n int, vram float64) string {
	if n == 1 {
		return "one " + memorySize(vram) + " GPU"
	}
	return fmt.Sprintf("%d GPUs of %s each", n, memorySize(vram))
}

// allowedDegree rounds a tensor-parallel degree up to one that divides the model's heads; it
// returns least if there is none.
func allowedDegree(m *catalog.Model, least int) int {
	for t := least; t <= m.Heads; t++ {
		if roofline.HeadsAllow(m, t) {
			return t
		}
	}
	return least
}
