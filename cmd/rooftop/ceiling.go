package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func newCeiling(w *world) *cobra.Command {
	var (
		out                           output
		model, gpu, modelConfig, file string
		weight, kv                    string
		tp, batch                     int
		context, prompt               float64
		util                          float64
		eager                         bool
	)
	c := &cobra.Command{
		Use:   "ceiling",
		Short: "What a GPU allows for a model, without a server",
		Long: `Computes what hardware allows: the ideal step (every byte at full bandwidth,
every FLOP at full rate, nothing else) and the achievable one (fractions that
measured kernels reach), for decode at a batch and context and for prefill;
whether the weights fit, the least tensor parallelism, how many tokens the KV
pool holds. The documented formulas stand beside it as classic; the variables
DTYPE and VLLM_DTYPE set their bytes per parameter. All of it is an estimate.`,
		Example: `  rooftop ceiling --model Llama-3.1-8B-Instruct --gpu L4
  rooftop ceiling --model Qwen3-32B --gpu "H100 SXM" --tp 2 --batch 64 --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fromEnvironment(c.Flags(), w.env); err != nil {
				return err
			}
			if err := out.check(); err != nil {
				return err
			}
			if gpu == "" || (model == "" && modelConfig == "") {
				return usage("ceiling needs --model (or --model-config) and --gpu; 'rooftop catalog list' lists them")
			}
			if tp < 1 || batch < 1 || context < 0 || prompt < 1 || !(util > 0 && util <= 1) {
				return usage("ceiling: --tp and --batch must be at least 1, --prompt at least 1, --context not negative, --gpu-memory-utilization in 0..1")
			}
			cat, _, err := userCatalog(file)
			if err != nil {
				return err
			}
			g, err := cat.FindGPU(gpu, 0)
			if err != nil {
				return usage("--gpu: %w", err)
			}
			m, err := modelShape(cat, model, modelConfig)
			if err != nil {
				return err
			}
			if err := checkDegree(&m, tp); err != nil {
				return err
			}
			config := roofline.Config{GPU: g, Model: m, TP: tp, PP: 1, Eager: eager}
			if err := dtypes(&config, model, weight, kv); err != nil {
				return err
			}
			if missing := config.Check(); len(missing) > 0 {
				return usage("ceiling: %s of %s on %s is not in the catalog; give --model-config or --catalog", strings.Join(missing, ", "), m.ID, g.Name)
			}
			in := roofline.CeilingInput{Batch: float64(batch), Context: context, Prompt: prompt, Utilization: util}
			result, err := config.Ceiling(in)
			if err != nil {
				return fail(exitError, err)
			}
			answer := report.Ceiling{
				Inputs:   report.CeilingInputs(config, in, ceilingSources(c.Flags(), modelConfig)),
				Physical: result,
			}
			bytes, from := classicBytes(config.Weight, kv, w.env)
			putClassic(&answer, config, prompt, util, bytes, from)
			if out.json {
				err = report.WriteCeilingJSON(w.stdout, &answer)
			} else {
				err = report.WriteCeilingPlain(w.stdout, &answer, out.style(w))
			}
			if err != nil {
				return fail(exitError, err)
			}
			return nil
		},
	}
	g := groupFlags(c)
	f := g.group("Hardware and model")
	f.StringVar(&model, "model", "", "`NAME` of the model: a Hugging Face id or part of one")
	f.StringVar(&modelConfig, "model-config", "", "config.json `FILE` of the model, instead of the catalog")
	f.StringVar(&gpu, "gpu", "", "`NAME` of the GPU")
	f.StringVar(&file, "catalog", "", "YAML `FILE` with further GPUs and models")
	f.IntVar(&tp, "tp", 1, "`N` GPUs: the tensor-parallel degree")
	f.StringVar(&weight, "weight-dtype", "", "`TYPE` of the weights: bf16, fp8, int4, nvfp4, mxfp4, … (default: the model's own)")
	f.StringVar(&kv, "kv-dtype", "", "`TYPE` of the KV cache (default: the model's 16-bit type)")
	f.Float64Var(&util, "gpu-memory-utilization", 0.92, "`SHARE` of GPU memory that vLLM may use, 0 to 1")
	f.BoolVar(&eager, "enforce-eager", false, "without CUDA graphs")
	f = g.group("Load")
	f.IntVar(&batch, "batch", 1, "`N` sequences that decode at once")
	f.Float64Var(&context, "context", 1024, "`TOKENS` of a sequence's context, the mean")
	f.Float64Var(&prompt, "prompt", 1024, "`TOKENS` of a prompt")
	out.register(g, "inputs, terms and assumptions")
	g.done()
	return c
}

// ceilingSources says where each input came from.
func ceilingSources(f *pflag.FlagSet, modelConfig string) map[string]engine.Source {
	sources := map[string]engine.Source{}
	for flag, input := range map[string]string{
		"model": "model", "gpu": "gpu", "tp": "tensor_parallel_size", "batch": "batch", "context": "context_tokens",
		"prompt": "prompt_tokens", "weight-dtype": "weight_dtype", "kv-dtype": "kv_cache_dtype",
		"gpu-memory-utilization": "gpu_memory_utilization", "enforce-eager": "enforce_eager",
	} {
		given := f.Lookup(flag)
		switch {
		case !given.Changed:
		case given.Annotations[fromVariable] != nil:
			sources[input] = engine.FromEnv
		default:
			sources[input] = engine.FromFlag
		}
	}
	if sources["weight_dtype"] == "" {
		sources["weight_dtype"] = engine.FromCatalog
	}
	if modelConfig != "" {
		sources["model"] = engine.FromConfig
	}
	return sources
}

// checkDegree refuses a tensor-parallel degree that vLLM refuses: the query heads
// must divide (ModelConfig.verify_with_parallel_config), the KV heads divide or
// be replicated evenly (the assertions of its attention layers).
func checkDegree(m *catalog.Model, tp int) error {
	splits := func(t int) bool {
		kv := m.KVHeads
		if m.Attention == catalog.AttentionMLA {
			kv = 0 // one latent, replicated
		}
		return m.Heads%t == 0 && (kv == 0 || kv%t == 0 || t%kv == 0)
	}
	if m.Heads == 0 || splits(tp) {
		return nil
	}
	var near []string
	for t := min(tp-1, m.Heads); t >= 1; t-- {
		if splits(t) {
			near = append(near, strconv.Itoa(t))
			break
		}
	}
	for t := tp + 1; t <= m.Heads; t++ {
		if splits(t) {
			near = append(near, strconv.Itoa(t))
			break
		}
	}
	return usage("--tp %d: vLLM cannot split the %d attention heads (%d KV heads) of %s over %d GPUs; nearest that it can: %s",
		tp, m.Heads, m.KVHeads, m.ID, tp, strings.Join(near, " and "))
}

// classicBytes is bytes per parameter in the documented order of the classic
// formulas: the environment, the cache's type where it was given, the weights'.
func classicBytes(weight catalog.DType, kv string, env func(string) (string, bool)) (bytes float64, from string) {
	if d, ok := catalog.ParseDType(documentedDType(env)); ok {
		return d.Bytes(), "env"
	}
	if d, ok := catalog.ParseDType(kv); ok {
		return d.Bytes(), "kv_cache_dtype"
	}
	return weight.Bytes(), "the weights' type"
}

// putClassic puts the documented formulas beside the physical answer.
func putClassic(c *report.Ceiling, config roofline.Config, prompt, util, bytes float64, from string) {
	if config.GPU.FP32TFLOPS == 0 {
		c.ClassicReason = "the catalog has no FP32 peak for " + config.GPU.Name
	}
	classic := roofline.NewClassic(roofline.ClassicInput{
		GPU: config.GPU, TotalParams: config.Model.TotalParams, ActiveParams: config.Model.ActiveParams,
		BytesPerParam: bytes, BytesPerParamFrom: from, TP: config.TP,
		PromptTokens: stat.Some(prompt),
	})
	c.Classic = &classic
	if classic.WeightGB.OK && config.GPU.VRAMGiB > 0 {
		c.ClassicMinTP = roofline.MinTPClassic(classic.WeightGB.V, config.GPU.VRAMGiB*(1<<30)/1e9, util)
	}
}

// modelShape takes the model from a config.json where one is given, else from
// the catalog.
func modelShape(cat *catalog.Catalog, name, path string) (catalog.Model, error) {
	if path == "" {
		m, err := cat.FindModel(name)
		if err != nil {
			return m, usage("--model: %w", err)
		}
		return m, nil
	}
	m, err := readModelConfig(path)
	if err != nil {
		return m, err
	}
	if m.ID == "" {
		m.ID = path
	}
	return m, nil
}

// dtypes settles how weights and cache are stored: as said, else as the name
// says, else as the model was published. The cache never follows the weights.
func dtypes(c *roofline.Config, name, weight, kv string) error {
	c.Compute, c.KV = catalog.BF16, catalog.BF16
	if c.Model.NativeDType == catalog.FP16 {
		c.Compute, c.KV = catalog.FP16, catalog.FP16
	}
	c.Weight = c.Model.NativeDType
	if d, _, ok := catalog.DTypeOfName(name); ok {
		c.Weight = d
	}
	if c.Weight == "" {
		c.Weight = catalog.BF16
	}
	for _, given := range []struct {
		flag, text string
		into       *catalog.DType
	}{{"--weight-dtype", weight, &c.Weight}, {"--kv-dtype", kv, &c.KV}} {
		if given.text == "" || given.text == "auto" {
			continue
		}
		d, ok := catalog.ParseDType(given.text)
		if !ok {
			return usage("%s: %q is no type rooftop knows; bf16, fp16, fp32, fp8, int8, int4, mxfp4 and nvfp4 are", given.flag, given.text)
		}
		*given.into = d
	}
	return nil
}

func asAmbiguous(err error, into **catalog.AmbiguousError) bool { return errors.As(err, into) }
