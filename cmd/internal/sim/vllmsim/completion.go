package vllmsim

import (
	"encoding/json"
	"net/http"
	"slices"
)

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
	call, refused := readPrompt(body)
	if refused != nil {
		return refused
	}
	return f.generate(w, r, &p, false, call)
}

// readPrompt reads a prompt: a text or token IDs. Lists of either are not simulated.
func readPrompt(f fields) (c Call, refused *refusal) {
	if f.absent("prompt") || string(f["prompt"]) == `""` {
		return c, invalid("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
	}
	if json.Unmarshal(f["prompt"], &c.Prompt) == nil {
		return c, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(f["prompt"], &list) != nil {
		return c, invalid("body.prompt", "prompt: Input should be a string, a list of token ids, or a list of either")
	}
	if len(list) == 0 {
		return c, badRequest("prompt", "The decoder prompt cannot be empty")
	}
	if json.Unmarshal(f["prompt"], &c.Tokens) != nil {
		return c, unsupported("prompt", "a request has one prompt, a text or a list of token ids")
	}
	if slices.Min(c.Tokens) < 0 {
		return c, invalid("body.prompt", "prompt: Input should be greater than or equal to 0")
	}
	return c, nil
}
