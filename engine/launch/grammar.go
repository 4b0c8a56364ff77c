package launch

import (
	"slices"
	"strings"
)

// kind is how many words a flag takes, argparse's nargs.
type kind int

const (
	kindUnknown  kind = iota // not in the table: another release's, or a typo
	kindValue                // exactly one
	kindBool                 // none; --no-NAME is its opposite
	kindTrue                 // none, and no opposite
	kindList                 // one or more
	kindOptional             // none or one
	kindRepeat               // one; repeating the flag appends
)

// The flags of `vllm serve`, canonical names, by the words they take. Read out
// of the argument parser of 0.32.0, with those of 0.8.5 to 0.31 that it no
// longer has. A name that is missing here is still parsed, by rules of thumb.
const (
	boolFlags = `
allow_credentials allow_deprecated_quantization async_scheduling calculate_kv_scales cohere_is_reasoning_model
cudagraph_metrics data_parallel_external_lb data_parallel_hybrid_lb dcp_q_replicate disable_async_output_proc
disable_cascade_attn disable_chunked_mm_input disable_custom_all_reduce disable_fastapi_docs
disable_frontend_multiprocessing disable_hybrid_kv_cache_manager disable_log_requests disable_mm_preprocessor_cache
disable_nccl_for_dp_synchronization disable_sliding_window disable_uvicorn_access_log enable_auto_tool_choice
enable_batch_sharded_sampling enable_bf16x3_router_gemm enable_chunked_prefill enable_cumem_allocator enable_dbo
enable_elastic_ep enable_ep_weight_filter enable_eplb enable_expert_parallel enable_fault_tolerance
enable_flash_late_interaction enable_flashinfer_autotune enable_force_include_usage enable_hc_sp
enable_layerwise_nvtx_tracing enable_log_deltas enable_log_outputs enable_log_requests
enable_logging_iteration_details enable_lora enable_lora_bias enable_mamba_cache_stochastic_rounding
enable_mamba_fine_grained_prefix_cache enable_mamba_shared_prefix_checkpoint enable_mfu_metrics
enable_mixed_moe_lora_format enable_mm_embeds enable_mm_processor_stats enable_moe_shared_loras
enable_multimodal_encoder_data_parallel enable_nccl_comm_suspend enable_offline_docs enable_per_request_metrics
enable_prefix_caching enable_prompt_adapter enable_prompt_embeds enable_prompt_tokens_details enable_reasoning
enable_request_id_headers enable_return_routed_experts enable_scale_out enable_server_load_tracking
enable_shm_tensor_arena enable_sleep_mode enable_ssl_refresh enable_tokenizer_info_endpoint
enable_tower_connector_lora enable_trace_replay enforce_eager engine_use_ray eplb_log_balancedness
exclude_tools_when_tool_choice_none fail_on_environ_validation fully_sharded_loras
guided_decoding_disable_additional_properties guided_decoding_disable_any_whitespace
guided_decoding_disable_fallback interleave_mm_strings jit_monitor_verbose kv_cache_metrics kv_sharing_fast_prefill
language_model_only log_error_stack long_prefill_token_threshold_adaptive mm_device_do_normalize mm_encoder_only
multi_step_stream_outputs numa_bind ray_workers_use_nsight return_sampling_mask return_tokens_as_token_ids
scheduler_reserve_full_isl skip_mm_profiling skip_tokenizer_init sleep_mode_offload_cudagraph specialize_active_lora
swa_bounded_replay tokens_only trust_remote_code trust_request_chat_template trust_request_mm_kwargs use_fp64_gumbel
use_replayssm use_tqdm_on_load use_v2_block_manager worker_use_ray`

	trueFlags = `
aggregate_engine_logging data_parallel_multi_port_external_lb disable_log_stats grpc headless`

	listFlags = `
allowed_media_domains api_key collect_detailed_traces cpu_offload_params cuda_graph_sizes cudagraph_capture_sizes
ignore_patterns kv_cache_dtype_skip_layers logits_processors lora_modules lora_target_modules numa_bind_cpus
numa_bind_nodes offload_params served_model_name sleep_preserve_parameter_names`

	optionalFlags = `hf_token`

	repeatFlags = `middleware`

	valueFlags = `
additional_config all2all_backend allowed_headers allowed_local_media_path allowed_methods allowed_origins
anthropic_disabled_thinking_effort api_server_count attention_backend attention_config aux_output_config block_size
chat_template chat_template_content_format code_revision cohere_format compilation_config config config_format
convert cp_kv_cache_interleave_size cpu_distributed_timeout_seconds cpu_offload_gb custom_histogram_buckets
data_parallel_address data_parallel_backend data_parallel_rank data_parallel_rpc_port data_parallel_size
data_parallel_size_local data_parallel_start_rank data_parallel_supervisor_port dbo_decode_token_threshold
dbo_prefill_token_threshold dcp_comm_backend dcp_kv_cache_interleave_size decode_context_parallel_size
default_chat_template_kwargs default_mm_loras device device_ids diffusion_config disable_access_log_for_endpoints
distributed_executor_backend distributed_timeout_seconds download_dir dp_supervisor_probe_failure_threshold
dp_supervisor_probe_interval_s dp_supervisor_probe_timeout_s dp_sync_interval dtype ec_manager_config
ec_transfer_config elastic_ep_max_dp_size engram_config eplb_config eplb_step_interval eplb_window_size
expert_placement_strategy fault_tolerance_config fingerprint_mode fingerprint_value gdn_prefill_backend
generation_config gpu_memory_utilization grpc_port guided_decoding_backend h11_max_header_count
h11_max_incomplete_event_size hf_config_path hf_overrides host io_processor_plugin ir_op_priority jit_monitor_mode
kda_decode_backend kda_prefill_backend kernel_config kv_cache_dtype kv_cache_memory_bytes kv_cache_metrics_sample
kv_events_config kv_offloading_backend kv_offloading_size kv_transfer_config limit_mm_per_prompt linear_backend
load_format log_config_file log_level logging_config logits_processor_pattern logprobs_mode
long_lora_scaling_factors long_prefill_token_threshold lora_dtype lora_extra_vocab_size mamba_backend
mamba_block_size mamba_cache_dtype mamba_cache_mode mamba_cache_philox_rounds mamba_config mamba_ssm_cache_dtype
mamba_ssu_algorithm master_addr master_port max_context_len_to_capture max_cpu_loras max_cudagraph_capture_size
max_log_len max_logprobs max_long_partial_prefills max_lora_cls_labels max_lora_rank max_loras max_model_len
max_num_active_seqs max_num_batched_tokens max_num_partial_prefills max_num_queued_reqs max_num_queued_tokens
max_num_scheduled_tokens max_num_seqs max_parallel_loading_workers max_prompt_adapter_token max_prompt_adapters
max_seq_len_to_capture media_io_kwargs mm_encoder_attn_backend mm_encoder_attn_dtype mm_encoder_fp8_scale_path
mm_encoder_fp8_scale_save_margin mm_encoder_fp8_scale_save_path mm_encoder_tp_mode mm_hasher_algorithm
mm_ipc_gpu_memory_gb mm_processor_cache_gb mm_processor_cache_type mm_processor_device mm_processor_kwargs
mm_shm_cache_max_object_size_mb mm_tensor_ipc model model_class_overrides model_impl model_loader_extra_config
model_weights moe_backend ngram_prompt_lookup_max ngram_prompt_lookup_min nnodes node_rank num_gpu_blocks_override
num_lookahead_slots num_redundant_experts num_scheduler_steps num_speculative_tokens offload_backend
offload_group_size offload_num_in_group offload_prefetch_step optimization_level otlp_traces_endpoint
override_attention_dtype override_generation_config override_neuron_config override_pooler_config
per_request_spec_decode_metrics performance_mode pipeline_parallel_size pooler_config port preemption_mode
prefill_context_parallel_size prefill_schedule_interval prefix_cache_retention_interval prefix_caching_hash_algo
prefix_match_unit profiler_config prompt_adapters pt_load_map_location qlora_adapter_name_or_path quantization
quantization_config reasoning_config reasoning_parser reasoning_parser_plugin renderer_num_workers
replayssm_buffer_len response_role revision root_path rope_scaling rope_theta runner safetensors_load_strategy
safetensors_prefetch_block_size safetensors_prefetch_num_threads scheduler_cls scheduler_delay_factor
scheduling_policy seed show_hidden_metrics_for_version shutdown_timeout sparse_indexer_topk_backend spec_method
spec_model spec_tokens speculative_config speculative_disable_by_batch_size speculative_draft_tensor_parallel_size
speculative_max_model_len speculative_model sse_keep_alive_interval ssl_ca_certs ssl_cert_reqs ssl_certfile
ssl_ciphers ssl_keyfile stream_interval structured_outputs_config swap_space task tensor_parallel_size tokenizer
tokenizer_mode tokenizer_pool_extra_config tokenizer_pool_size tokenizer_pool_type tokenizer_revision
tool_call_parser tool_parser_plugin tool_server tool_strict_level ubatch_size uds uvicorn_log_level
video_pruning_method video_pruning_rate watermark watermark_config weight_transfer_config worker_cls
worker_extension_cls`
)

