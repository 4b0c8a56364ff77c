// Package core is the simulated engine: vLLM's V1 scheduler with its block-level KV cache and prefix
// cache, as a pure state machine. It does not know how long a step takes: [Engine.Begin] schedules a
// step, the driver lets its time pass, and [Engine.Complete] samples the tokens.
//
// Times are durations since an origin that the driver chooses. The package reads no clock and starts no
// goroutine, and no result depends on the order of a map: equal inputs give equal outputs, byte for byte.
//
// The behaviour follows vLLM v1/core/sched/scheduler.py, v1/core/kv_cache_manager.py
// and v1/core/block_pool.py, in the two generations of [Generation]. Tests compare it with release 0.32.0
// step by step. Two details of that release are not simulated: there, a request that runs alone may
// exceed the long-prefill threshold, and requests that wait for a LoRA slot stay in the waiting queue, so
// that a preempted request comes before them.
//
// Not simulated: sliding-window and hybrid models, whose blocks are recycled,
// speculative decoding, multimodal input, pipeline parallelism and transfer of KV
// between servers.
package core
