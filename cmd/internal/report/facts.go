package report

import (
	"cmp"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
)

// fact is one row of the facts table.
type fact struct {
	name   string
	unit   string
	value  any // nil unknown
	source engine.Source
	note   string
}

// notKnown stands for a fact without a reason for its absence.
const notKnown = "not known"

func row[T any](name, unit string, f engine.Fact[T]) fact {
	r := fact{name: name, unit: unit, source: f.Source, note: f.Note}
	if !f.Known {
		r.source = ""
		r.note = cmp.Or(f.Note, notKnown)
		return r
	}
	r.value = f.Value
	if v, ok := r.value.(float64); ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
		r.value, r.note = nil, "not a finite number"
	}
	return r
}

// factRows lists the facts by their stable names: first those of interfaces.md
// section 3 in its order, then the others.
func factRows(f *engine.Facts) []fact {
	cost := row("cost_per_hour", "USD/h", f.CostPerHour)
	if f.CostEst && cost.value != nil {
		cost.note = cmp.Or(cost.note, "catalog price")
	}
	rows := []fact{
		row("max_num_seqs", "req", f.MaxNumSeqs),
		row("max_num_batched_tokens", "tok", f.MaxNumBatchedTokens),
		row("max_model_len", "tok", f.MaxModelLen),
		row("tensor_parallel_size", "GPUs", f.TensorParallel),
		row("data_parallel_size", "replicas", f.DataParallel),
		row("gpu_memory_utilization", "ratio", f.GPUMemoryUtilization),
		row("kv_cache_dtype", "", f.KVCacheDType),
		row("weight_dtype", "", f.WeightDType),
		row("quantization", "", f.Quantization),
		row("enable_prefix_caching", "", f.PrefixCaching),
		row("block_size", "tok", f.BlockSize),
		row("kv_capacity_tokens", "tok", f.KVCapacityTokens),
		row("gpu_name", "", f.GPUName),
		row("gpu_count", "GPUs", f.GPUCount),
		cost,
		row("params_total_b", "1e9", billions(f.ParamsTotal)),
		row("params_active_b", "1e9", billions(f.ParamsActive)),

		row("model_path", "", f.ModelPath),
		row("device", "", f.Device),
		row("v0_engine", "", f.V0),
		row("pipeline_parallel_size", "GPUs", f.PipelineParallel),
		row("enable_expert_parallel", "", f.ExpertParallel),
		row("compute_dtype", "", f.ComputeDType),
		row("enable_chunked_prefill", "", f.ChunkedPrefill),
		row("enforce_eager", "", f.EnforceEager),
		row("async_scheduling", "", f.AsyncScheduling),
		row("speculative_decoding", "", f.Speculative),
		row("num_gpu_blocks", "blocks", f.NumGPUBlocks),
		row("num_gpu_blocks_override", "blocks", f.NumGPUBlocksOverride),
		row("api_server_count", "processes", f.APIServerCount),
	}
	if f.ClassicBytes > 0 {
		rows = append(rows, row("classic_bytes_per_param", "B",
			engine.Know(f.ClassicBytes, engine.FromDerived, "from "+f.ClassicBytesFrom)))
	}
	if f.Launch != "" {
		rows = append(rows, row("launch_command", "", engine.Know(f.Launch, engine.FromCmdline, "")))
	}
	return rows
}

func billions(f engine.Fact[float64]) engine.Fact[float64] {
	f.Value /= 1e9
	return f
}

// wireSource spells a fact's source as the document does, which knows no
// sources beyond those of interfaces.md; the note then says what it was.
func wireSource(s engine.Source, note string) (any, string) {
	switch s {
	case "":
		return nil, note
	case engine.FromGPU:
		return engine.FromServer, cmp.Or(note, "read from the device")
	case engine.FromMeasured:
		return engine.FromDerived, cmp.Or(note, "measured")
	}
	return s, note
}
