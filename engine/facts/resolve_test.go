package facts

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// pageWith is a page of one rank with the given cache labels.
func pageWith(c engine.CacheConfig) *engine.Page {
	p := &engine.Page{Model: "meta-llama/Llama-3.1-8B-Instruct"}
	p.Gauges[engine.GaugeRunning] = stat.Some(1)
	p.Ranks = []engine.Rank{{Name: "0", Gauges: p.Gauges, Generation: stat.Some(10), Cache: c}}
	return p
}

func TestPrecedence(t *testing.T) {
	cmdline := map[string]Setting{"max_num_seqs": {Value: "4", Source: engine.FromCmdline}}
	for _, c := range []struct {
		name      string
		in        Inputs
		want      int
		from      engine.Source
		conflicts int
	}{
		{"command line", Inputs{Launch: cmdline}, 4, engine.FromCmdline, 0},
		{"a flag beats discovery and the contradiction is reported", Inputs{Launch: cmdline, Flags: Given{MaxNumSeqs: 8}}, 8, engine.FromFlag, 1},
		{"environment beats discovery", Inputs{Launch: cmdline, Env: Given{MaxNumSeqs: 8}}, 8, engine.FromEnv, 1},
		{"a flag beats the environment", Inputs{Launch: cmdline, Flags: Given{MaxNumSeqs: 16}, Env: Given{MaxNumSeqs: 8}}, 16, engine.FromFlag, 1},
		{"agreement is not a conflict", Inputs{Launch: cmdline, Flags: Given{MaxNumSeqs: 4}}, 4, engine.FromFlag, 0},
		{"server_info", Inputs{Server: ServerAnswers{Args: map[string]string{"max_num_seqs": "64"}}}, 64, engine.FromServer, 0},
		{"default where the launch says nothing", Inputs{Launch: map[string]Setting{}, Server: ServerAnswers{Version: "0.11.0"}, Flags: Given{GPU: "NVIDIA L4"}}, 256, engine.FromDefault, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Resolve(c.in)
			if f.MaxNumSeqs.Value != c.want || f.MaxNumSeqs.Source != c.from {
				t.Errorf("max_num_seqs %d from %s, want %d from %s", f.MaxNumSeqs.Value, f.MaxNumSeqs.Source, c.want, c.from)
			}
			if len(f.Conflicts) != c.conflicts {
				t.Errorf("conflicts %q, want %d", f.Conflicts, c.conflicts)
			}
		})
	}
}

func TestUnknownSlotsStayUnknown(t *testing.T) {
	// Without the launch a default is a guess, and rules that compare with the slots must not rely on it.
	f := Resolve(Inputs{Server: ServerAnswers{Version: "0.11.0"}, Flags: Given{GPU: "NVIDIA H200"}})
	if f.MaxNumSeqs.Known || !strings.Contains(f.MaxNumSeqs.Note, "-m") {
		t.Errorf("max_num_seqs %+v, want unknown with the advice to give -m", f.MaxNumSeqs)
	}
}

func TestTheSlotsGaugeIsReadAndADisagreementReported(t *testing.T) {
	p := pageWith(engine.CacheConfig{})
	p.Ranks[0].Gauges[engine.GaugeMaxNumSeqs] = stat.Some(64)
	f := Resolve(Inputs{Page: p, Launch: map[string]Setting{"max_num_seqs": {Value: "32", Source: engine.FromCmdline}}})
	if f.MaxNumSeqs.Value != 64 || f.MaxNumSeqs.Source != engine.FromMetrics || len(f.Conflicts) != 1 {
		t.Errorf("%+v, conflicts %q", f.MaxNumSeqs, f.Conflicts)
	}
}

func TestPoolPrefersWhatTheServerSays(t *testing.T) {
	// The real 0.30 page of a hybrid model: blocks x size gives 37,632 tokens, the true value is 29,127.
	hybrid := engine.CacheConfig{BlockSize: "784", NumGPUBlocks: "48", KVCacheSizeTokens: "29127", KVCacheMaxConcurrency: "1.7777709960937500"}
	f := Resolve(Inputs{Page: pageWith(hybrid)})
	if f.KVCapacityTokens.Value != 29127 || f.MaxModelLen.Value != 16384 {
		t.Errorf("capacity %v, max_model_len %v; want 29127 and 16384", f.KVCapacityTokens, f.MaxModelLen)
	}
	f = Resolve(Inputs{Page: pageWith(engine.CacheConfig{BlockSize: "16", NumGPUBlocks: "4574"})})
	if f.KVCapacityTokens.Value != 16*4574 || f.KVCapacityTokens.Source != engine.FromDerived {
		t.Errorf("capacity %+v, want blocks x size", f.KVCapacityTokens)
	}
	f = Resolve(Inputs{Page: pageWith(engine.CacheConfig{})})
	if f.KVCapacityTokens.Known {
		t.Errorf("capacity %+v from nothing", f.KVCapacityTokens)
	}
}

