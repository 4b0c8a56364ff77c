package vllmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// params holds the parameters that completions and chats have in common.
type params struct {
	model     string // "" means the first served name
	maxTokens int    // 0 means up to the model's length
	minTokens int
	ignoreEOS bool
	priority  int
	salt      string
	stream    bool
	usage     bool // a last chunk with the usage
}

// refusedFeatures lists members for features that are not simulated. Members that only affect the choice of
// tokens (temperature, penalties, seed) are accepted without effect: no token depends on a model here.
var refusedFeatures = []struct{ why, names string }{
	{"there are no probabilities", "logprobs top_logprobs prompt_logprobs logprob_token_ids"},
	{"no model calls tools here", "tools functions"},
	{"output is not constrained", "structured_outputs guided_json guided_regex guided_choice guided_grammar"},
	{"there are no logits", "logit_bias allowed_token_ids bad_words repetition_detection"},
	{"no model thinks here", "thinking_token_budget"},
	{"one sequence is generated for a prompt", "use_beam_search"},
	{"prompts are text or token ids, taken whole", "prompt_embeds truncate_prompt_tokens mm_processor_kwargs"},
	{"there is no connector and no encoder cache", "kv_transfer_params ec_transfer_params"},
	{"the answer holds what was generated alone, as text", "return_token_ids echo suffix"},
	{"chats are rendered by one fixed template", "documents chat_template continue_final_message"},
}

// readParams reads the common parameters and refuses features that are not simulated. limits lists the members
// that bound the output, of which the first present one applies; fallback is the bound if none is present.
func readParams(f fields, interval int, fallback int, limits ...string) (p params, refused *refusal) {
	keep := func(r *refusal) {
		if refused == nil {
			refused = r
		}
	}
	keep(f.read("model", &p.model))
	p.maxTokens = fallback
	for _, name := range slices.Backward(limits) {
		if !f.absent(name) {
			r := f.read(name, &p.maxTokens)
			keep(r)
			if r == nil && p.maxTokens < 1 {
				keep(badRequest("max_tokens", fmt.Sprintf("max_tokens must be at least 1, got %d.", p.maxTokens)))
			}
		}
	}
	keep(f.read("min_tokens", &p.minTokens))
	keep(f.read("ignore_eos", &p.ignoreEOS))
	keep(f.read("priority", &p.priority))
	keep(f.read("cache_salt", &p.salt))
	keep(f.read("stream", &p.stream))
	keep(p.readStreamOptions(f))
	keep(checkFeatures(f, interval))
	return p, refused
}

func (p *params) readStreamOptions(f fields) *refusal {
	if f.empty("stream_options") {
		return nil
	}
	if !p.stream {
		return invalid("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	var o struct {
		Usage bool `json:"include_usage"`
	}
	if json.Unmarshal(f["stream_options"], &o) != nil {
		return invalid("body.stream_options", "stream_options: Input should be a valid dictionary")
	}
	p.usage = o.Usage
	return nil
}

func checkFeatures(f fields, interval int) *refusal {
	for _, refused := range refusedFeatures {
		for name := range strings.FieldsSeq(refused.names) {
			// A number of log probabilities of 0 requests those of the tokens themselves.
			own := strings.HasSuffix(name, "logprobs") && name != "top_logprobs" && string(bytes.TrimSpace(f[name])) == "0"
			if own || !f.empty(name) {
				return unsupported(name, refused.why)
			}
		}
	}
	for _, name := range []string{"n", "best_of"} {
		n := 1
		if refused := f.read(name, &n); refused != nil || n > 1 {
			return unsupported(name, "one sequence is generated for a prompt")
		} else if n < 1 {
			return badRequest(name, fmt.Sprintf("%s must be at least 1, got %d.", name, n))
		}
	}
	every := 1
	if refused := f.read("stream_interval", &every); refused != nil || every > interval {
		return unsupported("stream_interval", "it is the server's --stream-interval for every request")
	}
	choice := ""
	if _ = f.read("tool_choice", &choice); !f.empty("tool_choice") && choice != "none" && choice != "auto" {
		return unsupported("tool_choice", "no model calls tools here")
	}
	var format struct{ Type string }
	if !f.empty("response_format") && (json.Unmarshal(f["response_format"], &format) != nil || format.Type != "text") {
		return unsupported("response_format", "output is not constrained")
	}
	return checkStops(f)
}

// checkStops refuses stops that could occur in generated text, which consists of words of letters with a leading
// blank. All other stops have no effect.
func checkStops(f fields) *refusal {
	var one string
	var list []string
	if f.read("stop", &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(f["stop"], &list) != nil {
		return invalid("body.stop", "stop: Input should be a valid string or list of strings")
	}
	for _, s := range list {
		if s != "" && strings.IndexFunc(s, neverGenerated) < 0 {
			return unsupported("stop", fmt.Sprintf("%q could occur in generated text", s))
		}
	}
	var ids []int
	if !f.absent("stop_token_ids") && json.Unmarshal(f["stop_token_ids"], &ids) != nil {
		return invalid("body.stop_token_ids", "stop_token_ids: Input should be a valid list of integers")
	}
	for _, id := range ids {
		if id < core.VocabWords {
			return unsupported("stop_token_ids", fmt.Sprintf("token %d could occur in generated text", id))
		}
	}
	return nil
}

func neverGenerated(r rune) bool {
	return r != ' ' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
