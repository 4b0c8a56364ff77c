package facts

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

func (r *resolver) model() {
	f := &r.f
	served := r.in.Server.Model
	from := engine.FromServer
	if served == "" && r.in.Page != nil {
		served, from = r.in.Page.Model, engine.FromMetrics
	}
	if served != "" {
		f.Model = engine.Know(served, from, "")
	}
	switch {
	case r.in.LaunchModel != "":
		f.ModelPath = engine.Know(r.in.LaunchModel, engine.FromCmdline, "")
	case r.in.Server.Root != "":
		f.ModelPath = engine.Know(r.in.Server.Root, engine.FromServer, "")
	case served != "":
		f.ModelPath = engine.Know(served, from, "the served name; the path behind it is not known")
	}
	said, saidFrom := given(r.in.Flags.Model, r.in.Env.Model)
	if said != "" {
		f.ModelPath = engine.Know(said, saidFrom, "")
		if !f.Model.Known {
			f.Model = f.ModelPath
		}
	}
	r.modelSpec(said)
	if f.ModelKnown {
		source, note := f.ModelFrom, ""
		if source == engine.FromCatalog {
			note = "(est) " + f.ModelSpec.ID
		}
		f.ParamsTotal = engine.Know(f.ModelSpec.TotalParams, source, note)
		f.ParamsActive = engine.Know(f.ModelSpec.ActiveParams, source, note)
	}
	f.MaxModelLen = r.maxModelLen()
}

// modelSpec resolves the shape of the model. config.json takes precedence over the catalog, and the
// path behind the served name over the name.
func (r *resolver) modelSpec(said string) {
	f := &r.f
	if r.in.ModelConfig != nil && (said == "" || r.in.ModelConfigFrom == engine.FromFlag) {
		f.ModelSpec, f.ModelKnown, f.ModelFrom = *r.in.ModelConfig, true, r.in.ModelConfigFrom
		if f.ModelSpec.ID == "" {
			f.ModelSpec.ID = f.ModelPath.Value
		}
		return
	}
	names := []string{said, r.in.LaunchModel, r.in.Server.Root, f.Model.Value}
	if said != "" {
		names = names[:1]
	}
	var first error
	for _, name := range names {
		if name == "" {
			continue
		}
		spec, err := r.cat.FindModel(name)
		if err == nil {
			f.ModelSpec, f.ModelKnown, f.ModelFrom = spec, true, engine.FromCatalog
			r.compareModels(spec)
			return
		}
		if first == nil {
			first = err
		}
	}
	note := "the model's name is not known"
	if first != nil {
		note = first.Error()
	}
	f.ParamsTotal.Note, f.ParamsActive.Note = note, note
}

// sameModel is the largest relative difference between two parameter counts of one model.
const sameModel = 0.10

// compareModels reports a conflict if the named model is not the served one.
func (r *resolver) compareModels(named catalog.Model) {
	own := r.in.ModelConfig
	if own == nil || own.TotalParams <= 0 || named.TotalParams <= 0 {
		return
	}
	if ratio := named.TotalParams / own.TotalParams; ratio > 1+sameModel || ratio < 1/(1+sameModel) {
		r.conflict("model: %s has %.3g B parameters, the served model's config.json %.3g B; %s is used", named.ID, named.TotalParams/1e9, own.TotalParams/1e9, named.ID)
	}
}

func (r *resolver) maxModelLen() engine.Fact[int] {
	if n := r.in.Server.MaxModelLen; n > 0 {
		return engine.Know(n, engine.FromServer, "")
	}
	if n, _ := r.discoveredInt("max_model_len"); n.Known {
		return n
	}
	tokens, okT := asFloat(r.cache.KVCacheSizeTokens)
	times, okC := asFloat(r.cache.KVCacheMaxConcurrency)
	if okT && okC && times > 0 {
		return engine.Know(int(tokens/times+0.5), engine.FromMetrics, "kv_cache_size_tokens / kv_cache_max_concurrency")
	}
	if r.f.ModelKnown && r.f.ModelSpec.MaxPositions > 0 {
		return engine.Know(r.f.ModelSpec.MaxPositions, r.f.ModelFrom, "the model's own limit; the launch may have set less")
	}
	return engine.Fact[int]{Note: "neither /v1/models nor the launch command is readable"}
}

