// Package core is the simulated engine: vLLM's V1 scheduler with its block-level
// KV cache and prefix cache, as one pure state machine. It knows neither how
// long a step takes nor what asks for it: [Engine.Begin] schedules a step,
// whoever drives it lets the step's time pass, and [Engine.Complete] samples.
//
// Times are durations since one origin that the driver chooses. Nothing here
// reads a clock, starts a goroutine or iterates over a map into a result: equal
// inputs give equal outputs, byte for byte.
//
// The behaviour follows vLLM v1/core/sched/scheduler.py, v1/core/kv_cache_manager.py
// and v1/core/block_pool.py, in the two generations that [Generation] names. Of
// release 0.32.0, which the tests compare it with step by step, two details are
// left out: a request that is alone may exceed the long-prefill threshold there,
// and those that wait for a LoRA slot stay in the waiting queue, so that a preempted
// request comes before them.
//
// Not simulated: sliding-window and hybrid models, whose blocks are recycled,
// speculative decoding, multimodal input, pipeline parallelism and transfer of KV
// between servers.
package core
