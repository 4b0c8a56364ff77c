package perf

import (
	"fmt"
	"maps"
	"slices"
)

// Sources of a constant's value.
const (
	published = "published"   // a datasheet, a paper, vLLM's source
	fitted    = "fitted here" // to the real runs that the test names
	assumed   = "assumed"     // a plausible order of magnitude, not verified
)

// constants holds the parameters that are not properties of the model or the GPU.
type constants struct {
	gemmMFU, gemmMFULow, waveLoss, expertPad, gemmMBU, kernelRamp, unpack float64
	attnMBU, attnRamp, attnMFU, attnHalfTokens, attnDecodeMFU             float64
	layer, eagerLayer, step, hostStep, sequence, hostSequence             float64
	prefillToken, elementPasses, samplerPasses                            float64
	linkUse, nvlinkLatency, pcieLatency                                   float64
	activationCopies, logitBytes, otherBytes, linkBytes                   float64
	contextBytes, graphLayerBytes                                         float64
	boot, loadRate, compileLayer, capture                                 float64
	noise                                                                 float64
	request, tokenize, character, handOver, delivery, token, message      float64
	idlePower, busyPower, memoryPower, tensorPower, powerLimit            float64
}

// spec describes one constant: its defaults on a GPU and on a CPU, the valid range of an override, and its
// source.
type spec struct {
	name     string
	field    func(*constants) *float64
	gpu, cpu float64
	low      float64
	high     float64
	unit     string
	origin   string
	note     string
}

const mib, gib = 1 << 20, 1 << 30

