package tuning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Fact is one property of a server that is known without measuring.
type Fact struct {
	Name   string        `json:"-"`
	Value  any           `json:"value"` // nil if unknown
	Unit   string        `json:"unit"`  // in documents: a unit of figure.Amount, "GPUs", "replicas", "processes", "1e9"
	Source engine.Source `json:"source,omitzero"`
	Note   string        `json:"note"`
	// OfTarget marks facts that documents have under their target.
	OfTarget bool `json:"-"`
}

// NotKnown is the reason of an absent fact without another reason.
const NotKnown = "not known"

// NewFact returns a fact with its stable name.
func NewFact[T any](name, unit string, f engine.Fact[T]) Fact {
	r := Fact{Name: name, Unit: unit, Source: f.Source, Note: f.Note}
	if !f.Known {
		r.Source, r.Note = "", cmp.Or(f.Note, NotKnown)
		return r
	}
	r.Value = f.Value
	if v, ok := r.Value.(float64); ok && !stat.Finite(v).OK {
		r.Value, r.Note = nil, "not a finite number"
	}
	return r
}

// Facts returns the facts of a server, those set by people first.
func Facts(f *engine.Facts) []Fact {
	cost := NewFact("cost_per_hour", "USD/h", f.CostPerHour)
	if f.CostEst && cost.Value != nil {
		cost.Note = cmp.Or(cost.Note, "catalog price")
	}
	blocks := "blocks"
	if f.BlockSize.Value == 1 {
		blocks = "tok" // an engine that counts its pool in tokens
	}
	rows := []Fact{
		NewFact("max_num_seqs", "req", f.MaxNumSeqs),
		NewFact("max_num_batched_tokens", "tok", f.MaxNumBatchedTokens),
		NewFact("max_model_len", "tok", f.MaxModelLen),
		NewFact("tensor_parallel_size", "GPUs", f.TensorParallel),
		NewFact("data_parallel_size", "replicas", f.DataParallel),
		NewFact("gpu_memory_utilization", "ratio", f.GPUMemoryUtilization),
		NewFact("kv_cache_dtype", "", f.KVCacheDType),
		NewFact("weight_dtype", "", f.WeightDType),
		NewFact("quantization", "", f.Quantization),
		NewFact("enable_prefix_caching", "", f.PrefixCaching),
		NewFact("block_size", "tok", f.BlockSize),
		NewFact("kv_capacity_tokens", "tok", f.KVCapacityTokens),
		NewFact("gpu_name", "", f.GPUName),
		NewFact("gpu_count", "GPUs", f.GPUCount),
		cost,
		NewFact("params_total_b", "1e9", billions(f.ParamsTotal)),
		NewFact("params_active_b", "1e9", billions(f.ParamsActive)),
		ofTarget("model", f.Model),
		NewFact("model_path", "", f.ModelPath),
		NewFact("device", "", f.Device),
		ofTarget("engine", f.Engine),
		ofTarget("engine_version", f.EngineVersion),
		NewFact("v0_engine", "", f.V0),
		NewFact("pipeline_parallel_size", "GPUs", f.PipelineParallel),
		NewFact("enable_expert_parallel", "", f.ExpertParallel),
		NewFact("compute_dtype", "", f.ComputeDType),
		NewFact("enable_chunked_prefill", "", f.ChunkedPrefill),
		NewFact("enforce_eager", "", f.EnforceEager),
		NewFact("async_scheduling", "", f.AsyncScheduling),
		NewFact("speculative_decoding", "", f.Speculative),
		NewFact("num_gpu_blocks", blocks, f.NumGPUBlocks),
		NewFact("num_gpu_blocks_override", blocks, f.NumGPUBlocksOverride),
		NewFact("api_server_count", "processes", f.APIServerCount),
	}
	if f.Dialect().ID != catalog.VLLM {
		rows = slices.DeleteFunc(rows, func(r Fact) bool { return r.Name == "v0_engine" })
	}
	if f.EnableLoRA.Value {
		rows = append(rows, NewFact("max_loras", "adapters", f.MaxLoRAs), NewFact("max_lora_rank", "", f.MaxLoRARank))
	}
	if f.ClassicBytes > 0 {
		rows = append(rows, NewFact("classic_bytes_per_param", "B", engine.Know(f.ClassicBytes, engine.FromDerived, "from "+f.ClassicBytesFrom)))
	}
	if f.Launch != "" {
		rows = append(rows, NewFact("launch_command", "", engine.Know(f.Launch, engine.FromCmdline, "")))
	}
	return rows
}

func ofTarget(name string, f engine.Fact[string]) Fact {
	r := NewFact(name, "", f)
	r.OfTarget = true
	return r
}

func billions(f engine.Fact[float64]) engine.Fact[float64] {
	f.Value /= 1e9
	return f
}

// factValue returns the value of the named fact, or nil if it is unknown.
func factValue(f *engine.Facts, name string) any {
	for _, r := range Facts(f) {
		if r.Name == name {
			return r.Value
		}
	}
	return nil
}

// String returns the value with its unit, or "" if it is unknown.
func (f Fact) String() string {
	switch v := f.Value.(type) {
	case nil:
		return ""
	case bool:
		return onOff(v)
	case int:
		return withUnit(figure.Whole(float64(v)), f.Unit)
	case float64:
		switch f.Unit {
		case "ratio", "USD/h":
			return figure.Show(stat.Some(v), f.Unit)
		case "1e9":
			return figure.Significant(v) + nbsp + "B"
		}
		return withUnit(figure.Count(v), f.Unit)
	case string:
		return cmp.Or(v, `""`)
	}
	return fmt.Sprint(f.Value)
}

// valueText returns the value without its unit.
func (f Fact) valueText() string {
	if f.Unit != "ratio" && f.Unit != "USD/h" && f.Unit != "1e9" {
		f.Unit = ""
	}
	return f.String()
}

// withUnit returns a number with a unit that its name does not contain.
func withUnit(number, unit string) string {
	switch unit {
	case "tok", "blocks", "B":
		return number + nbsp + unit
	case "req":
		return number + nbsp + "slots"
	}
	return number
}

// onOff formats a switch.
func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// SourceName returns the display name of the source of a fact or a figure.
func SourceName(s engine.Source) string {
	names := map[engine.Source]string{
		engine.FromFlag: "rooftop's flag", engine.FromEnv: "environment", engine.FromCmdline: "command line", engine.FromConfig: "config file",
		engine.FromMetrics: "metrics page", engine.FromCatalog: "catalog (est)", engine.FromGPU: "GPU",
	}
	return cmp.Or(names[s], string(s))
}
