package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// arguments refuses arguments that vLLM's parser does not know or that are not simulated.
func (p *parser) arguments() {
	engine := map[string]bool{}
	for _, f := range catalog.EngineOf(catalog.VLLM).Flags() {
		engine[f.Name] = true
	}
	var unknown []string
	words := 0
	for _, a := range p.cfg.Arguments() {
		known := a.Known
		if known && engine[a.Name] {
			known, _ = catalog.EngineOf(catalog.VLLM).FlagKnown(a.Name, p.s.Release)
		}
		switch {
		case a.Name == "":
			if words++; words > 1 {
				unknown = append(unknown, a.Words...)
			}
		case !known:
			unknown = append(unknown, a.Words...)
		case a.Lacks:
			p.refuse("argument %s: expected one argument", dashes(a.Name))
		}
	}
	if len(unknown) > 0 {
		p.refuse("unrecognized arguments: %s", strings.Join(unknown, " "))
	}
	for _, l := range limits {
		if value, _, ok := p.cfg.Value(l.flag); ok && !l.harmless(value) {
			p.limitation(dashes(l.flag), l.why)
		}
	}
	p.s.Notes = append(p.s.Notes, p.cfg.Notes()...)
}

// limit is a flag whose effect is not simulated.
type limit struct {
	flag string
	why  string
	off  []string // values without effect
}

func (l limit) harmless(value string) bool {
	return slices.Contains(l.off, strings.ToLower(value))
}

var limits = slices.Concat(
	each("speculative decoding", []string{"{}"}, "speculative_config", "speculative_model", "num_speculative_tokens", "spec_method", "spec_model", "spec_tokens"),
	each("disaggregated prefill and KV transfer", []string{"{}"}, "kv_transfer_config", "ec_transfer_config"),
	each("KV offloading", []string{"0", "0.0"}, "kv_offloading_size"),
	each("offloading of weights", []string{"0", "0.0"}, "cpu_offload_gb", "offload_group_size", "offload_num_in_group"),
	each("pipeline parallelism", []string{"1"}, "pipeline_parallel_size"),
	each("context parallelism", []string{"1"}, "decode_context_parallel_size", "prefill_context_parallel_size"),
	each("several nodes", []string{"1"}, "nnodes"),
	each("expert parallelism", []string{"false"}, "enable_expert_parallel", "enable_eplb", "enable_elastic_ep"),
	each("overlapped micro-batches", []string{"false"}, "enable_dbo"),
	each("overlapped micro-batches", []string{"0"}, "ubatch_size"),
	each("sleep mode", []string{"false"}, "enable_sleep_mode"),
	each("data parallel ranks behind another balancer", []string{"false"}, "data_parallel_external_lb", "data_parallel_hybrid_lb", "data_parallel_multi_port_external_lb", "headless"),
	each("data parallel ranks of another node", nil, "data_parallel_rank", "data_parallel_start_rank", "data_parallel_size_local"),
	each("models that pool instead of generating", []string{"auto", "generate", "none"}, "runner", "task", "convert"),
	each("diffusion models", []string{"{}"}, "diffusion_config"),
	each("multi-step scheduling", []string{"1"}, "num_scheduler_steps"),
	each("another scheduler", nil, "scheduler_cls", "max_num_scheduled_tokens", "max_num_active_seqs", "prefill_schedule_interval"),
	each("adaptive thresholds", []string{"false"}, "long_prefill_token_threshold_adaptive"),
	each("refusals at admission", nil, "max_num_queued_reqs", "max_num_queued_tokens"),
	each("changes to the model's shape", []string{"{}"}, "hf_overrides", "rope_scaling", "rope_theta", "hf_config_path", "model_class_overrides"),
	each("KV caches of mixed types", nil, "kv_cache_dtype_skip_layers"),
	each("skipped prefill in shared KV layers", []string{"false"}, "kv_sharing_fast_prefill"),
	each("partial keeping of the prefix cache", nil, "prefix_cache_retention_interval", "prefix_match_unit"),
	each("images and sound", []string{"false"}, "mm_encoder_only"),
	each("gRPC", []string{"false"}, "grpc"),
	each("gRPC", nil, "grpc_port"),
	each("TLS", nil, "ssl_keyfile", "ssl_certfile"),
	each("Unix sockets", nil, "uds"),
	each("the V0 engine", []string{"false"}, "use_v2_block_manager"),
	each("processes on Ray", []string{"mp", "uni", "false"}, "distributed_executor_backend", "worker_use_ray", "engine_use_ray"),
	each("prompt adapters", []string{"false"}, "enable_prompt_adapter"),
)

func each(why string, off []string, flags ...string) []limit {
	all := make([]limit, len(flags))
	for i, f := range flags {
		all[i] = limit{f, why, off}
	}
	return all
}

// simulated lists the flags that are simulated, or whose effect the simulator always has.
var simulated = strings.Fields(`
model served_model_name host port api_key config max_model_len max_num_seqs max_num_batched_tokens
gpu_memory_utilization kv_cache_memory_bytes num_gpu_blocks_override block_size kv_cache_dtype dtype quantization
tensor_parallel_size data_parallel_size enable_prefix_caching enable_chunked_prefill long_prefill_token_threshold
scheduling_policy scheduler_reserve_full_isl watermark async_scheduling enforce_eager stream_interval
enable_lora max_loras lora_modules disable_log_stats api_server_count performance_mode optimization_level
max_cudagraph_capture_size pipeline_parallel_size nnodes
enable_prompt_tokens_details`)

// unsimulated returns the note about flags that are accepted without effect; empty if there are none.
func (p *parser) unsimulated() []string {
	var flags []string
	for _, a := range p.cfg.Arguments() {
		if a.Name == "" || a.Silent || slices.Contains(simulated, a.Name) {
			continue
		}
		if flag := dashes(a.Name); !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	if len(flags) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("accepted, not simulated: %s", strings.Join(flags, ", "))}
}

// adapters returns the names of LoRA modules, each given as "name=path" or as a JSON object with a name.
func (p *parser) adapters() []string {
	values, _, _ := p.cfg.Values("lora_modules")
	var names []string
	for _, v := range values {
		name, _, ok := strings.Cut(v, "=")
		if strings.HasPrefix(strings.TrimSpace(v), "{") {
			name, ok = jsonName(v)
		}
		if !ok || name == "" {
			p.refuse("argument --lora-modules: Invalid fields: %s: a name=path or a JSON object with name and path is expected", quoted(v))
			return nil
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
