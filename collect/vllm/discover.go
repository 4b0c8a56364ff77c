package vllm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

// Endpoints that Discover requests, once each and only with GET. /server_info exists only
// in vLLM's development mode and has no side effects.
const (
	pathVersion    = "/version"
	pathServerInfo = "/server_info?config_format=json"
)

const acceptJSON = "application/json"

// Discover requests what a server reports about itself. It lists what the server does not
// report, with the reason and the effect; a server that reports nothing is not an error.
// An error means that the context ended.
func Discover(ctx context.Context, client *collect.Client) (facts.ServerAnswers, []engine.Missing, error) {
	var facts facts.ServerAnswers
	var missing []engine.Missing
	ask := func(path string, read func([]byte) error) error {
		body, err := client.Get(ctx, path, acceptJSON, nil)
		if err != nil {
			return err
		}
		return read(body)
	}
	gap := func(what string, err error, effect string) {
		missing = append(missing, engine.Missing{What: what, Reason: err.Error(), Effect: effect})
	}
	if err := ask(pathVersion, answers{&facts}.version); err != nil {
		gap("/version", err, "defaults of the launch flags are not known for this release")
	}
	if err := ask(enginepage.PathModels, func(body []byte) error { return enginepage.ParseModels(body, &facts) }); err != nil {
		gap("/v1/models", err, "the model's path and max_model_len are not known from the server")
	}
	// A server that is not in development mode does not have it, as it should be: no gap.
	var status *collect.StatusError
	if err := ask(pathServerInfo, answers{&facts}.serverInfo); err != nil && !(errors.As(err, &status) && status.Code == http.StatusNotFound) {
		gap("/server_info", err, "launch flags come from the process, from rooftop's flags or from defaults")
	}
	return facts, missing, ctx.Err()
}

// answers parses answers of the server into facts.
type answers struct{ *facts.ServerAnswers }

func (a answers) version(body []byte) error {
	var answer struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Version == "" {
		return errors.New("/version answered without a version")
	}
	a.Version = enginepage.Clip(answer.Version)
	return nil
}

// serverInfo reads the settings that rooftop uses. The document also has the server's
// environment, which is never read.
func (a answers) serverInfo(body []byte) error {
	var answer struct {
		Config json.RawMessage `json:"vllm_config"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Config) == 0 {
		return errors.New("/server_info answered without vllm_config")
	}
	var text string
	if err := json.Unmarshal(answer.Config, &text); err == nil {
		a.Args = argsOfText(text)
	} else {
		var config map[string]json.RawMessage
		if err := json.Unmarshal(answer.Config, &config); err != nil {
			return errors.New("/server_info answered with a vllm_config of unknown form")
		}
		a.Args = argsOfJSON(config)
	}
	if len(a.Args) == 0 {
		a.Args = nil
		return errors.New("/server_info names none of the settings that rooftop looks for")
	}
	return nil
}

// setting says where /server_info has an engine argument: the section and key of the JSON
// form, and the keys of the text form (older releases), nil if it is not there.
type setting struct {
	name, section, key string
	text               []string
}

// settings returns the engine arguments that are read, with every place in which a
// release was seen to put them.
func settings() []setting {
	return []setting{
		{"model", "model_config", "model", []string{"model"}},
		{"max_num_seqs", "scheduler_config", "max_num_seqs", []string{"max_num_seqs"}},
		{"max_num_batched_tokens", "scheduler_config", "max_num_batched_tokens", []string{"max_num_batched_tokens"}},
		{"enable_chunked_prefill", "scheduler_config", "enable_chunked_prefill", []string{"enable_chunked_prefill", "chunked_prefill_enabled"}},
		{"enable_chunked_prefill", "scheduler_config", "chunked_prefill_enabled", nil},
		{"async_scheduling", "scheduler_config", "async_scheduling", nil},
		{"max_model_len", "model_config", "max_model_len", []string{"max_seq_len"}},
		{"dtype", "model_config", "dtype", []string{"dtype"}},
		{"quantization", "model_config", "quantization", []string{"quantization"}},
		{"enforce_eager", "model_config", "enforce_eager", []string{"enforce_eager"}},
		{"tensor_parallel_size", "parallel_config", "tensor_parallel_size", []string{"tensor_parallel_size"}},
		{"pipeline_parallel_size", "parallel_config", "pipeline_parallel_size", []string{"pipeline_parallel_size"}},
		{"data_parallel_size", "parallel_config", "data_parallel_size", []string{"data_parallel_size"}},
		{"enable_expert_parallel", "parallel_config", "enable_expert_parallel", nil},
		{"api_server_count", "parallel_config", "_api_process_count", nil},
		{"gpu_memory_utilization", "cache_config", "gpu_memory_utilization", nil},
		{"block_size", "cache_config", "block_size", nil},
		{"num_gpu_blocks_override", "cache_config", "num_gpu_blocks_override", nil},
		{"kv_cache_dtype", "cache_config", "cache_dtype", []string{"kv_cache_dtype"}},
		{"enable_prefix_caching", "cache_config", "enable_prefix_caching", []string{"enable_prefix_caching"}},
		{"device", "device_config", "device", []string{"device_config"}},
		{"device", "device_config", "device_type", nil},
		{"speculative_config", "speculative_config", "method", []string{"speculative_config"}},
	}
}

// argsOfJSON reads the sections of the JSON form. It formats numbers, strings and booleans
// as on the command line and skips null.
func argsOfJSON(config map[string]json.RawMessage) map[string]string {
	args := map[string]string{}
	for _, s := range settings() {
		var section map[string]json.RawMessage
		if json.Unmarshal(config[s.section], &section) != nil {
			continue
		}
		var value any
		if json.Unmarshal(section[s.key], &value) != nil {
			continue
		}
		text := ""
		switch v := value.(type) {
		case string:
			text = v
		case bool:
			text = fmt.Sprint(v)
		case float64:
			text = strings.TrimSpace(string(section[s.key]))
		}
		setArg(args, s.name, text)
	}
	return args
}

// argsOfText reads key=value pairs of the text form, the Python repr of the configuration.
// It skips pairs within brackets, which belong to nested objects.
func argsOfText(text string) map[string]string {
	pairs := map[string]string{}
	for _, field := range topLevel(text) {
		if key, value, found := strings.Cut(field, "="); found {
			pairs[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	args := map[string]string{}
	for _, s := range settings() {
		for _, key := range s.text {
			value := pairs[key]
			if s.name == "speculative_config" && value != "" && value != "None" {
				value = "set" // its repr is long and may name paths
			}
			setArg(args, s.name, strings.Trim(value, `'"`))
		}
	}
	return args
}

// setArg sets an argument unless it is already set or the value is empty or None.
func setArg(args map[string]string, name, value string) {
	if _, found := args[name]; found || value == "" || value == "None" {
		return
	}
	if v := enginepage.Clip(strings.TrimPrefix(value, "torch.")); v != "" {
		args[name] = v
	}
}

// topLevel splits a text at commas outside brackets and quotes.
func topLevel(text string) []string {
	var fields []string
	depth, start, quote := 0, 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[' || c == '{' || c == '<':
			depth++
		case c == ')' || c == ']' || c == '}' || c == '>':
			depth--
		case c == ',' && depth <= 0:
			fields = append(fields, text[start:i])
			start = i + 1
		}
	}
	return append(fields, text[start:])
}
