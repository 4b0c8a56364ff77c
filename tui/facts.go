package tui

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// factLine is one fact as it is shown.
type factLine struct {
	name, value string // value "" where it is not known
	source      string
	note        string
}

// fact spells one fact.
func fact[T any](name, unit string, f engine.Fact[T]) factLine {
	if !f.Known {
		return factLine{name: name, note: f.Note}
	}
	return factLine{name: name, value: factValue(f.Value, unit), source: sourceWords(f.Source), note: f.Note}
}

// factValue spells what a fact holds.
func factValue(v any, unit string) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "on"
		}
		return "off"
	case int:
		return withUnit(figure.Whole(float64(v)), unit)
	case float64:
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return figure.Absent
		case unit == "ratio" || unit == "USD/h":
			return figure.Show(stat.Some(v), unit)
		case unit == "parameters":
			return figure.Significant(v/1e9) + figure.NBSP + "B"
		}
		return withUnit(figure.Count(v), unit)
	case string:
		return cmp.Or(v, `""`)
	}
	return fmt.Sprint(v)
}

func withUnit(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + figure.NBSP + unit
}

// sourceWords says where a fact came from.
func sourceWords(s engine.Source) string {
	switch s {
	case engine.FromFlag:
		return "rooftop's flag"
	case engine.FromEnv:
		return "environment"
	case engine.FromCmdline:
		return "command line"
	case engine.FromConfig:
		return "config file"
	case engine.FromServer:
		return "server"
	case engine.FromMetrics:
		return "metrics page"
	case engine.FromCatalog:
		return "catalog (est)"
	case engine.FromDefault:
		return "default"
	case engine.FromDerived:
		return "derived"
	case engine.FromMeasured:
		return "measured"
	case engine.FromGPU:
		return "GPU"
	}
	return string(s)
}

// factLines lists every fact: what a person sets first.
func factLines(f *engine.Facts) []factLine {
	cost := fact("cost", "USD/h", f.CostPerHour)
	if f.CostEst && f.CostPerHour.Known {
		cost.source, cost.note = sourceWords(engine.FromCatalog), strings.TrimPrefix(cost.note, "(est) ")
	}
	list := []factLine{
		fact("max_num_seqs", "seats", f.MaxNumSeqs),
		fact("max_num_batched_tokens", "tok", f.MaxNumBatchedTokens),
		fact("max_model_len", "tok", f.MaxModelLen),
		fact("tensor_parallel_size", "", f.TensorParallel),
		fact("pipeline_parallel_size", "", f.PipelineParallel),
		fact("data_parallel_size", "", f.DataParallel),
		fact("enable_expert_parallel", "", f.ExpertParallel),
		fact("gpu_memory_utilization", "ratio", f.GPUMemoryUtilization),
		fact("enable_prefix_caching", "", f.PrefixCaching),
		fact("enable_chunked_prefill", "", f.ChunkedPrefill),
		fact("enforce_eager", "", f.EnforceEager),
		fact("async_scheduling", "", f.AsyncScheduling),
		fact("speculative_decoding", "", f.Speculative),
		fact("api_server_count", "", f.APIServerCount),
		fact("kv_cache_dtype", "", f.KVCacheDType),
		fact("weight_dtype", "", f.WeightDType),
		fact("compute_dtype", "", f.ComputeDType),
		fact("quantization", "", f.Quantization),
		fact("block_size", "tok", f.BlockSize),
		fact("num_gpu_blocks", "blocks", f.NumGPUBlocks),
		fact("num_gpu_blocks_override", "blocks", f.NumGPUBlocksOverride),
		fact("kv_capacity", "tok", f.KVCapacityTokens),
		fact("model", "", f.Model),
		fact("model_path", "", f.ModelPath),
		fact("parameters", "parameters", f.ParamsTotal),
		fact("active_parameters", "parameters", f.ParamsActive),
		fact("engine", "", f.Engine),
		fact("engine_version", "", f.EngineVersion),
		fact("v0_engine", "", f.V0),
		fact("device", "", f.Device),
		fact("gpu_name", "", f.GPUName),
		fact("gpu_count", "", f.GPUCount),
		cost,
	}
	if f.ClassicBytes > 0 {
		list = append(list, fact("classic_bytes_per_param", "B", engine.Know(f.ClassicBytes, engine.FromDerived, "from "+f.ClassicBytesFrom)))
	}
	if f.Launch != "" {
		list = append(list, fact("launch_command", "", engine.Know(f.Launch, engine.FromCmdline, "")))
	}
	return list
}
