package engine

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/catalog"
)

func (r *resolver) model() {
	f := &r.f
	served := r.in.Server.Model
	from := FromServer
	if served == "" && r.in.Page != nil {
		served, from = r.in.Page.Model, FromMetrics
	}
	if served != "" {
		f.Model = Know(served, from, "")
	}
	switch {
	case r.in.LaunchModel != "":
		f.ModelPath = Know(r.in.LaunchModel, FromCmdline, "")
	case r.in.Server.Root != "":
		f.ModelPath = Know(r.in.Server.Root, FromServer, "")
	case served != "":
		f.ModelPath = Know(served, from, "the served name; the path behind it is not known")
	}
	said := r.in.Flags.Model
	saidFrom := FromFlag
	if said == "" {
		said, saidFrom = r.in.Env.Model, FromEnv
	}
	if said != "" {
		f.ModelPath = Know(said, saidFrom, "")
		if !f.Model.Known {
			f.Model = f.ModelPath
		}
	}
	r.modelSpec(said)
	if f.ModelKnown {
		source, note := f.ModelFrom, ""
		if source == FromCatalog {
			note = "(est) " + f.ModelSpec.ID
		}
		f.ParamsTotal = Know(f.ModelSpec.TotalParams, source, note)
		f.ParamsActive = Know(f.ModelSpec.ActiveParams, source, note)
	}
	f.MaxModelLen = r.maxModelLen()
}

