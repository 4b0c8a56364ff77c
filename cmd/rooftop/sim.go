package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/serve"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// maxSimFile bounds a file that a simulated server's flags name.
const maxSimFile = 8 << 20

func newSim(w *world) *cobra.Command {
	c := &cobra.Command{
		Use:   "sim [MODEL] [FLAG...]",
		Short: "A simulated vLLM server, started with vLLM's own flags",
		Long: `Starts a server that answers like one vLLM server: its scheduler, KV cache,
prefix cache, metrics and errors are imitated step by step, and the time of a
step comes from a model of the hardware. No model is loaded, no GPU computes,
and the words it generates mean nothing. Use it to try rooftop, dashboards and
clients without hardware; what it measures shows how settings act, not what
hardware does.

It is SIMULATED and says so: on stderr, in /version, in the family sim_info of
its metrics page and in the header x-simulated of every answer. rooftop's
reports mark it. Like a real server it is found by 'rooftop diagnose' without a
flag, and its launch command is read from its process.

MODEL
  A name that 'rooftop catalog list' has, or a directory with a config.json.

FLAGS OF VLLM
  Each acts through what it changes in vLLM, with vLLM's defaults for the
  release and the hardware. Others are accepted, have no effect, and are listed
  at start; what cannot be imitated (speculative decoding, multi-modal input,
  several nodes) is refused.
  the server   --host, --port, --served-model-name, --api-key, --config,
               --api-server-count, --stream-interval, --disable-log-stats,
               --enable-prompt-tokens-details, --enable-force-include-usage,
               --enable-server-load-tracking
  the model    --dtype, --quantization, --max-model-len, --enforce-eager,
               --enable-lora, --lora-modules, --max-loras
  parallelism  --tensor-parallel-size, --data-parallel-size
  memory       --gpu-memory-utilization, --kv-cache-dtype, --block-size,
               --kv-cache-memory-bytes, --num-gpu-blocks-override,
               --[no-]enable-prefix-caching
  scheduling   --max-num-seqs, --max-num-batched-tokens, --scheduling-policy,
               --[no-]enable-chunked-prefill, --long-prefill-token-threshold,
               --[no-]scheduler-reserve-full-isl, --watermark,
               --[no-]async-scheduling, --performance-mode

FLAGS OF THE SIMULATION
  --sim-gpu NAME           the GPU to simulate: "H100 SXM", L40S, B200, …
                           (default L4; 'rooftop catalog list' has them)
  --sim-dialect RELEASE    the release of vLLM to imitate on the metrics page
                           and in the scheduler: 0.10, 0.11, 0.20, 0.32
                           (default)
  --sim-startup-time TIME  from start to health (default: what weights, disk and
                           graph capture take)
  --sim-scale N            simulated seconds per second (default 1); rates by
                           the wall clock are N times too high then
  --sim-seed N             seed of noise and of output lengths
  --sim-perf-file FILE     a description of the device, in place of --sim-gpu
  --sim-fault FAULT,…      what goes wrong, KIND@AT[+FOR][xFACTOR][#RANK], AT
                           after health: stall@60s+10s, slow@1m+30sx1.4,
                           die@90s#1, reset@2m, network@10sx200ms, skew@10s,
                           hiccup@0sx300ms
  --sim-scenario NAME      the server of a scenario ('rooftop demo --list');
                           further flags are put behind its own
  --sim-clock wall         the only clock here; 'rooftop sim bench' has another

WHILE IT RUNS
  /v1/completions, /v1/chat/completions, /v1/models, /tokenize, /detokenize,
  /metrics, /health, /ping, /version and /load answer as vLLM's do. Beside them:
  GET /sim/gpu     the simulated GPUs, as a DCGM exporter's page
  GET /sim/state   what is simulated and how it stands, as JSON
  GET /sim/log     requests and events, one JSON object a line
  POST /sim/fault  {"fault": "stall@0s+10s"}: a fault from now on
  POST /sim/scale  {"scale": 10}
  All but /sim/gpu answer this machine alone. The server listens on 127.0.0.1
  unless --host says otherwise.

STOPPING
  The first SIGINT or SIGTERM lets requests end and takes no new ones; the
  second ends it at once.

EXIT CODES
  1      the server refuses to start, in vLLM's words
  2      the command line is off
  128+n  ended by signal n`,
		Example: `  rooftop sim Qwen/Qwen3-8B --sim-gpu "H100 SXM" --max-num-seqs 16
  rooftop sim meta-llama/Llama-3.1-70B-Instruct --sim-gpu "H100 SXM" -tp 4
  rooftop sim --sim-scenario seat-capped/8b-a100 --port 8001
  curl -d '{"fault": "slow@0s+1mx1.5"}' -H 'Content-Type: application/json' \
    localhost:8000/sim/fault`,
		// The flags are vLLM's, and read as vLLM reads them.
		DisableFlagParsing: true, DisableFlagsInUseLine: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return c.Help()
			}
			words, named, err := withScenario(args)
			if err != nil {
				return err
			}
			if named && w.replace != nil {
				// So that the process shows the flags that it runs with.
				w.replace(append([]string{c.Name()}, words...))
			}
			return sim(c.Context(), w, words)
		},
	}
	groupFlags(c) // for its usage: the flags themselves are not cobra's
	c.AddCommand(newSimBench(w))
	return c
}