// dtypes resolves the dtypes of weights, cache and arithmetic. The dtype of weights is never derived
// from that of the cache.
func (r *resolver) dtypes() {
	f := &r.f
	quant, quantFrom, quantized := r.discovered("quantization")
	if quantized {
		f.Quantization = engine.Know(quant, quantFrom, "")
	}
	dtype, dtypeFrom, dtypeSet := r.discovered("dtype")
	compute, computeOK := catalog.ParseDType(dtype)
	if dtypeSet && computeOK {
		f.ComputeDType = engine.Know(string(compute), dtypeFrom, "")
	} else {
		f.ComputeDType = engine.Know(string(catalog.BF16), engine.FromDefault, "")
		if f.ModelKnown && (f.ModelSpec.NativeDType == catalog.FP16 || f.ModelSpec.NativeDType == catalog.FP32) {
			f.ComputeDType = engine.Know(string(f.ModelSpec.NativeDType), f.ModelFrom, "")
		}
	}
	f.WeightDType = r.weightDType(quant, quantFrom, quantized)
	if !f.Quantization.Known {
		if _, method, ok := catalog.DTypeOfName(f.ModelPath.Value); ok && method != "" {
			f.Quantization = engine.Know(method, engine.FromDerived, "from the model's name")
		}
	}

	kv, kvFrom, ok := r.discovered("kv_cache_dtype")
	if !ok && r.cache.CacheDType != "" {
		kv, kvFrom, ok = r.cache.CacheDType, engine.FromMetrics, true
	}
	if text, made := r.made("kv_cache_dtype"); !ok && made && text != "" {
		kv, kvFrom, ok = text, engine.FromDerived, true
	}
	stored, known := catalog.ParseDType(kv)
	switch {
	case ok && known:
		f.KVCacheDType = engine.Know(string(stored), kvFrom, "")
	case ok && kv != "auto":
		f.KVCacheDType = engine.Fact[string]{Note: fmt.Sprintf("%q is not a cache type rooftop knows", kv)}
	case ok:
		f.KVCacheDType = engine.Know(f.ComputeDType.Value, kvFrom, "auto: the model's own type")
	default:
		f.KVCacheDType = engine.Know(f.ComputeDType.Value, engine.FromDefault, "auto: the model's own type")
	}
	r.classicBytes(kv)
}

func (r *resolver) weightDType(quant string, quantFrom engine.Source, quantized bool) engine.Fact[string] {
	f := &r.f
	if r.in.ModelConfig != nil && f.ModelSpec.NativeDType != "" && !quantized {
		if f.ComputeDType.Source != engine.FromDefault && unquantized(f.ModelSpec.NativeDType) {
			return engine.Know(f.ComputeDType.Value, f.ComputeDType.Source, "--dtype")
		}
		return engine.Know(string(f.ModelSpec.NativeDType), r.in.ModelConfigFrom, "config.json")
	}
	for _, name := range []string{f.ModelPath.Value, f.Model.Value} {
		if d, _, ok := catalog.DTypeOfName(name); ok {
			return engine.Know(string(d), engine.FromDerived, "from the model's name")
		}
	}
	if quantized {
		if d, ok := catalog.ParseDType(quant); ok {
			return engine.Know(string(d), quantFrom, "--quantization")
		}
		if d, _, ok := catalog.DTypeOfName("x-" + quant); ok {
			return engine.Know(string(d), quantFrom, "--quantization")
		}
	}
	if f.ModelKnown && f.ModelSpec.NativeDType != "" {
		if f.ComputeDType.Source != engine.FromDefault && unquantized(f.ModelSpec.NativeDType) && f.ComputeDType.Source != f.ModelFrom {
			return engine.Know(f.ComputeDType.Value, f.ComputeDType.Source, "--dtype")
		}
		return engine.Know(string(f.ModelSpec.NativeDType), engine.FromCatalog, "(est)")
	}
	return engine.Know(string(catalog.BF16), engine.FromDefault, "assumed: bf16, the model's own type is not known")
}

func unquantized(d catalog.DType) bool {
	return d == catalog.BF16 || d == catalog.FP16 || d == catalog.FP32
}

// classicBytes resolves the bytes per parameter in the documented order of the PROFILE formulas: DTYPE
// or VLLM_DTYPE in rooftop's environment, kv_cache_dtype, the catalog, bf16.
func (r *resolver) classicBytes(kv string) {
	f, w := &r.f, r.f.WeightDType
	set := func(d catalog.DType, from string) { f.ClassicBytes, f.ClassicBytesFrom = d.Bytes(), from }
	env, fromEnv := catalog.ParseDType(r.in.Env.DType)
	stored, known := catalog.ParseDType(kv)
	switch {
	case fromEnv:
		set(env, "env")
	case known:
		set(stored, "kv_cache_dtype")
	case w.Known && (w.Source == engine.FromCmdline || w.Source == engine.FromConfig):
		set(catalog.DType(w.Value), string(w.Source))
	case f.ModelKnown && f.ModelSpec.NativeDType != "":
		set(f.ModelSpec.NativeDType, "catalog")
	default:
		set(catalog.BF16, "bf16 fallback")
	}
}
