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
// and v1/core/block_pool.py, in the two generations that [Generation] names.
package core