// modelSpec finds the shape of the model: config.json beats the catalog, the
// path behind the served name beats the name.
func (r *resolver) modelSpec(said string) {
	f := &r.f
	if r.in.ModelConfig != nil && (said == "" || r.in.ModelConfigFrom == FromFlag) {
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
			f.ModelSpec, f.ModelKnown, f.ModelFrom = spec, true, FromCatalog
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

// sameModel is how far two counts of one model's parameters may lie apart.
const sameModel = 0.10

// compareModels reports a model that was named and is not the one served.
func (r *resolver) compareModels(named catalog.Model) {
	own := r.in.ModelConfig
	if own == nil || own.TotalParams <= 0 || named.TotalParams <= 0 {
		return
	}
	if ratio := named.TotalParams / own.TotalParams; ratio > 1+sameModel || ratio < 1/(1+sameModel) {
		r.conflict("model: %s has %.3g B parameters, the served model's config.json %.3g B; %s is used", named.ID, named.TotalParams/1e9, own.TotalParams/1e9, named.ID)
	}
}

func (r *resolver) maxModelLen() Fact[int] {
	if n := r.in.Server.MaxModelLen; n > 0 {
		return Know(n, FromServer, "")
	}
	if text, from, ok := r.discovered("max_model_len"); ok {
		if n, good := asInt(text); good && n > 0 {
			return Know(n, from, "")
		}
	}
	tokens, okT := asFloat(r.cache.KVCacheSizeTokens)
	times, okC := asFloat(r.cache.KVCacheMaxConcurrency)
	if okT && okC && times > 0 {
		return Know(int(tokens/times+0.5), FromMetrics, "kv_cache_size_tokens / kv_cache_max_concurrency")
	}
	if r.f.ModelKnown && r.f.ModelSpec.MaxPositions > 0 {
		return Know(r.f.ModelSpec.MaxPositions, r.f.ModelFrom, "the model's own limit; the launch may have set less")
	}
	return Fact[int]{Note: "neither /v1/models nor the launch command is readable"}
}

// dtypes settles three different things: how weights are stored, how the cache
// is stored, and what the arithmetic runs in. The weights' type is never taken
// from the cache's.
func (r *resolver) dtypes() {
	f := &r.f
	quant, quantFrom, quantized := r.discovered("quantization")
	if quantized {
		f.Quantization = Know(quant, quantFrom, "")
	}
	dtype, dtypeFrom, dtypeSet := r.discovered("dtype")
	compute, computeOK := catalog.ParseDType(dtype)
	if dtypeSet && computeOK {
		f.ComputeDType = Know(string(compute), dtypeFrom, "")
	} else {
		f.ComputeDType = Know(string(catalog.BF16), FromDefault, "")
		if f.ModelKnown && (f.ModelSpec.NativeDType == catalog.FP16 || f.ModelSpec.NativeDType == catalog.FP32) {
			f.ComputeDType = Know(string(f.ModelSpec.NativeDType), f.ModelFrom, "")
		}
	}
	f.WeightDType = r.weightDType(quant, quantFrom, quantized)
	if !f.Quantization.Known {
		if _, method, ok := catalog.DTypeOfName(f.ModelPath.Value); ok && method != "" {
			f.Quantization = Know(method, FromDerived, "from the model's name")
		}
	}

	kv, kvFrom, ok := r.discovered("kv_cache_dtype")
	if !ok && r.cache.CacheDType != "" {
		kv, kvFrom, ok = r.cache.CacheDType, FromMetrics, true
	}
	if text, made := r.made("kv_cache_dtype"); !ok && made && text != "" {
		kv, kvFrom, ok = text, FromDerived, true
	}
	stored, known := catalog.ParseDType(kv)
	switch {
	case ok && known:
		f.KVCacheDType = Know(string(stored), kvFrom, "")
	case ok && kv != "auto":
		f.KVCacheDType = Fact[string]{Note: fmt.Sprintf("%q is not a cache type rooftop knows", kv)}
	case ok:
		f.KVCacheDType = Know(f.ComputeDType.Value, kvFrom, "auto: the model's own type")
	default:
		f.KVCacheDType = Know(f.ComputeDType.Value, FromDefault, "auto: the model's own type")
	}
	r.classicBytes(kv)
}

func (r *resolver) weightDType(quant string, quantFrom Source, quantized bool) Fact[string] {
	f := &r.f
	if r.in.ModelConfig != nil && f.ModelSpec.NativeDType != "" && !quantized {
		if f.ComputeDType.Source != FromDefault && unquantized(f.ModelSpec.NativeDType) {
			return Know(f.ComputeDType.Value, f.ComputeDType.Source, "--dtype")
		}
		return Know(string(f.ModelSpec.NativeDType), r.in.ModelConfigFrom, "config.json")
	}
	for _, name := range []string{f.ModelPath.Value, f.Model.Value} {
		if d, _, ok := catalog.DTypeOfName(name); ok {
			return Know(string(d), FromDerived, "from the model's name")
		}
	}
	if quantized {
		if d, ok := catalog.ParseDType(quant); ok {
			return Know(string(d), quantFrom, "--quantization")
		}
		if d, _, ok := catalog.DTypeOfName("x-" + quant); ok {
			return Know(string(d), quantFrom, "--quantization")
		}
	}
	if f.ModelKnown && f.ModelSpec.NativeDType != "" {
		if f.ComputeDType.Source != FromDefault && unquantized(f.ModelSpec.NativeDType) && f.ComputeDType.Source != f.ModelFrom {
			return Know(f.ComputeDType.Value, f.ComputeDType.Source, "--dtype")
		}
		return Know(string(f.ModelSpec.NativeDType), FromCatalog, "(est)")
	}
	return Know(string(catalog.BF16), FromDefault, "assumed: bf16, the model's own type is not known")
}

func unquantized(d catalog.DType) bool {
	return d == catalog.BF16 || d == catalog.FP16 || d == catalog.FP32
}

// classicBytes follows the documented order of the classic formulas: DTYPE or
// VLLM_DTYPE of rooftop's environment, then kv_cache_dtype, then the catalog,
// then bf16.
func (r *resolver) classicBytes(kv string) {
	f := &r.f
	if d, ok := catalog.ParseDType(r.in.Env.DType); ok {
		f.ClassicBytes, f.ClassicBytesFrom = d.Bytes(), "env"
		return
	}
	if d, ok := catalog.ParseDType(kv); ok {
		f.ClassicBytes, f.ClassicBytesFrom = d.Bytes(), "kv_cache_dtype"
		return
	}
	if w := f.WeightDType; w.Known && (w.Source == FromCmdline || w.Source == FromConfig) {
		f.ClassicBytes, f.ClassicBytesFrom = catalog.DType(w.Value).Bytes(), string(w.Source)
		return
	}
	if f.ModelKnown && f.ModelSpec.NativeDType != "" {
		f.ClassicBytes, f.ClassicBytesFrom = f.ModelSpec.NativeDType.Bytes(), "catalog"
		return
	}
	f.ClassicBytes, f.ClassicBytesFrom = catalog.BF16.Bytes(), "bf16 fallback"
}
