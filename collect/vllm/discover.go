package vllm

import (
	"context"
	"encoding/json"
	"errors"
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
		Config map[string]json.RawMessage `json:"vllm_config"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Config) == 0 {
		return errors.New("/server_info answered without vllm_config as an object")
	}
	if a.Args = argsOf(answer.Config); len(a.Args) == 0 {
		a.Args = nil
		return errors.New("/server_info names none of the settings that rooftop looks for")
	}
	return nil
}

// settings are the engine arguments that are read, with every place in which a release was seen to put them: the
// section and the key in it.
var settings = [...]struct{ name, section, key string }{
	{"model", "model_config", "model"},
	{"max_num_seqs", "scheduler_config", "max_num_seqs"},
	{"max_num_batched_tokens", "scheduler_config", "max_num_batched_tokens"},
	{"enable_chunked_prefill", "scheduler_config", "enable_chunked_prefill"},
	{"enable_chunked_prefill", "scheduler_config", "chunked_prefill_enabled"},
	{"async_scheduling", "scheduler_config", "async_scheduling"},
	{"max_model_len", "model_config", "max_model_len"},
	{"dtype", "model_config", "dtype"},
	{"quantization", "model_config", "quantization"},
	{"enforce_eager", "model_config", "enforce_eager"},
	{"tensor_parallel_size", "parallel_config", "tensor_parallel_size"},
	{"pipeline_parallel_size", "parallel_config", "pipeline_parallel_size"},
	{"data_parallel_size", "parallel_config", "data_parallel_size"},
	{"enable_expert_parallel", "parallel_config", "enable_expert_parallel"},
	{"api_server_count", "parallel_config", "_api_process_count"},
	{"gpu_memory_utilization", "cache_config", "gpu_memory_utilization"},
	{"block_size", "cache_config", "block_size"},
	{"num_gpu_blocks_override", "cache_config", "num_gpu_blocks_override"},
	{"kv_cache_dtype", "cache_config", "cache_dtype"},
	{"enable_prefix_caching", "cache_config", "enable_prefix_caching"},
	{"device", "device_config", "device"},
	{"device", "device_config", "device_type"},
	{"speculative_config", "speculative_config", "method"},
}

// argsOf reads the sections of a configuration. It formats numbers, strings and booleans as on the command line and
// skips null.
func argsOf(config map[string]json.RawMessage) map[string]string {
	args := map[string]string{}
	for _, s := range settings {
		var section map[string]json.RawMessage
		if json.Unmarshal(config[s.section], &section) != nil {
			continue
		}
		text := strings.TrimPrefix(enginepage.Setting(section[s.key]), "torch.")
		if _, found := args[s.name]; !found && text != "" && text != "None" {
			args[s.name] = text
		}
	}
	return args
}
