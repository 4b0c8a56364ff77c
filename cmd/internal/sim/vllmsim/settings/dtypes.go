package settings

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// method is a quantisation method of vLLM.
type method struct {
	name string
	// weights is the type to which an unquantised checkpoint is converted; "" if the method needs a
	// checkpoint that was quantised with it.
	weights catalog.DType
	// reads lists the types that a checkpoint of the method may have.
	reads []catalog.DType
	// minCapability is get_min_capability of
	// vllm/model_executor/layers/quantization (0.32.0).
	minCapability int
}

var (
	fp8s  = []catalog.DType{catalog.FP8}
	int4s = []catalog.DType{catalog.INT4, catalog.INT8}
	any8  = []catalog.DType{catalog.FP8, catalog.INT8, catalog.INT4, catalog.NVFP4, catalog.MXFP4}
)

var methods = []method{
	{"fp8", catalog.FP8, fp8s, 75},
	{"fp8_per_tensor", catalog.FP8, nil, 75},
	{"fp8_per_block", catalog.FP8, nil, 75},
	{"fp8_per_channel", catalog.FP8, nil, 75},
	{"fbgemm_fp8", "", fp8s, 80},
	{"modelopt", "", fp8s, 89},
	{"modelopt_fp4", "", []catalog.DType{catalog.NVFP4}, 75},
	{"awq", "", int4s, 75},
	{"awq_marlin", "", int4s, 75},
	{"gptq", "", int4s, 60},
	{"gptq_marlin", "", int4s, 75},
	{"compressed-tensors", "", any8, 70},
	{"quark", "", any8, 70},
	{"torchao", "", any8, 75},
	{"inc", "", int4s, 60},
	{"mxfp4", "", []catalog.DType{catalog.MXFP4}, 80},
	{"int8_per_channel_weight_only", catalog.INT8, nil, 75},
}

// dtypes sets the types of weights, activations and KV cache.
func (p *parser) dtypes() {
	p.compute()
	p.weights()
	p.kv()
}

// compute sets the type of activations (ModelConfig.dtype).
func (p *parser) compute() {
	s := p.s
	dtype := p.choice("dtype", "auto", []string{"auto", "bfloat16", "float", "float16", "float32", "half"})
	bf16 := capability(s.GPU) == 0 || capability(s.GPU) >= 80
	switch d, _ := catalog.ParseDType(dtype); {
	case dtype == "auto":
		s.ComputeDType = catalog.BF16
		if s.Model.NativeDType == catalog.FP16 || !bf16 {
			s.ComputeDType = catalog.FP16
		}
	case d == catalog.BF16 && !bf16:
		p.refuse("Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your %s GPU has compute capability %d.%d. You can use float16 instead by explicitly setting the `dtype` flag in CLI, for example: --dtype=half.",
			s.GPU.Name, capability(s.GPU)/10, capability(s.GPU)%10)
	case d == catalog.FP32 && s.GPU.FP32TFLOPS <= 0:
		p.refuse("argument --dtype: the float32 peak of %s is not known; describe it with --sim-perf-file", s.GPU.Name)
	default:
		s.ComputeDType = d
	}
}

// weights sets the types of the linear layers' weights and of their products.
func (p *parser) weights() {
	s := p.s
	stored, named := s.Model.NativeDType, ""
	if d, method, ok := catalog.DTypeOfName(s.ModelName); ok {
		stored, named = d, method
	}
	quantized := slices.Contains(any8, stored)
	s.WeightDType = stored
	if !quantized {
		s.WeightDType = s.ComputeDType
	}
	if quantized {
		s.Quantization = named
	}
	if flag, _, given := p.cfg.Value("quantization"); given {
		p.quantization(flag, stored, quantized, named)
	} else if quantized && s.Quantization == "" {
		s.Quantization = map[catalog.DType]string{catalog.FP8: "fp8", catalog.MXFP4: "mxfp4", catalog.NVFP4: "modelopt_fp4"}[stored]
		if s.Quantization == "" {
			s.Quantization = "compressed-tensors"
		}
	}
	if i := slices.IndexFunc(methods, func(m method) bool { return m.name == s.Quantization }); i >= 0 {
		if have := capability(s.GPU); have > 0 && have < methods[i].minCapability {
			p.refuse("The quantization method %s is not supported for the current GPU. Minimum capability: %d. Current capability: %d.",
				s.Quantization, methods[i].minCapability, have)
		}
	}
	s.LinearDType = linear(s)
}

func (p *parser) quantization(flag string, stored catalog.DType, quantized bool, named string) {
	s := p.s
	i := slices.IndexFunc(methods, func(m method) bool { return m.name == flag })
	switch {
	case i < 0:
		var names []string
		for _, m := range methods {
			names = append(names, quoted(m.name))
		}
		p.refuse("Unknown quantization method: %s. Must be one of [%s].", flag, strings.Join(names, ", "))
	case !quantized && methods[i].weights == "":
		p.refuse("Cannot find the config file for %s", flag)
	case !quantized:
		s.WeightDType = methods[i].weights
	case !slices.Contains(methods[i].reads, stored):
		config := named
		if config == "" {
			config = string(stored)
		}
		p.refuse("Quantization method specified in the model config (%s) does not match the quantization method specified in the `quantization` argument (%s).", config, flag)
	}
	s.Quantization = flag
}

// linear returns the type in which the linear layers multiply. If the GPU has no units for the type of the
// weights, vLLM unpacks them first (Marlin), which saves bytes but no operations.
func linear(s *Settings) catalog.DType {
	switch {
	case s.WeightDType == catalog.FP8 && s.GPU.FP8TFLOPS > 0:
		return catalog.FP8
	case s.WeightDType == catalog.NVFP4 && s.GPU.FP4TFLOPS > 0:
		return catalog.NVFP4
	case s.WeightDType == catalog.MXFP4 && s.GPU.FP4TFLOPS > 0 && s.GPU.FP8TFLOPS > 0:
		return catalog.FP8 // four-bit weights by eight-bit activations
	case s.WeightDType == catalog.INT8 && s.GPU.INT8TOPS > 0 && has(s.ModelName, "w8a8"):
		return catalog.INT8
	}
	return s.ComputeDType
}

// kv sets the type of the KV cache. It accepts those of vLLM's spellings that name a plain type.
func (p *parser) kv() {
	s := p.s
	value := p.choice("kv_cache_dtype", "auto", []string{
		"auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla",
		"turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "ultraquant_4bit",
		"int4_per_token_head", "int8_per_token_head", "fp8_per_token_head", "nvfp4", "nvfp4_4over6",
	})
	s.KVDType = s.ComputeDType
	switch value {
	case "auto":
	case "float16", "bfloat16":
		s.KVDType, _ = catalog.ParseDType(value)
	case "fp8", "fp8_e4m3", "fp8_e5m2":
		have := capability(s.GPU)
		if have > 0 && have < 80 {
			p.refuse("No valid attention backend found for cuda with kv_cache_dtype=%s on a GPU of compute capability %d.%d: kv_cache_dtype not supported",
				value, have/10, have%10)
		}
		s.KVDType = catalog.FP8
	default:
		p.limitation("--kv-cache-dtype "+value, "KV formats other than 16 bit and plain fp8")
	}
}

var smPattern = regexp.MustCompile(`\bsm(\d+)\b`)

// capability returns a GPU's CUDA compute capability times ten; 0 if it has none.
func capability(g catalog.GPU) int {
	m := smPattern.FindStringSubmatch(g.Arch)
	if g.Vendor != "nvidia" || m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}