// specs lists all constants in the order in which they act. The origins are those of the GPU values; all CPU
// values are assumed unless a device file overrides them.
//
// Fitted ones were set once, by hand, for all of: Qwen3-32B on one H100, the pool sizes of
// docs/dev/simulator.md 5.5, and published decode
// times of Llama 8B on one H100 (vLLM 0.19.1, short and long contexts) and on two
// to eight A100 (gpt-fast). TestPublished shows how far other models, GPUs and
// releases are off.
var specs = []spec{
	{"gemm_mfu", func(c *constants) *float64 { return &c.gemmMFU }, 0.68, 0.5, 0.001, 1, "1", fitted, "share of the dense peak in a GEMM with very many rows"},
	{"gemm_mfu_low", func(c *constants) *float64 { return &c.gemmMFULow }, 0.58, 0.5, 0.001, 1, "1", assumed, "the same of eight- and four-bit units"},
	{"wave_loss", func(c *constants) *float64 { return &c.waveLoss }, 0.5, 0, 0, 10, "waves", assumed, "part of the last wave of tiles in which a GEMM leaves the GPU idle, on average"},
	{"expert_pad_rows", func(c *constants) *float64 { return &c.expertPad }, 8, 0, 0, 1e4, "rows", assumed, "rows that each touched expert computes in vain, to fill its tiles"},
	{"gemm_mbu", func(c *constants) *float64 { return &c.gemmMBU }, 0.87, 0.6, 0.001, 1, "1", fitted, "share of the memory bandwidth with which large weights are read"},
	{"kernel_ramp_seconds", func(c *constants) *float64 { return &c.kernelRamp }, 2.5e-6, 0, 0, 1, "s", fitted, "time before a kernel's reads flow: small matrices do not reach the bandwidth"},
	{"unpack_mfu", func(c *constants) *float64 { return &c.unpack }, 0.85, 0.85, 0.001, 1, "1", assumed, "compute share left where weights are unpacked before they are multiplied"},

	{"attn_mbu", func(c *constants) *float64 { return &c.attnMBU }, 0.86, 0.5, 0.001, 1, "1", fitted, "share of the memory bandwidth with which decode attention reads KV"},
	{"attn_ramp_seconds", func(c *constants) *float64 { return &c.attnRamp }, 6e-6, 0, 0, 1, "s", fitted, "time of a layer's decode attention before its reads flow"},
	{"attn_mfu", func(c *constants) *float64 { return &c.attnMFU }, 0.35, 0.3, 0.001, 1, "1", assumed, "share of the dense peak in causal prefill attention over long chunks"},
	{"attn_half_tokens", func(c *constants) *float64 { return &c.attnHalfTokens }, 64, 0, 0, 1e6, "tokens", assumed, "new tokens with which prefill attention reaches half of that share"},
	{"attn_decode_mfu", func(c *constants) *float64 { return &c.attnDecodeMFU }, 0.4, 0.3, 0.001, 1, "1", assumed, "share of the dense peak in decode attention, which binds latent attention only"},

	{"layer_seconds", func(c *constants) *float64 { return &c.layer }, 12e-6, 30e-6, 0, 10, "s", fitted, "small kernels of a layer (norms, rotary, cache write)"},
	{"eager_layer_seconds", func(c *constants) *float64 { return &c.eagerLayer }, 90e-6, 0, 0, 10, "s", assumed, "host time to launch a layer's kernels without a CUDA graph"},
	{"step_seconds", func(c *constants) *float64 { return &c.step }, 250e-6, 2e-3, 0, 10, "s", assumed, "time of a step that nothing hides: hand-over, copying tokens back"},
	{"host_step_seconds", func(c *constants) *float64 { return &c.hostStep }, 900e-6, 0, 0, 10, "s", assumed, "host time of a step (scheduling, inputs), hidden by async scheduling"},
	{"sequence_seconds", func(c *constants) *float64 { return &c.sequence }, 1e-6, 50e-6, 0, 10, "s", assumed, "time of a step for each sequence that nothing hides"},
	{"host_sequence_seconds", func(c *constants) *float64 { return &c.hostSequence }, 8e-6, 0, 0, 10, "s", assumed, "host time of a step for each sequence, hidden by async scheduling"},
	{"prefill_token_seconds", func(c *constants) *float64 { return &c.prefillToken }, 0, 0, 0, 10, "s", assumed, "extra time for each token of a prompt"},
	{"element_passes", func(c *constants) *float64 { return &c.elementPasses }, 8, 4, 0, 1e3, "passes", assumed, "times a layer moves the hidden state through memory outside its GEMMs"},
	{"sampler_passes", func(c *constants) *float64 { return &c.samplerPasses }, 4, 4, 0, 1e3, "passes", assumed, "times sampling moves the logits (four bytes each) through memory"},

	{"link_use", func(c *constants) *float64 { return &c.linkUse }, 0.7, 0.7, 0.001, 1, "1", assumed, "share of the link's bandwidth in an all-reduce"},
	{"nvlink_latency_seconds", func(c *constants) *float64 { return &c.nvlinkLatency }, 14e-6, 8e-6, 0, 1, "s", fitted, "of an all-reduce over NVLink"},
	{"pcie_latency_seconds", func(c *constants) *float64 { return &c.pcieLatency }, 30e-6, 30e-6, 0, 1, "s", assumed, "of an all-reduce over PCIe"},

	{"activation_copies", func(c *constants) *float64 { return &c.activationCopies }, 4, 4, 0, 1e3, "copies", assumed, "hidden states alive at the peak of the profile run, beside the widest layer"},
	{"logit_bytes", func(c *constants) *float64 { return &c.logitBytes }, 12, 12, 0, 1e3, "B", fitted, "bytes for each logit of max_num_seqs rows in the profile run: logits, their float copies, sorting"},
	{"other_bytes", func(c *constants) *float64 { return &c.otherBytes }, 1.0 * gib, 0, 0, 1e12, "B", fitted, "memory of the process that is not PyTorch's: context, libraries, workspaces"},
	{"link_bytes", func(c *constants) *float64 { return &c.linkBytes }, 0.6 * gib, 0, 0, 1e12, "B", assumed, "buffers of the collectives, with tensor parallelism"},
	{"context_bytes", func(c *constants) *float64 { return &c.contextBytes }, 0.5 * gib, 0, 0, 1e12, "B", assumed, "memory in use on the GPU before the server allocates anything"},
	{"graph_layer_bytes", func(c *constants) *float64 { return &c.graphLayerBytes }, 0.2 * mib, 0, 0, 1e12, "B", assumed, "memory of one layer in one CUDA graph"},

	{"boot_seconds", func(c *constants) *float64 { return &c.boot }, 18, 16, 0, 1e5, "s", assumed, "start of the processes"},
	{"load_bytes_per_second", func(c *constants) *float64 { return &c.loadRate }, 2e9, 2e9, 1, 1e15, "B/s", assumed, "weights from disk to the GPUs, all together"},
	{"compile_layer_seconds", func(c *constants) *float64 { return &c.compileLayer }, 0.35, 0.35, 0, 1e3, "s", assumed, "compilation, a layer, where not eager"},
	{"capture_seconds", func(c *constants) *float64 { return &c.capture }, 0.15, 0.15, 0, 1e3, "s", assumed, "capture of one CUDA graph"},

	{"noise", func(c *constants) *float64 { return &c.noise }, 0.02, 0.02, 0, 0.2, "1", assumed, "standard deviation of a step's time, relative"},

	{"request_seconds", func(c *constants) *float64 { return &c.request }, 2.5e-3, 2.5e-3, 0, 10, "s", assumed, "an API server's event loop for each request: HTTP, validation, template, answer"},
	{"tokenize_seconds", func(c *constants) *float64 { return &c.tokenize }, 0.5e-3, 0.5e-3, 0, 10, "s", assumed, "its tokenizer thread for each request"},
	{"character_seconds", func(c *constants) *float64 { return &c.character }, 0.3e-6, 0.3e-6, 0, 1, "s", assumed, "its tokenizer thread for each character"},
	{"hand_over_seconds", func(c *constants) *float64 { return &c.handOver }, 0.5e-3, 0.5e-3, 0, 10, "s", assumed, "a request's way to the engine's process; takes time, but no CPU"},
	{"delivery_seconds", func(c *constants) *float64 { return &c.delivery }, 100e-6, 100e-6, 0, 10, "s", assumed, "an API server's event loop for each step's outputs"},
	{"token_seconds", func(c *constants) *float64 { return &c.token }, 15e-6, 15e-6, 0, 1, "s", assumed, "the same for each token: statistics, text"},
	{"message_seconds", func(c *constants) *float64 { return &c.message }, 31e-6, 31e-6, 0, 1, "s", published, "the same for each message to a client; with token_seconds 46 us, as BLIS fitted on traces of vLLM"},

	{"idle_power", func(c *constants) *float64 { return &c.idlePower }, 0.12, 0.3, 0, 1, "1", assumed, "share of the power limit while idle with a context open"},
	{"busy_power", func(c *constants) *float64 { return &c.busyPower }, 0.18, 0.5, 0, 2, "1", assumed, "share of the rest that any running kernel takes"},
	{"memory_power", func(c *constants) *float64 { return &c.memoryPower }, 0.45, 0.2, 0, 2, "1", assumed, "share of the rest at the full memory bandwidth"},
	{"tensor_power", func(c *constants) *float64 { return &c.tensorPower }, 1.05, 0.3, 0, 2, "1", assumed, "share of the rest at the full dense peak"},
	{"power_limit_w", func(c *constants) *float64 { return &c.powerLimit }, 0, 0, 0, 1e5, "W", published, "power limit; 0 is the GPU's own"},
}

// defaults returns the default constants of a GPU or a CPU.
func defaults(cpu bool) constants {
	var c constants
	for _, s := range specs {
		*s.field(&c) = s.gpu
		if cpu {
			*s.field(&c) = s.cpu
		}
	}
	return c
}

// override sets the constants of a device file; file is its name in errors.
func (c *constants) override(file string, given map[string]float64) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(specs, func(s spec) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("%s: constants: unknown name %q", file, name)
		}
		s, value := &specs[i], given[name]
		if !(value >= s.low && value <= s.high) {
			return fmt.Errorf("%s: constants: %s: %v is out of range: %v to %v (%s) is expected", file, name, value, s.low, s.high, s.unit)
		}
		*s.field(c) = value
	}
	return nil
}
