package vllmsim

import (
	"encoding/json"
	"net/http"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// tokenize answers POST /tokenize for a prompt or a chat.
func (f *incarnation) tokenize(w http.ResponseWriter, r *http.Request) *refusal {
	body, refused := readBody(w, r)
	if refused != nil {
		return refused
	}
	if refused := f.lookup(body.Model); refused != nil {
		return refused
	}
	var text string
	switch {
	case body.Messages != nil:
		text, refused = body.chat()
	case body.Prompt == nil:
		refused = invalid("body.prompt", "prompt: Field required")
	case json.Unmarshal(body.Prompt, &text) != nil:
		refused = invalid("body.prompt", "prompt: Input should be a valid string")
	}
	if refused != nil {
		return refused
	}
	ids := AppendTokens([]core.Token{}, text)
	return writeJSON(w, struct {
		Count       int          `json:"count"`
		MaxModelLen int          `json:"max_model_len"`
		Tokens      []core.Token `json:"tokens"`
		Strings     []string     `json:"token_strs"` // null: not asked for
	}{len(ids), f.settings.MaxModelLen, ids, nil})
}
