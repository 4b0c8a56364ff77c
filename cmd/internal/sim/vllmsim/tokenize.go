package vllmsim

import (
	"net/http"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// tokenize answers POST /tokenize for a prompt or a chat.
func (f *incarnation) tokenize(w http.ResponseWriter, r *http.Request) *refusal {
	body, refused := readFields(w, r)
	if refused != nil {
		return refused
	}
	var name, text string
	if refused := body.read("model", &name); refused != nil {
		return refused
	}
	if refused := f.lookup(name); refused != nil {
		return refused
	}
	switch {
	case !body.absent("messages"):
		text, refused = readChat(body)
	case body.absent("prompt"):
		refused = invalid("body.prompt", "prompt: Field required")
	default:
		refused = body.read("prompt", &text)
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
