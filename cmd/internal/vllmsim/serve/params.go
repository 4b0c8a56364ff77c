package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
)

// params are what completions and chat have in common of a request.
type params struct {
	model      string // "" is the first served one
	maxTokens  int    // 0: the model's rest
	minTokens  int
	ignoreEOS  bool
	priority   int
	salt       string
	id         string // "" for one of the server's own
	stream     bool
	usage      bool // a last chunk with the usage
	continuous bool // and the usage so far in each
}

// refusedFeatures are members that ask for something that is not simulated. Those
// that only choose among tokens (temperature, penalties, seed) are taken and
// have no effect: no token here depends on a model.
var refusedFeatures = []struct{ name, why string }{
	{"logprobs", "there are no probabilities"},
	{"top_logprobs", "there are no probabilities"},
	{"prompt_logprobs", "there are no probabilities"},
	{"logprob_token_ids", "there are no probabilities"},
	{"tools", "no model calls tools here"},
	{"functions", "no model calls functions here"},
	{"structured_outputs", "output is not constrained"},
	{"guided_json", "output is not constrained"},
	{"guided_regex", "output is not constrained"},
	{"guided_choice", "output is not constrained"},
	{"guided_grammar", "output is not constrained"},
	{"logit_bias", "there are no logits"},
	{"allowed_token_ids", "there are no logits"},
	{"bad_words", "there are no logits"},
	{"repetition_detection", "there are no logits"},
	{"thinking_token_budget", "no model thinks here"},
	{"use_beam_search", "one sequence is generated for a prompt"},
	{"prompt_embeds", "prompts are text or token ids"},
	{"truncate_prompt_tokens", "prompts are taken whole"},
	{"mm_processor_kwargs", "text is the only input"},
	{"kv_transfer_params", "there is no KV connector"},
	{"ec_transfer_params", "there is no encoder cache"},
	{"return_token_ids", "the answer holds text alone"},
	{"echo", "the answer holds what was generated alone"},
	{"suffix", "no model fills in the middle here"},
	{"documents", "chats are rendered by one fixed template"},
	{"chat_template", "chats are rendered by one fixed template"},
	{"continue_final_message", "chats are rendered by one fixed template"},
}

// ranges are vLLM's bounds of the members that have no effect here
// (sampling_params.py, _verify_args).
var ranges = []struct {
	name   string
	within func(float64) bool
	words  string
}{
	{"presence_penalty", between(-2, 2), "presence_penalty must be in [-2, 2], got %v."},
	{"frequency_penalty", between(-2, 2), "frequency_penalty must be in [-2, 2], got %v."},
	{"repetition_penalty", func(v float64) bool { return v > 0 }, "repetition_penalty must be greater than zero, got %v."},
	{"temperature", between(0, 2), "temperature must be in [0, 2], got %v."},
	{"top_p", func(v float64) bool { return v > 0 && v <= 1 }, "top_p must be in (0, 1], got %v."},
	{"top_k", func(v float64) bool { return v >= -1 }, "top_k must be 0 (disable), or at least 1, got %v."},
	{"min_p", between(0, 1), "min_p must be in [0, 1], got %v."},
}

func between(low, high float64) func(float64) bool {
	return func(v float64) bool { return v >= low && v <= high }
}

