package sglang

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

// infoPaths are the endpoints with every argument, in the order in which they are tried: releases before 0.5.6
// have only the second.
var infoPaths = []string{"/server_info", "/get_server_info"}

// Discover requests what a server reports about itself. It lists what the server does not report, with the
// reason and the effect. An error means that the context ended.
func Discover(ctx context.Context, client *collect.Client) (facts.ServerAnswers, []engine.Missing, error) {
	var answers facts.ServerAnswers
	var missing []engine.Missing
	body, err := client.Get(ctx, enginepage.PathModels, "application/json", nil)
	if err == nil {
		err = enginepage.ParseModels(body, &answers)
	}
	if err != nil {
		missing = append(missing, engine.Missing{What: "/v1/models", Reason: err.Error(), Effect: "the model's path and context length are not known from the server"})
	}
	for _, path := range infoPaths {
		if body, err = client.Get(ctx, path, "application/json", nil); err == nil {
			err = info(body, &answers)
			break
		}
	}
	if err != nil {
		missing = append(missing, engine.Missing{What: "/server_info", Reason: err.Error(), Effect: "launch flags come from the process, from rooftop's flags or from defaults"})
	}
	return answers, missing, ctx.Err()
}

// destinations are the names of arguments in /server_info that differ from those on the command line.
var destinations = map[string]string{
	"tensor_parallel_size": "tp_size", "pipeline_parallel_size": "pp_size", "data_parallel_size": "dp_size",
}

// attentionRanks returns the ranks of attention data parallelism, among which SGLang divides the slots and the tokens
// of a prefill, 1 without it. Before --attn-dp-size they were those of --dp-size.
func attentionRanks(args map[string]string) int {
	ranks, _ := strconv.Atoi(args["attn_dp_size"])
	if ranks < 2 && args["enable_dp_attention"] == "true" {
		ranks, _ = strconv.Atoi(args["data_parallel_size"])
	}
	return max(1, ranks)
}

// info reads the arguments behind facts from an answer of /server_info, as SGLang resolved them.
func info(body []byte, to *facts.ServerAnswers) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return errors.New("/server_info answered with something other than an object")
	}
	to.Version = enginepage.Setting(all["version"])
	g := catalog.EngineOf("sglang")
	args := map[string]string{}
	for _, setting := range facts.LaunchNames {
		name, _, ok := g.Argument(setting)
		if !ok {
			continue
		}
		key := name
		if other, renamed := destinations[name]; renamed {
			key = other
		}
		if value := enginepage.Setting(all[key]); value != "" {
			_, args[setting] = g.Canonical(name, value)
		}
	}
	var states struct {
		States []struct {
			Slots int `json:"effective_max_running_requests_per_dp"`
		} `json:"internal_states"`
	}
	ranks := attentionRanks(args)
	if json.Unmarshal(body, &states) == nil && len(states.States) > 0 && states.States[0].Slots > 0 {
		slots := states.States[0].Slots
		if given, err := strconv.Atoi(args["max_num_seqs"]); err != nil || max(1, given/ranks) != slots {
			args["max_num_seqs"] = strconv.Itoa(slots * ranks)
		}
	}
	if budget, err := strconv.Atoi(args["max_num_batched_tokens"]); err == nil && budget > 0 {
		args["max_num_batched_tokens"] = strconv.Itoa(budget * ranks) // resolved to one rank's
	}
	if to.Version == "" && len(args) == 0 {
		return errors.New("/server_info names none of the settings that rooftop looks for")
	}
	to.Args = args
	return nil
}
