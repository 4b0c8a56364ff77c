package enginepage

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/collect/promtext"
)

// others are pages that users give by mistake, identified by the prefix of their families.
// next is the step to take, "" for the usual one.
var others = []struct{ prefix, name, next string }{
	{"sglang:", "an SGLang server", ""},
	{"sglang_", "an SGLang server", ""},
	{"aphrodite:", "an Aphrodite server", ""},
	{"tgi_", "a Text Generation Inference server", ""},
	{"trtllm_", "a TensorRT-LLM server", ""},
	{"lmdeploy:", "an LMDeploy server", ""},
	{"nv_inference_", "a Triton server", ""},
	{"DCGM_", "a DCGM exporter", "give it as --dcgm-url, and a vLLM server as --url"},
	{"node_", "a node exporter", ""},
	{"prometheus_", "a Prometheus server", ""},
}

// recognise returns the dialect of the engine that wrote a page, else an error that says what the page is.
// The error wraps ErrNotEngine or ErrStatsOff.
func recognise(body []byte, dialects []*Dialect) (*Dialect, error) {
	names := promtext.Names(body, 10_000)
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: the answer holds no metrics; check --url", ErrNotEngine)
	}
	hasAny := func(name string, prefixes []string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	for _, d := range dialects {
		if slices.ContainsFunc(names, func(name string) bool { return hasAny(name, d.Engine.Families) }) {
			return d, nil
		}
	}
	for _, other := range others {
		for _, name := range names {
			if strings.HasPrefix(name, other.prefix) {
				return nil, fmt.Errorf("%w: it is the page of %s (%s); %s", ErrNotEngine, other.name, name, cmp.Or(other.next, "give the address of a vLLM server with --url"))
			}
		}
	}
	first := strings.Join(names[:min(len(names), 3)], ", ")
	for _, d := range dialects {
		if d.StatsOff != "" && !slices.ContainsFunc(names, func(name string) bool { return !hasAny(name, d.Bare) }) {
			return nil, fmt.Errorf("%w: only %s and the like; %s", ErrStatsOff, first, d.StatsOff)
		}
	}
	return nil, fmt.Errorf("%w: its families begin with %s; check --url", ErrNotEngine, first)
}

// Simulated reports whether a page comes from one of rooftop's simulated servers, which
// mark it with the family sim_info.
func Simulated(body []byte) bool {
	const mark = "sim_info{"
	return bytes.HasPrefix(body, []byte(mark)) || bytes.Contains(body, []byte("\n"+mark))
}
