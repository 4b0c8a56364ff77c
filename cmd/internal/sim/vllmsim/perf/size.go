package perf

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Sizing is the KV pool of one rank.
type Sizing struct {
	WeightBytes     float64 // on one GPU
	ActivationBytes float64 // peak of the profile run, on one GPU
	OtherBytes      float64 // outside PyTorch, on one GPU
	GraphBytes      float64 // estimate for CUDA graphs, on one GPU
	KVBytes         float64 // pool, on one GPU
	BytesPerToken   float64 // of KV, on one GPU
	NumBlocks       int     // including the null block
	MaxConcurrency  float64 // requests of max_model_len that fit into the pool
	// TokenCapacity is kv_cache_size_tokens, max_model_len times MaxConcurrency
	// (vllm/v1/core/kv_cache_utils.py, get_kv_cache_capacity, 0.32.0).
	TokenCapacity int
}

// Size returns the KV pool. The error is vLLM's refusal to start: the weights do not fit, or the pool is too
// small for one request of max_model_len; it then states the largest length that fits.
//
// The order is that of vllm/v1/worker/gpu_worker.py and
// vllm/v1/core/kv_cache_utils.py (0.32.0): the share of the memory that the
// server may take, less the weights, the peak of a profile run at the full token
// budget, what is not PyTorch's and, since 0.21, the CUDA graphs.
func (m *Machine) Size() (Sizing, error) {
	s := m.s
	total := s.GPU.VRAMGiB * gib
	z := Sizing{
		WeightBytes:     m.weights(),
		ActivationBytes: m.activations(),
		OtherBytes:      m.c.otherBytes,
		GraphBytes:      m.c.graphLayerBytes * float64(s.Model.Layers) * float64(captures(s.MaxCaptureSize)),
		BytesPerToken:   m.kvBytes,
	}
	if m.tp > 1 {
		z.OtherBytes += m.c.linkBytes
	}
	free := total - m.c.contextBytes
	asked := s.GPUMemoryUtilization * total
	if s.KVCacheMemoryBytes == 0 && asked > free {
		return z, refusal(fmt.Sprintf(notFree, free/gib, total/gib, s.GPUMemoryUtilization, asked/gib))
	}
	if need := z.WeightBytes + z.OtherBytes; need > free {
		return z, m.outOfMemory("Loading the weights", need)
	}
	block := float64(s.BlockSize) * m.kvBytes
	switch {
	case s.NumGPUBlocksOverride > maxBlocks:
		return z, fmt.Errorf("not simulated: --num-gpu-blocks-override %d, more than %d blocks", s.NumGPUBlocksOverride, maxBlocks)
	case s.NumGPUBlocksOverride > 0:
		z.NumBlocks = s.NumGPUBlocksOverride
		z.KVBytes = float64(z.NumBlocks) * block
	case s.KVCacheMemoryBytes > 0:
		z.KVBytes = s.KVCacheMemoryBytes
	default:
		z.KVBytes = asked - z.WeightBytes - z.ActivationBytes - z.OtherBytes
		if graphsCounted(s.Release) {
			z.KVBytes -= z.GraphBytes
		}
	}
	if s.NumGPUBlocksOverride == 0 {
		if err := m.enough(z.KVBytes); err != nil {
			return z, err
		}
		if z.KVBytes/block > maxBlocks {
			return z, fmt.Errorf("not simulated: a pool of %.0f blocks, more than %d; give one with --num-gpu-blocks-override", z.KVBytes/block, maxBlocks)
		}
		z.NumBlocks = int(z.KVBytes / block)
		z.KVBytes = float64(z.NumBlocks) * block
	}
	if need := z.WeightBytes + z.OtherBytes + z.KVBytes; need > free {
		return z, m.outOfMemory("The KV cache", need)
	}
	z.MaxConcurrency = float64(z.NumBlocks) / math.Ceil(float64(s.MaxModelLen)/float64(s.BlockSize))
	z.TokenCapacity = int(z.MaxConcurrency * float64(s.MaxModelLen))
	return z, nil
}

// maxBlocks bounds the number of simulated blocks.
const maxBlocks = 1 << 22

// refusal is an error with vLLM's text, including its full stops.
type refusal string

func (r refusal) Error() string { return string(r) }