func TestWeightTypeIsNeverTheCachesType(t *testing.T) {
	launch := func(kv ...string) map[string]Setting {
		m := map[string]Setting{"kv_cache_dtype": {Value: kv[0], Source: engine.FromCmdline}}
		for i := 1; i+1 < len(kv); i += 2 {
			m[kv[i]] = Setting{Value: kv[i+1], Source: engine.FromCmdline}
		}
		return m
	}
	for _, c := range []struct {
		name               string
		model              string
		launch             map[string]Setting
		weight, cache      catalog.DType
		classic            float64
		classicFrom, given string
	}{
		{"bf16 weights, fp8 cache", "meta-llama/Llama-3.1-8B-Instruct", launch("fp8"), catalog.BF16, catalog.FP8, 1, "kv_cache_dtype", ""},
		{"nvfp4 weights by name, fp8 cache", "nvidia/Llama-3.3-70B-Instruct-FP4", launch("fp8"), catalog.NVFP4, catalog.FP8, 1, "kv_cache_dtype", ""},
		{"auto cache follows the model", "meta-llama/Llama-3.1-8B-Instruct", launch("auto"), catalog.BF16, catalog.BF16, 2, "catalog", ""},
		{"awq by flag", "my-org/llama-3.1-8b", launch("auto", "quantization", "awq"), catalog.INT4, catalog.BF16, catalog.INT4.Bytes(), "cmdline", ""},
		{"DTYPE comes first in the classic order", "meta-llama/Llama-3.1-8B-Instruct", launch("fp8"), catalog.BF16, catalog.FP8, 4, "env", "float32"},
		{"unknown model falls back, and says so", "my-company/support-bot", launch("auto"), catalog.BF16, catalog.BF16, 2, "bf16 fallback", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Resolve(Inputs{Launch: c.launch, LaunchModel: c.model, Env: Given{DType: c.given}})
			if f.WeightDType.Value != string(c.weight) || f.KVCacheDType.Value != string(c.cache) {
				t.Errorf("weights %s (%s), cache %s; want %s and %s", f.WeightDType.Value, f.WeightDType.Note, f.KVCacheDType.Value, c.weight, c.cache)
			}
			if f.ClassicBytes != c.classic || f.ClassicBytesFrom != c.classicFrom {
				t.Errorf("classic %v bytes from %s, want %v from %s", f.ClassicBytes, f.ClassicBytesFrom, c.classic, c.classicFrom)
			}
		})
	}
}

func TestMoney(t *testing.T) {
	f := Resolve(Inputs{Flags: Given{GPU: "NVIDIA H100 80GB HBM3", TensorParallel: 4}})
	if !f.CostEst || math.Abs(f.CostPerHour.Value-4*3.45) > 1e-9 || !strings.Contains(f.CostPerHour.Note, "(est)") {
		t.Errorf("cost %+v: want the catalog's price times the GPUs, marked", f.CostPerHour)
	}
	f = Resolve(Inputs{Flags: Given{GPU: "NVIDIA H100 80GB HBM3", TensorParallel: 4, CostPerHour: stat.Some(10)}})
	if f.CostEst || f.CostPerHour.Value != 10 {
		t.Errorf("cost %+v: the user's figure is the whole server's, unmarked", f.CostPerHour)
	}
	if f := Resolve(Inputs{}); f.CostPerHour.Known || f.CostPerHour.Note == "" {
		t.Errorf("cost %+v from nothing", f.CostPerHour)
	}
}

