package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// target says what was measured, for how long, and with which settings.
func (r *plain) target() {
	t, f := r.d.Target, &r.d.Facts
	r.blank()
	head := []string{cmp.Or(t.Model, f.Model.Value, "model not known")}
	if gpu := hardware(f); gpu != "" {
		if t.Simulated {
			gpu += nbsp + "(simulated)"
		}
		head = append(head, gpu)
	}
	if e := strings.TrimSpace(engineName(t.Engine) + " " + t.EngineVersion); e != "" {
		head = append(head, e)
	}
	r.dotted(strong, head)
	w := r.d.Windows
	span := []string{}
	if t.URL != "" {
		span = append(span, t.URL)
	}
	figure, unit := figure.Seconds(r.d.Duration.Seconds())
	span = append(span, figure+nbsp+unit, windowCounts(w))
	r.dotted(muted, span)
	r.dotted(muted, settings(f))
	for _, c := range f.Conflicts {
		r.para(0, 2, text{r.mark(warn, "conflict:"), r.span(body, " "+c)})
	}
}

// windowCounts says how much of a run counts.
func windowCounts(w engine.WindowCounts) string {
	s := plural(w.Collected, "window")
	switch {
	case w.Collected == 0:
		return s
	case w.Collected == 1 && w.Active == 1:
		return s + " with load"
	case w.Active == w.Collected:
		return s + ", all with load"
	case w.Evaluable < w.Collected:
		s += fmt.Sprintf(", %d evaluable", w.Evaluable)
	}
	return s + fmt.Sprintf(", %d with load", w.Active)
}

// dotted writes parts in one paragraph, separated by a middle dot.
func (r *plain) dotted(t tone, parts []string) {
	if len(parts) > 0 {
		r.para(0, 2, r.text(t, strings.Join(parts, nbsp+"· ")))
	}
}

func engineName(s string) string {
	if s == "vllm" {
		return "vLLM"
	}
	return s
}

func hardware(f *engine.Facts) string {
	switch {
	case f.GPUName.Known && f.GPUCount.Known:
		return fmt.Sprintf("%d"+nbsp+"×"+nbsp+"%s", f.GPUCount.Value, f.GPUName.Value)
	case f.GPUName.Known:
		return f.GPUName.Value
	case f.Device.Known && f.Device.Value == "cpu":
		return "CPU"
	}
	return ""
}

// assumed says that a fact is a fallback, which nothing that was read supports;
// its note then begins so and names the remedy.
func assumed[T any](f engine.Fact[T]) bool {
	return f.Known && f.Source == engine.FromDefault && strings.HasPrefix(f.Note, "assumed")
}

// cacheAssumed says that the cache's type is a fallback: its own, or that of the
// arithmetic which an "auto" follows where neither launch nor model tells it.
func cacheAssumed(f *engine.Facts) bool {
	follows := f.KVCacheDType.Known && strings.HasPrefix(f.KVCacheDType.Note, "auto")
	return assumed(f.KVCacheDType) || follows && f.ComputeDType.Source == engine.FromDefault && !f.ModelKnown
}

// settings is the launch configuration in one line, fallbacks marked; -v has
// its sources.
func settings(f *engine.Facts) []string {
	var s []string
	put := func(text string, fallback bool) {
		if fallback {
			text += nbsp + "(assumed)"
		}
		s = append(s, text)
	}
	number := func(label string, v engine.Fact[int], worth int) {
		if v.Known && v.Value >= worth {
			put(label+nbsp+figure.Whole(float64(v.Value)), assumed(v))
		}
	}
	word := func(label string, v engine.Fact[string], fallback bool) {
		if v.Known && v.Value != "" {
			put(label+nbsp+v.Value, fallback)
		}
	}
	number("seats", f.MaxNumSeqs, 1)
	number("TP", f.TensorParallel, 1)
	number("PP", f.PipelineParallel, 2)
	number("DP", f.DataParallel, 2)
	word("weights", f.WeightDType, assumed(f.WeightDType))
	word("KV", f.KVCacheDType, cacheAssumed(f))
	number("max"+nbsp+"len", f.MaxModelLen, 1)
	if f.KVCapacityTokens.Known {
		pool := "KV" + nbsp + "pool" + nbsp + figure.Significant(f.KVCapacityTokens.Value) + nbsp + "tok"
		if strings.Contains(f.KVCapacityTokens.Note, "(est)") {
			pool += nbsp + "(est)"
		}
		put(pool, assumed(f.KVCapacityTokens))
	}
	if f.PrefixCaching.Known {
		put("prefix"+nbsp+"caching"+nbsp+map[bool]string{true: "on", false: "off"}[f.PrefixCaching.Value], assumed(f.PrefixCaching))
	}
	return s
}
