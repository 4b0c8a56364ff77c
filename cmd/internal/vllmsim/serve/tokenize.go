package serve

import (
	"encoding/json"
	"net/http"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/token"
)

// length is the number of tokens of a call's prompt.
func length(c *vllmsim.Call) int {
	if c.Tokens != nil {
		return len(c.Tokens)
	}
	return token.Count(c.Prompt)
}

// tokenize answers POST /tokenize, of a prompt or of a chat.
func (f *life) tokenize(w http.ResponseWriter, r *http.Request) {
	body, refused := readFields(w, r)
	if refused == nil {
		var name string
		if name, refused = body.text("model"); refused == nil {
			refused = f.lookup(name)
		}
	}
	var text string
	switch {
	case refused != nil:
	case !body.absent("messages"):
		text, refused = readChat(body)
	case body.absent("prompt"):
		refused = invalid("body.prompt", "prompt: Field required")
	default:
		text, refused = body.text("prompt")
	}
	if refused != nil {
		refused.write(w)
		return
	}
	ids := token.Append(nil, text)
	b := append([]byte(nil), `{"count":`...)
	b = appendInt(b, len(ids))
	b = append(b, `,"max_model_len":`...)
	b = appendInt(b, f.settings.MaxModelLen)
	b = append(b, `,"tokens":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, int(id))
	}
	writeJSON(w, http.StatusOK, append(b, `],"token_strs":null}`...))
}

// detokenize answers POST /detokenize.
func (f *life) detokenize(w http.ResponseWriter, r *http.Request) {
	body, refused := readFields(w, r)
	if refused != nil {
		refused.write(w)
		return
	}
	var ids []core.Token
	if body.absent("tokens") || json.Unmarshal(body["tokens"], &ids) != nil {
		invalid("body.tokens", "tokens: Input should be a valid list of integers").write(w)
		return
	}
	for _, id := range ids {
		if id < 0 || id >= core.VocabWords {
			unsupported("tokens", "ids of pieces of prompts are hashes, only generated tokens have words").write(w)
			return
		}
	}
	b := append([]byte(nil), `{"prompt":`...)
	b = appendJSON(b, token.Join(ids))
	writeJSON(w, http.StatusOK, append(b, '}'))
}