// sim runs a simulated server until a signal ends it.
func sim(ctx context.Context, w *world, args []string) error {
	s, err := simSettings(w, args)
	if err != nil {
		return err
	}
	host, err := serve.Open(s)
	if err != nil {
		return fail(exitError, err)
	}
	// Whatever ends the wait below, nothing is left behind.
	defer host.Close(context.WithoutCancel(ctx), false)
	describe(w, host)
	if err := host.Ready(ctx); err != nil {
		if ended := signalOf(ctx); ended != 0 {
			return exit(ended)
		}
		return fail(exitError, err)
	}
	fmt.Fprintf(w.stderr, "ready on %s\n", host.URL())
	if err := host.Wait(ctx); err != nil {
		return fail(exitError, err)
	}
	fmt.Fprintln(w.stderr, "stopping: requests under way may end; a second signal ends them")
	host.Close(context.WithoutCancel(ctx), true)
	return exit(signalOf(ctx))
}

// simSettings reads the command line of a simulated server.
func simSettings(w *world, args []string) (*settings.Settings, error) {
	s, err := settings.Parse(args, func(path string) ([]byte, error) { return readFile(path, maxSimFile) })
	if err != nil {
		return nil, usage("sim: %w; see 'rooftop sim --help'", err)
	}
	if key, ok := w.env("VLLM_API_KEY"); ok && s.APIKey == "" {
		s.APIKey = key
	}
	return s, nil
}

// describe says what is simulated, before the server is up.
func describe(w *world, host *serve.Host) {
	s, pool := host.Settings(), host.Sizing()
	fmt.Fprintf(w.stderr, "SIMULATED vLLM %s: no model is loaded and no GPU computes; times come from a model of the hardware\n", s.Release)
	row := func(name, format string, a ...any) {
		fmt.Fprintf(w.stderr, "  %-6s %s\n", name, fmt.Sprintf(format, a...))
	}
	row("model", "%s, %.3g B parameters, %s weights, %s KV cache", s.ModelName, s.Model.TotalParams/1e9, s.WeightDType, s.KVDType)
	row("GPU", "%d × %s, simulated (TP %d, DP %d)", s.TensorParallel*s.DataParallel, s.GPU.Name, s.TensorParallel, s.DataParallel)
	tokens := (pool.NumBlocks - 1) * s.BlockSize
	row("KV", "%d blocks of %d tokens a rank: %d tokens, %.1f × max_model_len %d", pool.NumBlocks, s.BlockSize, tokens, pool.MaxConcurrency, s.MaxModelLen)
	row("seats", "%d a rank, %d tokens a step", s.MaxNumSeqs, s.MaxNumBatchedTokens)
	for _, note := range s.Notes {
		row("note", "%s", note)
	}
	if s.Scale != 1 {
		row("note", "%s simulated seconds pass in a second: rates by the wall clock are as many times too high", strconv.FormatFloat(s.Scale, 'g', -1, 64))
	}
	if left := host.StartsIn(); left > 0 {
		fmt.Fprintf(w.stderr, "starting: up in %v (--sim-startup-time 0 skips this)\n", left.Round(100*time.Millisecond))
	}
}