// short maps the one-dash spellings to canonical names. -O is handled apart:
// what it means changed in 0.12.
var short = map[string]string{
	"-ac": "attention_config", "-asc": "api_server_count", "-cc": "compilation_config",
	"-dc": "diffusion_config", "-dcp": "decode_context_parallel_size", "-dp": "data_parallel_size",
	"-dpa": "data_parallel_address", "-dpb": "data_parallel_backend", "-dpe": "data_parallel_external_lb",
	"-dph": "data_parallel_hybrid_lb", "-dpl": "data_parallel_size_local",
	"-dpm": "data_parallel_multi_port_external_lb", "-dpn": "data_parallel_rank",
	"-dpp": "data_parallel_rpc_port", "-dpr": "data_parallel_start_rank", "-ep": "enable_expert_parallel",
	"-n": "nnodes", "-pcp": "prefill_context_parallel_size", "-pp": "pipeline_parallel_size",
	"-q": "quantization", "-r": "node_rank", "-sc": "speculative_config", "-tp": "tensor_parallel_size",
}

// alias maps second names to canonical ones.
var alias = map[string]string{"device_memory_utilization": "gpu_memory_utilization"}

// fromEnvironment names the variables that stand for a flag nobody gave.
var fromEnvironment = map[string]string{
	"api_key":           "VLLM_API_KEY",
	"attention_backend": "VLLM_ATTENTION_BACKEND",
	"hf_token":          "HF_TOKEN",
}

