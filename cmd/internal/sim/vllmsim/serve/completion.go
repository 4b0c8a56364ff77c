package serve

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// maxPrompts is the maximum number of prompts of one request (VLLM_MAX_COMPLETION_PROMPTS).
const maxPrompts = 1024

// completions answers POST /v1/completions.
func (f *incarnation) completions(w http.ResponseWriter, r *http.Request) *refusal {
	const defaultMaxTokens = 16
	body, refused := readFields(w, r)
	if refused != nil {
		return refused
	}
	p, refused := readParams(body, f.settings.StreamInterval, defaultMaxTokens, "max_tokens")
	if refused != nil {
		return refused
	}
	calls, refused := readPrompts(body)
	if refused != nil {
		return refused
	}
	return f.generate(w, r, &p, false, calls)
}

// readPrompts reads a prompt in one of its four forms: a text, several texts, token IDs, several lists of token
// IDs.
func readPrompts(f fields) ([]vllmsim.Call, *refusal) {
	none := invalid("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
	if f.absent("prompt") {
		return nil, none
	}
	var text string
	if json.Unmarshal(f["prompt"], &text) == nil {
		if text == "" {
			return nil, none
		}
		return []vllmsim.Call{{Prompt: text}}, nil
	}
	var ids []core.Token
	if json.Unmarshal(f["prompt"], &ids) == nil {
		if refused := checkIDs(ids); refused != nil {
			return nil, refused
		}
		return []vllmsim.Call{{Tokens: ids}}, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(f["prompt"], &list) != nil {
		return nil, invalid("body.prompt", "prompt: Input should be a string, a list of token ids, or a list of either")
	}
	if len(list) > maxPrompts {
		return nil, invalid("prompt", fmt.Sprintf("prompt list length %d exceeds the maximum allowed count of %d. To increase this limit, set the VLLM_MAX_COMPLETION_PROMPTS environment variable.", len(list), maxPrompts))
	}
	var calls []vllmsim.Call
	for i, one := range list {
		// Forms cannot be mixed, and lists cannot be nested further.
		calls = append(calls, vllmsim.Call{})
		c := &calls[i]
		if json.Unmarshal(one, &c.Prompt) == nil && calls[0].Tokens == nil {
			continue
		}
		if c.Prompt != "" || json.Unmarshal(one, &c.Tokens) != nil || i > 0 && calls[0].Tokens == nil {
			return nil, invalid("body.prompt", "prompt: Input should be a string, a list of token ids, or a list of either")
		}
		if refused := checkIDs(c.Tokens); refused != nil {
			return nil, refused
		}
	}
	return calls, nil
}

func checkIDs(ids []core.Token) *refusal {
	if len(ids) == 0 {
		return badRequest("prompt", "The decoder prompt cannot be empty")
	}
	for _, id := range ids {
		if id < 0 {
			return invalid("body.prompt", "prompt: Input should be greater than or equal to 0")
		}
	}
	return nil
}