func TestAnAmbiguousGPUIsNotGuessed(t *testing.T) {
	f := Resolve(Inputs{Flags: Given{GPU: "A100"}})
	if f.GPUKnown || !f.GPUName.Known || f.GPUName.Note == "" {
		t.Errorf("GPU %+v known %v: want the candidates listed", f.GPUName, f.GPUKnown)
	}
	d := engine.GPU{Name: "NVIDIA A100-SXM4-80GB"}
	d.Fields[engine.GPUVRAMTotal] = stat.Some(80 * (1 << 30))
	f = Resolve(Inputs{Devices: []engine.GPU{d}})
	if !f.GPUKnown || f.GPU.Name != "NVIDIA A100-SXM4-80GB" || f.GPUName.Source != engine.FromGPU {
		t.Errorf("GPU %+v", f.GPU)
	}
	f = Resolve(Inputs{Devices: []engine.GPU{d}, Flags: Given{GPU: "A100"}})
	if f.GPU.Name != "NVIDIA A100-SXM4-80GB" || len(f.Conflicts) != 0 {
		t.Errorf("--gpu A100 beside that device: GPU %+v, conflicts %q", f.GPU, f.Conflicts)
	}
}

func TestAnUnknownValueIsNotReplacedByADefault(t *testing.T) {
	f := Resolve(Inputs{
		Server: ServerAnswers{Version: "0.20.0"}, Flags: Given{GPU: "NVIDIA L4"},
		Launch: map[string]Setting{"max_num_batched_tokens": {Value: "many", Source: engine.FromCmdline}},
	})
	if f.MaxNumBatchedTokens.Known || !strings.Contains(f.MaxNumBatchedTokens.Note, "many") {
		t.Errorf("%+v: want unknown, with the value named", f.MaxNumBatchedTokens)
	}
}

func TestBlocksOfOneRank(t *testing.T) {
	summed := engine.CacheConfig{BlockSize: "128", NumGPUBlocks: "2048"}
	told := engine.CacheConfig{BlockSize: "128", NumGPUBlocks: "2048", KVCacheSizeTokens: "131072"}
	own := engine.CacheConfig{BlockSize: "128", NumGPUBlocks: "1024", KVCacheSizeTokens: "131072"}
	for _, c := range []struct {
		name   string
		ranks  map[string]engine.CacheConfig
		blocks int
		tokens float64
	}{
		{"one rank", map[string]engine.CacheConfig{"0": own}, 1024, 131072},
		{"two ranks share a front end, which shows their sum", map[string]engine.CacheConfig{"0": summed, "1": summed}, 1024, 131072},
		{"0.23 and newer also report one rank's tokens", map[string]engine.CacheConfig{"0": told, "1": told}, 1024, 131072},
		{"a sum of unequal pools", map[string]engine.CacheConfig{"0": {BlockSize: "16", NumGPUBlocks: "201"}, "1": {BlockSize: "16", NumGPUBlocks: "201"}}, 100, 1600},
		{"tokens that match say that the blocks are one rank's", map[string]engine.CacheConfig{"0": own, "1": own}, 1024, 131072},
		{"replicas of Ray have front ends of their own", map[string]engine.CacheConfig{"app#a/0": summed, "app#b/0": summed}, 2048, 262144},
		{"blocks that differ are each rank's own", map[string]engine.CacheConfig{"0": {BlockSize: "16", NumGPUBlocks: "100"}, "1": {BlockSize: "16", NumGPUBlocks: "90"}}, 100, 1600},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pageWith(engine.CacheConfig{})
			p.Ranks = nil
			for _, name := range slices.Sorted(maps.Keys(c.ranks)) {
				p.Ranks = append(p.Ranks, engine.Rank{Name: name, Cache: c.ranks[name]})
			}
			f := Resolve(Inputs{Page: p})
			if f.NumGPUBlocks.Value != c.blocks || f.KVCapacityTokens.Value != c.tokens {
				t.Errorf("%d blocks and %.0f tokens (%q), want %d and %.0f", f.NumGPUBlocks.Value, f.KVCapacityTokens.Value, f.NumGPUBlocks.Note, c.blocks, c.tokens)
			}
		})
	}
}

func TestPerformanceModeDoublesDefaults(t *testing.T) {
	in := Inputs{Server: ServerAnswers{Version: "0.20.0"}, Flags: Given{GPU: "NVIDIA L4"}, Launch: map[string]Setting{}}
	plain := Resolve(in)
	in.Launch = map[string]Setting{"performance_mode": {Value: "throughput", Source: engine.FromCmdline}}
	doubled := Resolve(in)
	if doubled.MaxNumSeqs.Value != 2*plain.MaxNumSeqs.Value || doubled.MaxNumBatchedTokens.Value != 2*plain.MaxNumBatchedTokens.Value {
		t.Errorf("slots %d and budget %d, want twice %d and %d", doubled.MaxNumSeqs.Value, doubled.MaxNumBatchedTokens.Value, plain.MaxNumSeqs.Value, plain.MaxNumBatchedTokens.Value)
	}
}