// Texts with which vLLM refuses to start (vllm/v1/worker/utils.py and vllm/v1/core/kv_cache_utils.py, 0.32.0).
const (
	notFree = "Free memory on device cuda:0 (%.2f/%.2f GiB) on startup is less than desired GPU memory utilization (%v, %.2f GiB). " +
		"Decrease GPU memory utilization or reduce GPU memory used by other processes."
	noBlocks = "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
	tooLong  = "To serve at least one request with the model's max seq len (%d), (%.2f GiB KV cache is needed, " +
		"which is larger than the available KV cache memory (%.2f GiB). Based on the available memory, " +
		"the estimated maximum model length is %d. " +
		"Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)

// graphsCounted reports whether a release subtracts CUDA graphs from the pool, as vLLM does since 0.21
// (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS).
func graphsCounted(release string) bool { return release == "0.32" }

func (m *Machine) outOfMemory(what string, need float64) error {
	s := m.s
	return fmt.Errorf("torch.OutOfMemoryError: CUDA out of memory. %s of %s takes memory to %.2f GiB on each of %d GPUs; GPU 0 (%s) has a total capacity of %.2f GiB",
		what, s.ModelName, need/gib, s.TensorParallel, s.GPU.Name, s.GPU.VRAMGiB)
}

// enough returns vLLM's refusal if the memory does not suffice for the KV cache, like
// check_enough_kv_cache_memory of vllm/v1/core/kv_cache_utils.py.
func (m *Machine) enough(available float64) error {
	s := m.s
	block := float64(s.BlockSize) * m.kvBytes
	if available <= 0 || available < 2*block {
		return refusal(noBlocks)
	}
	need := math.Ceil(float64(s.MaxModelLen)/float64(s.BlockSize)) * block
	if need <= available {
		return nil
	}
	fits := int(available/block) * s.BlockSize
	return refusal(fmt.Sprintf(tooLong, s.MaxModelLen, need/gib, available/gib, fits))
}

// weights returns the bytes of the model on one GPU. Embedding tables are not quantised.
func (m *Machine) weights() float64 {
	sum := 0.0
	for i := range m.layers {
		sum += m.layers[i].bytes
	}
	sum += m.moe.count * m.moe.one.bytes
	bytes := m.s.ComputeDType.Bytes()
	return sum + (m.tables()+m.s.Model.VisionParams)/m.tp*bytes
}

// activations returns the peak of PyTorch's memory in the profile run, in bytes: the larger of the widest layer
// at the full token budget and the sampler with max_num_seqs rows (vllm/v1/worker/gpu_model_runner.py,
// profile_run and _dummy_sampler_run), plus the hidden states, which exist during both.
func (m *Machine) activations() float64 {
	model, s := m.s.Model, m.s
	tokens, element := float64(s.MaxNumBatchedTokens), s.ComputeDType.Bytes()
	hidden := float64(model.Hidden)
	width := float64(model.Intermediate)
	if model.MoELayers() > 0 {
		expert := float64(cmp.Or(model.ExpertWidth, model.Intermediate))
		// Tokens are copied for each of their experts.
		width = max(expert*float64(model.ExpertsPerToken), float64(model.SharedWidth))
		hidden += hidden * float64(model.ExpertsPerToken) / 2
	}
	layer := tokens * 3 * width / m.tp * element // gate and up, then their product
	rows := float64(min(s.MaxNumSeqs, s.MaxNumBatchedTokens))
	logits := rows * float64(model.Vocab) * m.c.logitBytes
	return layer + logits + m.c.activationCopies*tokens*hidden*element
}

// captures returns the number of CUDA graphs up to a size: 1, 2, 4, every 8 below 256, every 16 above
// (VllmConfig._set_cudagraph_sizes, 0.32.0).
func captures(largest int) int {
	n := 0
	for _, small := range []int{1, 2, 4} {
		if small <= largest {
			n++
		}
	}
	n += min(largest, 255) / 8
	if largest >= 256 {
		n += (largest-256)/16 + 1
	}
	return n
}

// Startup returns the time from the start of the server until it is healthy.
func (m *Machine) Startup() time.Duration {
	s := m.s
	if s.StartupTime >= 0 {
		return s.StartupTime
	}
	seconds := m.c.boot + m.weights()*m.tp*float64(s.DataParallel)/m.c.loadRate
	if !s.EnforceEager {
		seconds += m.c.compileLayer*float64(s.Model.Layers) + m.c.capture*float64(captures(s.MaxCaptureSize))
	}
	return time.Duration(math.Round(seconds*1e3)) * time.Millisecond
}
