package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// Defaults of the simulation: a common server.
const (
	defaultModel  = "meta-llama/Llama-3.1-8B-Instruct"
	defaultGPU    = "NVIDIA L4"
	defaultLength = 8192
)

// hardware sets the GPU: that of the device file, the named one, or the default.
func (p *parser) hardware() {
	s := p.s
	if s.PerfFile != "" {
		text, err := p.read(s.PerfFile)
		if err != nil {
			p.refuse("argument --sim-perf-file: %w", err)
			return
		}
		if s.Device, err = ParseDevice(text, s.PerfFile); err != nil {
			p.refuse("argument --sim-perf-file: %w", err)
			return
		}
	}
	switch named := s.GPU.Name; {
	case s.Device.GPU != nil && named != "":
		p.refuse("argument --sim-gpu: %s describes a GPU too; give one of the two", s.PerfFile)
		return
	case s.Device.GPU != nil:
		s.GPU = *s.Device.GPU
	default:
		if named == "" {
			named = defaultGPU
			p.note("no --sim-gpu given: one %s is simulated", named)
		}
		gpu, err := p.gpu(named)
		if err != nil {
			p.notFound(fmt.Sprintf("argument --sim-gpu: %q", named), err, "`rooftop catalog list gpus` lists all, and --sim-perf-file can describe another")
			return
		}
		s.GPU = gpu
	}
	if s.GPU.VRAMGiB <= 0 || s.GPU.MemBandwidthGBs <= 0 || s.GPU.BF16TFLOPS <= 0 && s.GPU.FP32TFLOPS <= 0 {
		p.refuse("argument --sim-gpu: memory, bandwidth or peak of %s is not known; describe it with --sim-perf-file", s.GPU.Name)
	}
	p.hw = catalog.Hardware{Device: gpuWord(s.GPU), VRAMGiB: s.GPU.VRAMGiB, GPUName: s.GPU.Name, WorldSize: 1, APIServer: true}
}

// gpu returns the GPU of a name. If several match, the one with exactly that name is used: there is no device
// whose memory could decide.
func (p *parser) gpu(name string) (catalog.GPU, error) {
	all := p.catalog.GPUs()
	if i := slices.IndexFunc(all, func(g catalog.GPU) bool { return strings.EqualFold(g.Name, name) }); i >= 0 {
		return all[i], nil
	}
	return p.catalog.FindGPU(name, 0)
}

// notFound refuses a name that the catalog does not have, or has several times.
func (p *parser) notFound(what string, err error, instead string) {
	var several *catalog.AmbiguousError
	if errors.As(err, &several) {
		p.refuse("%s fits several: %s; name one of them", what, strings.Join(several.Candidates, ", "))
		return
	}
	near := ""
	if unknown := new(catalog.UnknownError); errors.As(err, &unknown) && unknown.Nearest != "" {
		near = " (nearest: " + unknown.Nearest + ")"
	}
	p.refuse("%s is not in the catalog%s; %s", what, near, instead)
}

// model sets the model: from a directory with a config.json, else from the catalog.
func (p *parser) model() {
	s := p.s
	s.ModelName, _, p.modelGiven = p.cfg.Model()
	if !p.modelGiven {
		s.ModelName = defaultModel
		p.note("no model given: %s is simulated, with a length of %d unless --max-model-len says otherwise", defaultModel, defaultLength)
	}
	s.Served = p.cfg.ServedModelNames()
	if len(s.Served) == 0 {
		s.Served = []string{s.ModelName}
	}
	if text, err := p.read(path.Join(s.ModelName, "config.json")); err == nil && p.modelGiven {
		s.Model, err = catalog.ParseModelConfig(bytes.NewReader(text))
		if err != nil {
			p.refuse("model %s: %w", s.ModelName, err)
			return
		}
		s.Model.ID = s.ModelName
	} else {
		m, err := p.catalog.FindModel(s.ModelName)
		if err != nil {
			p.notFound("model "+s.ModelName, err, "name a directory with its config.json, or a model that `rooftop catalog list models` lists")
			return
		}
		s.Model = m
	}
	p.simulable(s.Model)
}

// simulable refuses models without a plain KV cache, and shapes for which the time of a step cannot be computed.
func (p *parser) simulable(m catalog.Model) {
	full, window, linear := m.CacheLayers()
	model := "model " + p.s.ModelName
	switch {
	case m.TotalParams <= 0 || m.Layers <= 0 || m.Hidden <= 0 || m.Heads <= 0 || m.Vocab <= 0 || m.MaxPositions <= 0:
		p.refuse("%s: its shape is not fully known (parameters, layers, width, heads, vocabulary, length); name a directory with its config.json", model)
	case linear > 0:
		p.refuse("not simulated: %s: %d layers of linear attention keep a state instead of a KV cache", model, linear)
	case window > 0:
		p.refuse("not simulated: %s: %d layers with a sliding window, which recycle their KV blocks", model, window)
	case full != m.Layers || m.Attention == catalog.AttentionHybrid:
		p.refuse("not simulated: %s: layers that share or vary their KV cache", model)
	case m.SparseTopK > 0:
		p.refuse("not simulated: %s: sparse attention", model)
	case m.Attention == catalog.AttentionMLA:
		if m.KVLoraRank <= 0 || m.QKRopeHeadDim <= 0 || m.VHeadDim <= 0 {
			p.refuse("%s: the shape of its latent attention is not known", model)
		}
	case m.KVHeads <= 0 || m.HeadDim <= 0:
		p.refuse("%s: the shape of its KV cache is not known", model)
	}
}

