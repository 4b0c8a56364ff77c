package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ceilingOptions are the flags of ceiling.
type ceilingOptions struct {
	cli.Output
	gpu, model, modelConfig, catalogFile string
	weight, kv                           string
	tp, batch                            int
	context, prompt, utilization         float64
	eager                                bool
}

func newCeiling(w *cli.World) *cobra.Command {
	var o ceilingOptions
	g := cli.GroupFlags(newCommand("ceiling", noArgs, func(c *cobra.Command, _ []string) error { return o.run(w, c.Flags()) }))
	f := g.Group("Hardware and model")
	f.StringVar(&o.model, "model", "", "`NAME` of the model: a Hugging Face id or a short name")
	f.StringVar(&o.modelConfig, "model-config", "", "config.json `FILE` of the model, instead of the catalog")
	f.StringVar(&o.gpu, "gpu", "", "`NAME` of the GPU")
	f.StringVar(&o.catalogFile, "catalog", "", "YAML `FILE` with further GPUs and models")
	f.IntVar(&o.tp, "tp", 1, "`N` GPUs: the tensor-parallel degree")
	f.StringVar(&o.weight, "weight-dtype", "", "`TYPE` of the weights: bf16, fp8, int4, nvfp4, mxfp4, … (default: the model's own)")
	f.StringVar(&o.kv, "kv-dtype", "", "`TYPE` of the KV cache (default: the model's 16-bit type)")
	f.Float64Var(&o.utilization, "gpu-memory-utilization", 0.92, "`SHARE` of GPU memory that vLLM may use, 0 to 1")
	f.BoolVar(&o.eager, "enforce-eager", false, "run without CUDA graphs")
	f = g.Group("Load")
	f.IntVar(&o.batch, "batch", 1, "`N` sequences that decode concurrently")
	f.Float64Var(&o.context, "context", 1024, "mean context of a sequence, in `TOKENS`")
	f.Float64Var(&o.prompt, "prompt", 1024, "length of a prompt, in `TOKENS`")
	o.Output.Register(g, "inputs, terms and assumptions")
	return g.Done()
}

func (o *ceilingOptions) run(w *cli.World, flags *pflag.FlagSet) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	in := roofline.CeilingInput{Batch: float64(o.batch), Context: o.context, Prompt: o.prompt, Utilization: o.utilization}
	physical, err := config.Ceiling(in)
	if err != nil {
		return err
	}
	answer := tuning.HardwareCeiling{
		Inputs: tuning.CeilingInputs(config, in, ceilingSources(flags, o.modelConfig)), Batch: in.Batch, Physical: physical,
	}
	bytes, from := profileBytes(config.Weight, o.kv, w.Env)
	addProfile(&answer, config, o.prompt, o.utilization, bytes, from)
	return cli.Print(w, &o.Output, &answer, cli.Text(func(c *tuning.HardwareCeiling) *page.Page {
		return tuning.Ceiling(c, tuning.Options{Verbose: o.Verbose})
	}), document.WriteCeiling)
}

// config returns the described replica, or an error if it is invalid.
func (o *ceilingOptions) config() (c roofline.Config, err error) {
	switch {
	case o.gpu == "" || o.model == "" && o.modelConfig == "":
		return c, cli.Usagef("ceiling needs --model (or --model-config) and --gpu; 'rooftop catalog list' lists them")
	case !(o.utilization > 0 && o.utilization <= 1):
		return c, cli.Usagef("ceiling: --gpu-memory-utilization %v: give a share above 0 and at most 1, such as 0.9", o.utilization)
	}
	for _, n := range [...]struct {
		flag         string
		given, least float64
	}{{"tp", float64(o.tp), 1}, {"batch", float64(o.batch), 1}, {"prompt", o.prompt, 1}, {"context", o.context, 0}} {
		if n.given < n.least {
			return c, cli.Usagef("ceiling: --%s %v: give at least %v", n.flag, n.given, n.least)
		}
	}
	cat, _, err := cli.UserCatalog(o.catalogFile)
	if err != nil {
		return c, err
	}
	c = roofline.Config{TP: o.tp, PP: 1, Eager: o.eager}
	if c.GPU, err = cat.FindGPU(o.gpu, 0); err != nil {
		return c, cli.Usagef("--gpu: %w", err)
	}
	if c.Model, err = modelShape(cat, o.model, o.modelConfig); err != nil {
		return c, err
	}
	if err := checkDegree(&c.Model, o.tp); err != nil {
		return c, err
	}
	if err := dtypes(&c, o.model, o.weight, o.kv); err != nil {
		return c, err
	}
	if missing := c.Check(); len(missing) > 0 {
		return c, cli.Usagef("ceiling: %s of %s on %s is not in the catalog; give --model-config or --catalog", strings.Join(missing, ", "), c.Model.ID, c.GPU.Name)
	}
	return c, nil
}

// ceilingSources returns the source of each input.
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
		case cli.FromVariable(given):
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

// checkDegree rejects tensor-parallel degrees that vLLM rejects: the degree must divide the query
// heads (ModelConfig.verify_with_parallel_config), and divide or be a multiple of the KV heads (the
// assertions of its attention layers).
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
	return cli.Usagef("--tp %d: vLLM cannot split the %d attention heads (%d KV heads) of %s over %d GPUs; nearest that it can: %s",
		tp, m.Heads, m.KVHeads, m.ID, tp, strings.Join(near, " and "))
}

// profileBytes returns the bytes per parameter in the order of the PROFILE formulas: from the
// environment, else the cache's type if it was given, else the weights' type.
func profileBytes(weight catalog.DType, kv string, env func(string) (string, bool)) (bytes float64, from string) {
	if d, ok := catalog.ParseDType(attach.DocumentedDType(env)); ok {
		return d.Bytes(), "env"
	}
	if d, ok := catalog.ParseDType(kv); ok {
		return d.Bytes(), "kv_cache_dtype"
	}
	return weight.Bytes(), "the weights' type"
}

// addProfile adds the PROFILE formulas to the physical answer.
func addProfile(c *tuning.HardwareCeiling, config roofline.Config, prompt, util, bytes float64, from string) {
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

// modelShape returns the model from a config.json if path is given, otherwise from the catalog.
func modelShape(cat *catalog.Catalog, name, path string) (catalog.Model, error) {
	if path == "" {
		m, err := cat.FindModel(name)
		if err != nil {
			return m, cli.Usagef("--model: %w", err)
		}
		return m, nil
	}
	m, err := attach.ReadModelConfig(path)
	if err != nil {
		return m, err
	}
	if m.ID == "" {
		m.ID = path
	}
	return m, nil
}

// dtypes sets the types of weights and cache: as given, else as in the model's name, else as
// published. The cache type never follows the weights.
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
	if given, ok, err := attach.DTypeFlag("--weight-dtype", weight); err != nil {
		return err
	} else if ok {
		c.Weight = given
	}
	given, ok, err := attach.DTypeFlag("--kv-dtype", kv)
	if c.KVAssumed = !ok; ok {
		c.KV = given
	}
	return err
}