func TestOneRankOfManyIsMeasuredAsOne(t *testing.T) {
	f := Resolve(Inputs{
		Page: pageWith(engine.CacheConfig{}), Flags: Given{GPU: "NVIDIA H100 80GB HBM3"},
		Launch: map[string]Setting{"data_parallel_size": {Value: "8", Source: engine.FromCmdline}},
	})
	if f.DataParallel.Value != 8 || f.Ranks != 1 || f.GPUCount.Value != 1 {
		t.Errorf("data parallel %d, ranks %d, GPUs %d; want 8, 1 and 1", f.DataParallel.Value, f.Ranks, f.GPUCount.Value)
	}
}

func TestTensorParallelismFromTheServersOwnGPUs(t *testing.T) {
	devices := make([]engine.GPU, 4)
	for i := range devices {
		devices[i].Name = "NVIDIA H100 80GB HBM3"
	}
	if f := Resolve(Inputs{Devices: devices}); f.TensorParallel.Value != 4 || f.TensorParallel.Source != engine.FromDerived {
		t.Errorf("%+v: want 4, derived", f.TensorParallel)
	}
	if f := Resolve(Inputs{Devices: devices, GPUsAssumed: true}); f.TensorParallel.Value != 1 {
		t.Errorf("%+v from GPUs that may be others'", f.TensorParallel)
	}
}

// A GPU that a label names has a ceiling and a price only where it is known how many of them the server uses.
func TestGPUsByALabelNeedTheirNumber(t *testing.T) {
	page := func(ranks int) *engine.Page {
		p := pageWith(engine.CacheConfig{})
		p.Ranks = slices.Repeat(p.Ranks, ranks)
		return p
	}
	const unknown = "the number of these GPUs that the server uses is not known"
	for _, c := range []struct {
		name     string
		in       Inputs
		tp, gpus int // gpus 0: unknown
		from     engine.Source
	}{
		{"a pod with 4 GPUs", Inputs{Page: page(1), PodGPUs: 4}, 4, 4, engine.FromDerived},
		{"a pod with one", Inputs{Page: page(1), PodGPUs: 1}, 1, 1, engine.FromDerived},
		{"two ranks share a pod's 4", Inputs{Page: page(2), PodGPUs: 4}, 2, 4, engine.FromDerived},
		{"three ranks cannot", Inputs{Page: page(3), PodGPUs: 4}, 1, 0, engine.FromDefault},
		{"a host's GPUs may be others'", Inputs{Page: page(1)}, 1, 0, engine.FromDefault},
		{"the user says how many", Inputs{Page: page(1), Flags: Given{TensorParallel: 2}}, 2, 2, engine.FromFlag},
		{"the user knows better than the pod", Inputs{Page: page(1), PodGPUs: 4, Flags: Given{TensorParallel: 2}}, 2, 2, engine.FromFlag},
		{"the default of a known launch", Inputs{Page: page(1), Launch: map[string]Setting{}}, 1, 1, engine.FromDefault},
		{"a known launch knows better than the pod", Inputs{Page: page(1), PodGPUs: 4, Launch: map[string]Setting{}}, 1, 1, engine.FromDefault},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.NodeGPU, c.in.NodeGPULabel = "NVIDIA H100 80GB HBM3", "x"
			f := Resolve(c.in)
			if f.TensorParallel.Value != c.tp || f.TensorParallel.Source != c.from || f.GPUName.Value != c.in.NodeGPU {
				t.Errorf("TP %+v of %q, want %d from %s", f.TensorParallel, f.GPUName.Value, c.tp, c.from)
			}
			if f.GPUCount.Known != (c.gpus > 0) || f.GPUCount.Value != c.gpus || f.GPUKnown != (c.gpus > 0) {
				t.Errorf("GPUs %+v, catalog %v, want %d", f.GPUCount, f.GPUKnown, c.gpus)
			}
			if want := float64(c.gpus) * 3.45; f.CostPerHour.Known != (c.gpus > 0) || math.Abs(f.CostPerHour.Value-want) > 1e-9 {
				t.Errorf("price %+v, want %.2f", f.CostPerHour, want)
			}
			if _, missing := engine.ReplicaConfig(&f); len(missing) > 0 != (c.gpus == 0) {
				t.Errorf("a ceiling lacks %q", missing)
			}
			for _, note := range []string{f.GPUName.Note, f.GPUCount.Note, f.CostPerHour.Note} {
				if strings.Contains(note, unknown) != (c.gpus == 0) {
					t.Errorf("note %q", note)
				}
			}
		})
	}
	f := Resolve(Inputs{NodeGPU: "NVIDIA H100 80GB HBM3", Flags: Given{CostPerHour: stat.Some(10)}})
	if f.CostPerHour.Value != 10 || f.GPUKnown {
		t.Errorf("price %+v, catalog %v: want the user's price, and no ceiling", f.CostPerHour, f.GPUKnown)
	}
}

