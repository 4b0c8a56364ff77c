package vllm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
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
	{"llamacpp:", "a llama.cpp server", ""},
	{"lmdeploy:", "an LMDeploy server", ""},
	{"nv_inference_", "a Triton server", ""},
	{"DCGM_", "a DCGM exporter", "give it as --dcgm-url, and a vLLM server as --url"},
	{"node_", "a node exporter", ""},
	{"prometheus_", "a Prometheus server", ""},
}

// httpPrefixes are prefixes of the families that the page of vLLM's HTTP server has even
// without statistics. The page of a simulated server has sim_info too.
var httpPrefixes = []string{"http_", "process_", "python_", "sim_"}

// identify returns nil for a vLLM page, else an error that says what the page is. The
// error wraps ErrNotVLLM or ErrStatsOff.
func identify(body []byte) error {
	names := promtext.Names(body, 10_000)
	if len(names) == 0 {
		return fmt.Errorf("%w: the answer holds no metrics; check --url", ErrNotVLLM)
	}
	hasAny := func(name string, prefixes []string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	onlyHTTP := true
	for _, name := range names {
		if hasAny(name, catalog.Spellings) {
			return nil
		}
		onlyHTTP = onlyHTTP && hasAny(name, httpPrefixes)
	}
	for _, other := range others {
		for _, name := range names {
			if strings.HasPrefix(name, other.prefix) {
				return fmt.Errorf("%w: it is the page of %s (%s); %s", ErrNotVLLM, other.name, name, cmp.Or(other.next, "give the address of a vLLM server with --url"))
			}
		}
	}
	first := strings.Join(names[:min(len(names), 3)], ", ")
	if onlyHTTP {
		return fmt.Errorf("%w: only %s and the like; if this is vLLM, it runs with --disable-log-stats: restart it without", ErrStatsOff, first)
	}
	return fmt.Errorf("%w: its families begin with %s; check --url", ErrNotVLLM, first)
}

// Simulated reports whether a page comes from one of rooftop's simulated servers, which
// mark it with the family sim_info.
func Simulated(body []byte) bool {
	const mark = "sim_info{"
	return bytes.HasPrefix(body, []byte(mark)) || bytes.Contains(body, []byte("\n"+mark))
}
