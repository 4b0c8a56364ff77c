package vllm

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/collect/promtext"
)

// others are pages that people point a vLLM tool at, by the prefix of their
// families, each with what to do where it is not the usual.
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

// own are families that any page of vLLM's HTTP server has, statistics or not.
// A simulated server's says so in sim_info.
var own = []string{"http_", "process_", "python_", "sim_"}

// identify returns nil for a vLLM page, and otherwise an error that says what
// the page is.
func identify(body []byte) error {
	names := promtext.Names(body, 10_000)
	if len(names) == 0 {
		return fmt.Errorf("%w: the answer holds no metrics; check --url", ErrNotVLLM)
	}
	hasAny := func(name string, prefixes []string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
		return false
	}
	onlyOwn := true
	for _, name := range names {
		if hasAny(name, spellings) {
			return nil
		}
		onlyOwn = onlyOwn && hasAny(name, own)
	}
	for _, other := range others {
		for _, name := range names {
			if strings.HasPrefix(name, other.prefix) {
				return fmt.Errorf("%w: it is the page of %s (%s); %s", ErrNotVLLM, other.name, name, cmp.Or(other.next, "give the address of a vLLM server with --url"))
			}
		}
	}
	first := strings.Join(names[:min(len(names), 3)], ", ")
	if onlyOwn {
		return fmt.Errorf("%w: only %s and the like; if this is vLLM, it runs with --disable-log-stats: restart it without", ErrStatsOff, first)
	}
	return fmt.Errorf("%w: its families begin with %s; check --url", ErrNotVLLM, first)
}

// Simulated says whether a page is that of one of rooftop's own simulated
// servers, which mark theirs with the family sim_info.
func Simulated(body []byte) bool {
	const mark = "sim_info{"
	return bytes.HasPrefix(body, []byte(mark)) || bytes.Contains(body, []byte("\n"+mark))
}