// readParams reads what both endpoints know, and refuses what is not simulated.
// limits names the members that bound the output, the first one given wins;
// fallback is the bound where none is.
func readParams(f fields, interval int, fallback int, limits ...string) (p params, refused *refusal) {
	keep := func(r *refusal) {
		if refused == nil {
			refused = r
		}
	}
	var r *refusal
	p.model, r = f.text("model")
	keep(r)
	p.maxTokens = fallback
	for _, name := range slices.Backward(limits) {
		if !f.absent(name) {
			p.maxTokens, r = f.integer(name, 0)
			keep(r)
			if r == nil && p.maxTokens < 1 {
				keep(badRequest("max_tokens", fmt.Sprintf("max_tokens must be at least 1, got %d.", p.maxTokens)))
			}
		}
	}
	p.minTokens, r = f.integer("min_tokens", 0)
	keep(r)
	p.ignoreEOS, r = f.boolean("ignore_eos")
	keep(r)
	p.priority, r = f.integer("priority", 0)
	keep(r)
	p.salt, r = f.text("cache_salt")
	keep(r)
	p.id, r = f.text("request_id")
	keep(r)
	p.stream, r = f.boolean("stream")
	keep(r)
	keep(p.readStreamOptions(f))
	switch {
	case p.minTokens < 0:
		keep(badRequest("", fmt.Sprintf("min_tokens must be greater than or equal to 0, got %d.", p.minTokens)))
	case p.maxTokens > 0 && p.minTokens > p.maxTokens:
		keep(badRequest("", fmt.Sprintf("min_tokens must be less than or equal to max_tokens=%d, got %d.", p.maxTokens, p.minTokens)))
	}
	keep(checkRanges(f))
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
		Usage      bool `json:"include_usage"`
		Continuous bool `json:"continuous_usage_stats"`
	}
	if json.Unmarshal(f["stream_options"], &o) != nil {
		return invalid("body.stream_options", "stream_options: Input should be a valid dictionary")
	}
	p.usage, p.continuous = o.Usage, o.Usage && o.Continuous
	return nil
}

func checkRanges(f fields) *refusal {
	for _, bound := range ranges {
		v, refused := f.number(bound.name, 0)
		switch {
		case f.absent(bound.name):
		case refused != nil:
			return refused
		case !bound.within(v):
			return badRequest(bound.name, fmt.Sprintf(bound.words, v))
		}
	}
	return nil
}

func checkFeatures(f fields, interval int) *refusal {
	for _, feature := range refusedFeatures {
		// Of log probabilities, 0 asks for those of the tokens themselves.
		asked := !f.empty(feature.name) || strings.HasSuffix(feature.name, "logprobs") && feature.name != "top_logprobs" && string(bytes.TrimSpace(f[feature.name])) == "0"
		if asked {
			return unsupported(feature.name, feature.why)
		}
	}
	for _, name := range []string{"n", "best_of"} {
		if n, refused := f.integer(name, 1); refused != nil || n > 1 {
			return unsupported(name, "one sequence is generated for a prompt")
		} else if n < 1 {
			return badRequest(name, fmt.Sprintf("%s must be at least 1, got %d.", name, n))
		}
	}
	if n, refused := f.integer("stream_interval", 1); refused != nil || n > interval {
		return unsupported("stream_interval", "it is the server's --stream-interval for every request")
	}
	if choice, _ := f.text("tool_choice"); !f.empty("tool_choice") && choice != "none" && choice != "auto" {
		return unsupported("tool_choice", "no model calls tools here")
	}
	var format struct{ Type string }
	if !f.empty("response_format") && (json.Unmarshal(f["response_format"], &format) != nil || format.Type != "text") {
		return unsupported("response_format", "output is not constrained")
	}
	return checkStops(f)
}

// checkStops lets pass what cannot occur in generated text, which is words of
// letters behind blanks: such a stop changes nothing.
func checkStops(f fields) *refusal {
	var list []string
	if one, refused := f.text("stop"); refused == nil {
		list = []string{one}
	} else if json.Unmarshal(f["stop"], &list) != nil {
		return invalid("body.stop", "stop: Input should be a valid string or list of strings")
	}
	for _, s := range list {
		if s != "" && strings.IndexFunc(s, neverGenerated) < 0 {
			return unsupported("stop", fmt.Sprintf("%q could occur in the words that are made up here", s))
		}
	}
	var ids []int
	if !f.absent("stop_token_ids") && json.Unmarshal(f["stop_token_ids"], &ids) != nil {
		return invalid("body.stop_token_ids", "stop_token_ids: Input should be a valid list of integers")
	}
	for _, id := range ids {
		if id < core.VocabWords {
			return unsupported("stop_token_ids", fmt.Sprintf("token %d could occur among the words that are made up here", id))
		}
	}
	return nil
}

func neverGenerated(r rune) bool {
	return r != ' ' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