func TestAFlagThatContradictsTheDefaultOfAKnownLaunchIsReported(t *testing.T) {
	f := Resolve(Inputs{Launch: map[string]Setting{}, Flags: Given{TensorParallel: 4}})
	if len(f.Conflicts) != 1 {
		t.Errorf("conflicts %q, want the degree", f.Conflicts)
	}
}

func TestWhatCannotBeTogetherIsReported(t *testing.T) {
	own := catalog.Model{ID: "tiny", TotalParams: 25e6, NativeDType: catalog.BF16}
	for _, c := range []struct {
		name string
		in   Inputs
		want string
	}{
		{"a GPU for a server on a CPU", Inputs{OnCPU: true, Flags: Given{GPU: "NVIDIA L4"}}, "runs on a CPU"},
		{"a GPU of which there are several", Inputs{Flags: Given{GPU: "A100"}}, "fits several: NVIDIA A100-"},
		{"a model that is not the served one", Inputs{ModelConfig: &own, ModelConfigFrom: engine.FromConfig, Flags: Given{Model: "meta-llama/Llama-3.1-8B-Instruct"}}, "config.json"},
	} {
		if f := Resolve(c.in); len(f.Conflicts) != 1 || !strings.Contains(f.Conflicts[0], c.want) {
			t.Errorf("%s: conflicts %q, want one with %q", c.name, f.Conflicts, c.want)
		}
	}
}

// TestAttentionRanks resolves a server whose data-parallel ranks share one tensor-parallel group: SGLang divides the
// numbers of three flags among them.
func TestAttentionRanks(t *testing.T) {
	page := pageWith(engine.CacheConfig{})
	page.Engine = "sglang"
	page.Ranks = append(page.Ranks, page.Ranks[0], page.Ranks[0], page.Ranks[0])
	cmdline := func(values ...string) map[string]Setting {
		out := map[string]Setting{}
		for i := 0; i < len(values); i += 2 {
			out[values[i]] = Setting{values[i+1], engine.FromCmdline}
		}
		return out
	}
	for _, c := range []struct {
		name                               string
		in                                 Inputs
		slots, budget, tp, dp, gpus        int
		was, slotsFlag, budgetFlag, tpFlag string // as the launch has them; slots for twice as many
	}{
		{
			"--attn-dp-size", Inputs{Launch: cmdline("attn_dp_size", "4", "tensor_parallel_size", "8", "max_num_seqs", "66", "max_num_batched_tokens", "8192")},
			16, 2048, 2, 4, 8, "66", "128", "8192", "8",
		},
		{
			"--enable-dp-attention", Inputs{Launch: cmdline("enable_dp_attention", "true", "data_parallel_size", "4", "tensor_parallel_size", "4", "max_num_seqs", "64", "max_num_batched_tokens", "8192")},
			16, 2048, 1, 4, 4, "64", "128", "8192", "4",
		},
		{
			"/server_info of 0.5.23", Inputs{Server: ServerAnswers{Args: map[string]string{
				"enable_dp_attention": "true", "attn_dp_size": "4", "data_parallel_size": "1", "tensor_parallel_size": "4", "max_num_seqs": "64", "max_num_batched_tokens": "8192",
			}}},
			16, 2048, 1, 4, 4, "64", "128", "8192", "4",
		},
		{
			"-m is the server's flag", Inputs{Launch: cmdline("attn_dp_size", "4", "tensor_parallel_size", "4", "max_num_batched_tokens", "8192"), Flags: Given{MaxNumSeqs: 64}},
			16, 2048, 1, 4, 4, "64", "128", "8192", "4",
		},
		{
			"replicas", Inputs{Launch: cmdline("data_parallel_size", "4", "tensor_parallel_size", "2", "max_num_seqs", "64", "max_num_batched_tokens", "8192")},
			64, 8192, 2, 4, 8, "64", "128", "8192", "2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Page = page
			f := Resolve(c.in)
			if f.MaxNumSeqs.Value != c.slots || f.MaxNumBatchedTokens.Value != c.budget || f.TensorParallel.Value != c.tp || f.DataParallel.Value != c.dp || f.GPUCount.Value != c.gpus {
				t.Errorf("slots %+v, budget %+v, TP %+v, DP %+v, GPUs %+v", f.MaxNumSeqs, f.MaxNumBatchedTokens, f.TensorParallel, f.DataParallel, f.GPUCount)
			}
			for _, want := range []engine.Change{
				{Flag: "--max-running-requests", From: c.was, To: c.slotsFlag},
				{Flag: "--chunked-prefill-size", To: c.budgetFlag}, {Flag: "--tensor-parallel-size", To: c.tpFlag},
			} {
				from, to := "", map[string]int{"--max-running-requests": 2 * c.slots, "--chunked-prefill-size": c.budget, "--tensor-parallel-size": c.tp}[want.Flag]
				if want.From != "" {
					from = strconv.Itoa(c.slots)
				}
				if got := f.Change(want.Canonical().Flag, from, strconv.Itoa(to)); got != want {
					t.Errorf("change %v, want %v", got, want)
				}
			}
		})
	}
}