// nodeGPUs is the largest number of GPUs of a simulated machine.
const nodeGPUs = 8

// FreeGPUs returns the GPUs of the machine that the server does not use.
func (s *Settings) FreeGPUs() int { return max(0, s.MachineGPUs-s.TensorParallel*s.DataParallel) }

// parallel sets the degrees of parallelism.
func (p *parser) parallel() {
	s := p.s
	s.TensorParallel, s.DataParallel = 1, 1
	p.setWhole(&s.TensorParallel, "tensor_parallel_size", 1)
	p.setWhole(&s.DataParallel, "data_parallel_size", 1)
	m := s.Model
	switch {
	case s.TensorParallel > nodeGPUs:
		p.limitation("--tensor-parallel-size "+strconv.Itoa(s.TensorParallel), fmt.Sprintf("more than one node of %d GPUs", nodeGPUs))
	case s.MachineGPUs > 0 && s.TensorParallel*s.DataParallel > s.MachineGPUs:
		p.refuse("World size (%d) is larger than the number of available GPUs (%d) in this node.", s.TensorParallel*s.DataParallel, s.MachineGPUs)
	case s.DataParallel > 64:
		p.limitation("--data-parallel-size "+strconv.Itoa(s.DataParallel), "more than 64 ranks")
	case s.DataParallel > 1 && m.MoELayers() > 0:
		p.limitation("--data-parallel-size with a mixture of experts", "vLLM shares the experts between the ranks, which then step together")
	case m.Heads%s.TensorParallel != 0:
		p.refuse("Total number of attention heads (%d) must be divisible by tensor parallel size (%d).", m.Heads, s.TensorParallel)
	case m.Attention != catalog.AttentionMLA && m.KVHeads > 0 && m.KVHeads%s.TensorParallel != 0 && s.TensorParallel%m.KVHeads != 0:
		p.refuse("%d KV heads cannot be split over or copied to %d tensor parallel ranks.", m.KVHeads, s.TensorParallel)
	}
	p.hw.WorldSize = s.TensorParallel
}

// length sets max_model_len.
func (p *parser) length() {
	s := p.s
	s.MaxModelLen = min(s.Model.MaxPositions, maxWhole)
	if !p.modelGiven {
		s.MaxModelLen = min(defaultLength, s.MaxModelLen)
	}
	value, _, given := p.cfg.Value("max_model_len")
	if !given {
		return
	}
	n, _, ok := p.cfg.Int("max_model_len")
	switch {
	case !ok:
		p.refuse("argument --max-model-len: invalid human_readable_int_or_auto value: %s", quoted(value))
	case n == -1:
		p.limitation("--max-model-len "+value, "a length fitted to the memory; give a number")
	case n < 1:
		p.refuse("max_model_len: Input should be greater than 0 (got %s)", value)
	case n > s.MaxModelLen && p.modelGiven || n > s.Model.MaxPositions:
		p.refuse("User-specified max_model_len (%d) is greater than the derived max_model_len (max_position_embeddings=%d or model_max_length=None in model's config.json).",
			n, s.Model.MaxPositions)
	}
	s.MaxModelLen = n
}

// lora sets the adapters.
func (p *parser) lora() {
	s := p.s
	s.LoRA = p.boolean("enable_lora", false)
	loras := p.fallbackInt("max_loras", 1)
	if p.setWhole(&loras, "max_loras", 1); s.LoRA {
		s.MaxLoras = loras
	}
	s.LoRAModules = p.adapters()
	if len(s.LoRAModules) > 0 && !s.LoRA {
		p.refuse("--lora-modules needs --enable-lora: LoRA is not enabled")
	}
}

// frontEnd sets the options of the API server.
func (p *parser) frontEnd() {
	s := p.s
	// vLLM listens on all addresses by default, a simulation only on loopback.
	s.Host, s.Port = "127.0.0.1", 8000
	if host, _, ok := p.cfg.Value("host"); ok {
		s.Host = host
	}
	if p.setWhole(&s.Port, "port", 0); s.Port > 65535 {
		p.refuse("argument --port: port must be 0-65535 (got %d)", s.Port)
	}
	s.StreamInterval = 1
	p.setWhole(&s.StreamInterval, "stream_interval", 1)
	s.LogStats = !p.boolean("disable_log_stats", false)
	// With the internal load balancer there are as many front ends as ranks.
	s.APIServers = s.DataParallel
	if p.setWhole(&s.APIServers, "api_server_count", 1); s.APIServers > 64 {
		p.limitation("--api-server-count "+strconv.Itoa(s.APIServers), "more than 64 processes")
	}
}

func jsonName(text string) (string, bool) {
	var v struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal([]byte(text), &v)
	return v.Name, err == nil
}

// has reports whether a name contains one of the words.
func has(name string, words ...string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r != '_' && (r < '0' || r > '9' && r < 'a' || r > 'z')
	})
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(parts, w) })
}
