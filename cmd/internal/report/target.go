package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
)

// target says what was measured, for how long, and with which settings.
func (r *plain) target() {
	t, f := r.d.Target, &r.d.Facts
	r.blank()
	head := []string{cmp.Or(t.Model, f.Model.Value, "model not known")}
	if gpu := hardware(f); gpu != "" {
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
	figure, unit := seconds(r.d.Duration.Seconds())
	span = append(span, figure+nbsp+unit, windowCounts(w))
	r.dotted(muted, span)
	r.dotted(muted, settings(f))
	if t.Simulated {
		r.para(0, 2, text{r.mark(warn, "simulated server:"), r.span(body, " it shows how rooftop works, not what hardware does")})
	}
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

// settings is the launch configuration in one line; -v has its sources.
func settings(f *engine.Facts) []string {
	var s []string
	number := func(label string, v engine.Fact[int], worth int) {
		if v.Known && v.Value >= worth {
			s = append(s, label+nbsp+whole(float64(v.Value)))
		}
	}
	word := func(label string, v engine.Fact[string]) {
		if v.Known && v.Value != "" {
			s = append(s, label+nbsp+v.Value)
		}
	}
	number("seats", f.MaxNumSeqs, 1)
	number("TP", f.TensorParallel, 1)
	number("PP", f.PipelineParallel, 2)
	number("DP", f.DataParallel, 2)
	word("weights", f.WeightDType)
	word("KV", f.KVCacheDType)
	number("max"+nbsp+"len", f.MaxModelLen, 1)
	if f.KVCapacityTokens.Known {
		pool := "KV" + nbsp + "pool" + nbsp + significant(f.KVCapacityTokens.Value) + nbsp + "tok"
		if strings.Contains(f.KVCapacityTokens.Note, "(est)") {
			pool += nbsp + "(est)"
		}
		s = append(s, pool)
	}
	if f.PrefixCaching.Known {
		s = append(s, "prefix"+nbsp+"caching"+nbsp+map[bool]string{true: "on", false: "off"}[f.PrefixCaching.Value])
	}
	return s
}
