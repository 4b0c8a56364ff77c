package enginepage

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
)

// Next steps for a page of none of the engines that rooftop reads.
const (
	nextServer  = "give the address of an inference server with --url"
	nextOutside = "rooftop probe and load measure it from outside, diagnose and tune do not read it yet"
	nextBehind  = "it is a proxy in front of servers: give the address of one of them with --url; rooftop probe and load measure through it"
)

// others are pages that users give by mistake, identified by the prefix of their families, and the step to take.
var others = []struct{ prefix, name, next string }{
	{"tgi_", "a Text Generation Inference server", nextOutside},
	{"nv_trt_llm_", "a TensorRT-LLM model of a Triton server", nextOutside},
	{"nv_inference_", "a Triton server", nextOutside},
	{"trtllm_", "a TensorRT-LLM server", nextOutside},
	{"ollama_", "an Ollama server", nextOutside},
	{"lmdeploy:", "an LMDeploy server", nextOutside},
	{"aphrodite:", "an Aphrodite server", nextOutside},
	{"dynamo_", "a Dynamo front end", nextBehind},
	{"nv_llm_http_service_", "a Dynamo front end", nextBehind},
	{"litellm_", "a LiteLLM gateway", nextBehind},
	{"envoy_", "an Envoy proxy", nextBehind},
	{"inference_pool_", "the endpoint picker of a gateway (llm-d, Gateway API Inference Extension)", nextBehind},
	{"inference_objective_", "the endpoint picker of a gateway (llm-d, Gateway API Inference Extension)", nextBehind},
	{"nginx_", "an nginx proxy", nextBehind},
	{"DCGM_", "a DCGM exporter", "give it as --dcgm-url, and an inference server as --url"},
	{"node_", "a node exporter", nextServer},
	{"prometheus_", "a Prometheus server", nextServer},
}

// Recognise returns the dialect of the engine that wrote a page, else an error that says what the page is.
// The error wraps ErrNotEngine or ErrStatsOff.
func Recognise(body []byte, dialects []*Dialect) (*Dialect, error) {
	names := collect.Names(body, 10_000)
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
				return nil, fmt.Errorf("%w: it is the page of %s (%s); %s", ErrNotEngine, other.name, name, other.next)
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