// TestSlotsThatTheFlagDoesNotGive checks that slots which were inferred are those of a rank.
func TestSlotsThatTheFlagDoesNotGive(t *testing.T) {
	f := engine.Facts{Engine: engine.Know("sglang", engine.FromMetrics, ""), DividedBy: 4}
	want := engine.Change{Flag: "--max-running-requests", From: "4", To: "32"}
	if got := f.Change("--max-num-seqs", "1", "8"); got != want {
		t.Errorf("change %v, want %v", got, want)
	}
}

// TestReplicasBehindOneAddress resolves a server of four data-parallel ranks: one address has all of them, or those of
// one machine, or one that a balancer outside chooses. Each rank has the slots of the flag.
func TestReplicasBehindOneAddress(t *testing.T) {
	launch := map[string]Setting{"data_parallel_size": {"4", engine.FromCmdline}, "max_num_seqs": {"16", engine.FromCmdline}}
	for _, c := range []struct {
		name, engine, command string
		ranks                 int // on the page
		servers               int
		note                  string
	}{
		{"internal load balancing", "vllm", "vllm serve m --data-parallel-size 4 --max-num-seqs 16", 4, 4, ""},
		{"hybrid", "vllm", "vllm serve m --data-parallel-size 4 --data-parallel-hybrid-lb --data-parallel-size-local 2 --max-num-seqs 16", 2, 2, "this page shows 2 of them"},
		{"external", "vllm", "vllm serve m --data-parallel-size 4 --data-parallel-rank 1 --max-num-seqs 16", 1, 1, "this page shows 1 of them"},
		{"the module starts one API server", "vllm", "python -m vllm.entrypoints.openai.api_server --model m --data-parallel-size 4 --max-num-seqs 16", 4, 1, ""},
		{"SGLang's default is one", "sglang", "python -m sglang.launch_server --model-path m --dp 4 --max-running-requests 16", 4, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pageWith(engine.CacheConfig{})
			p.Engine, p.Ranks = c.engine, slices.Repeat(p.Ranks, c.ranks)
			f := Resolve(Inputs{Engine: c.engine, Launch: launch, LaunchText: c.command, Page: p})
			if f.MaxNumSeqs.Value != 16 || f.DataParallel.Value != 4 || f.DataParallel.Note != c.note || f.Ranks != c.ranks || f.GPUCount.Value != c.ranks {
				t.Errorf("slots %+v, DP %+v, %d ranks, GPUs %+v", f.MaxNumSeqs, f.DataParallel, f.Ranks, f.GPUCount)
			}
			if f.APIServerCount.Value != c.servers {
				t.Errorf("API servers %+v, want %d", f.APIServerCount, c.servers)
			}
		})
	}
}