// kinds is the table above as a map.
var kinds = index(map[kind]string{
	kindBool: boolFlags, kindTrue: trueFlags, kindList: listFlags,
	kindOptional: optionalFlags, kindRepeat: repeatFlags, kindValue: valueFlags,
})

func index(groups map[kind]string) map[string]kind {
	all := make(map[string]kind)
	for k, names := range groups {
		for name := range strings.FieldsSeq(names) {
			all[name] = k
		}
	}
	return all
}

// canonical writes a flag name as the table does: no dashes in front,
// underscores within, second names resolved. Sub-keys after a dot stay as
// they are.
func canonical(flag string) string {
	if name, ok := short[flag]; ok {
		return name
	}
	head, rest, dotted := strings.Cut(strings.TrimLeft(flag, "-"), ".")
	if name, ok := short["-"+head]; ok && strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") {
		head = name
	}
	head = strings.ReplaceAll(head, "-", "_")
	if name, ok := alias[head]; ok {
		head = name
	}
	if dotted {
		return head + "." + rest
	}
	return head
}

// kindOf tells how many words a canonical name takes.
func kindOf(name string) kind { return kinds[name] }

// abbreviated lists the flags of the table that a prefix may stand for, sorted.
// argparse accepts a prefix that only one option has.
func abbreviated(prefix string) []string {
	var names []string
	for name := range kinds {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
