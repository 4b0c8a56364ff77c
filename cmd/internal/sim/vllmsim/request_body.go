package vllmsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// maxBody bounds a request, in bytes. vLLM accepts any size; a prompt of a million tokens is about 8 MiB.
const maxBody = 32 << 20

// bodyTimeout bounds the time in which a request must arrive.
const bodyTimeout = 30 * time.Second

// requestBody has the members of a request to generate or to tokenize that have an effect. null is as if the member
// were absent, and unknown members are ignored, as in vLLM.
type requestBody struct {
	Model               string          `json:"model"` // "" means the first served name
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []message       `json:"messages"`
	Generation          *bool           `json:"add_generation_prompt"` // nil means true
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	Priority            int             `json:"priority"`
	Salt                string          `json:"cache_salt"`
	Stream              bool            `json:"stream"`
	StreamOptions       *struct {
		Usage bool `json:"include_usage"` // a last chunk with the usage
	} `json:"stream_options"`

	// Members that are only checked.
	N              *int  `json:"n"`
	BestOf         *int  `json:"best_of"`
	StreamInterval int   `json:"stream_interval"`
	Stop           stops `json:"stop"`
	StopTokenIDs   []int `json:"stop_token_ids"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`

	members map[string]json.RawMessage // all of them
}

// stops is a string or a list of strings.
type stops []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *stops) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*s = stops{""}
		return json.Unmarshal(text, &(*s)[0])
	}
	return json.Unmarshal(text, (*[]string)(s))
}

// readBody reads a request.
func readBody(w http.ResponseWriter, r *http.Request) (*requestBody, *refusal) {
	kind, _, _ := strings.Cut(strings.ToLower(r.Header.Get("Content-Type")), ";")
	if strings.TrimSpace(kind) != "application/json" {
		return nil, invalid("", "Unsupported Media Type: Only 'application/json' is allowed")
	}
	// The deadline closes connections of clients that stop sending; it is removed once the body has
	// arrived.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, httpError(http.StatusRequestEntityTooLarge, "simulated server: the request is larger than 32 MiB")
	case err != nil:
		return nil, invalid("body", "the request's body did not arrive: "+err.Error())
	case len(bytes.TrimSpace(text)) == 0:
		return nil, invalid("body", "Field required")
	}
	return parseBody(text)
}

func parseBody(text []byte) (*requestBody, *refusal) {
	b := &requestBody{}
	err := json.Unmarshal(text, &b.members)
	if err == nil && b.members == nil {
		return nil, invalid("body", "Input should be a valid dictionary")
	}
	if err == nil {
		err = json.Unmarshal(text, b)
	}
	kinds := map[reflect.Kind]string{reflect.Int: "integer", reflect.Bool: "boolean", reflect.String: "string", reflect.Slice: "list", reflect.Struct: "dictionary"}
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other) && other.Field != "":
		return nil, invalid("body."+other.Field, other.Field+": Input should be a valid "+kinds[other.Type.Kind()])
	case err != nil:
		return nil, invalid("body", "JSON decode error: "+err.Error())
	}
	return b, nil
}

// invalid returns vLLM's answer to a request that does not validate
// (serve/exception_handling/handlers/validation.py).
func invalid(param, message string) *refusal {
	return &refusal{Status: http.StatusBadRequest, Type: "Bad Request", Param: param, Message: "1 validation error:\n  " + message}
}

// empty reports whether a member has no effect: it is absent, null, false, "", [], {} or 0.
func (b *requestBody) empty(name string) bool {
	return slices.Contains([]string{"", "null", "false", `""`, "[]", "{}", "0"}, string(bytes.TrimSpace(b.members[name])))
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

// check refuses what is not simulated in a request to generate; interval is the server's --stream-interval.
func (b *requestBody) check(interval int) *refusal {
	for _, refused := range refusedFeatures {
		for name := range strings.FieldsSeq(refused.names) {
			// A number of log probabilities of 0 requests those of the tokens themselves.
			own := strings.HasSuffix(name, "logprobs") && name != "top_logprobs" && string(bytes.TrimSpace(b.members[name])) == "0"
			if own || !b.empty(name) {
				return unsupported(name, refused.why)
			}
		}
	}
	for name, n := range map[string]*int{"n": b.N, "best_of": b.BestOf} {
		if n != nil && *n > 1 {
			return unsupported(name, "one sequence is generated for a prompt")
		} else if n != nil && *n < 1 {
			return badRequest(name, "%s must be at least 1, got %d.", name, *n)
		}
	}
	choice := string(bytes.TrimSpace(b.members["tool_choice"]))
	switch {
	case !b.Stream && b.StreamOptions != nil:
		return invalid("stream_options", "Stream options can only be defined when `stream=True`.")
	case b.StreamInterval > interval:
		return unsupported("stream_interval", "it is the server's --stream-interval for every request")
	case !b.empty("tool_choice") && choice != `"none"` && choice != `"auto"`:
		return unsupported("tool_choice", "no model calls tools here")
	case b.ResponseFormat != nil && b.ResponseFormat.Type != "text" && !b.empty("response_format"):
		return unsupported("response_format", "output is not constrained")
	}
	// Generated text consists of words of letters with a leading blank; stops that cannot occur in it have no effect.
	for _, s := range b.Stop {
		if s != "" && strings.IndexFunc(s, neverGenerated) < 0 {
			return unsupported("stop", fmt.Sprintf("%q could occur in generated text", s))
		}
	}
	for _, id := range b.StopTokenIDs {
		if id < core.VocabWords {
			return unsupported("stop_token_ids", fmt.Sprintf("token %d could occur in generated text", id))
		}
	}
	return nil
}

func neverGenerated(r rune) bool {
	return r != ' ' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// call returns what a request asks of the server but its prompt; limit bounds the output if the request does not.
func (b *requestBody) call(limit int, path string) (Call, *refusal) {
	for _, given := range []*int{b.MaxTokens, b.MaxCompletionTokens} { // the latter counts
		if given == nil {
			continue
		}
		if limit = *given; limit < 1 {
			return Call{}, badRequest("max_tokens", "max_tokens must be at least 1, got %d.", limit)
		}
	}
	return Call{
		Model: b.Model, Path: path, Once: !b.Stream, MaxTokens: limit, MinTokens: b.MinTokens,
		IgnoreEOS: b.IgnoreEOS, Priority: b.Priority, Salt: b.Salt,
	}, nil
}

// prompt sets a call's prompt: a text or token IDs. Lists of either are not simulated.
func (b *requestBody) prompt(c *Call) *refusal {
	if b.empty("prompt") && string(b.Prompt) != "[]" {
		return invalid("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
	}
	if json.Unmarshal(b.Prompt, &c.Prompt) == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(b.Prompt, &list) != nil {
		return invalid("body.prompt", "prompt: Input should be a string, a list of token ids, or a list of either")
	}
	if len(list) == 0 {
		return badRequest("prompt", "The decoder prompt cannot be empty")
	}
	if json.Unmarshal(b.Prompt, &c.Tokens) != nil {
		return unsupported("prompt", "a request has one prompt, a text or a list of token ids")
	}
	if slices.Min(c.Tokens) < 0 {
		return invalid("body.prompt", "prompt: Input should be greater than or equal to 0")
	}
	return nil
}

// message is one turn of a chat.
type message struct {
	Role    string            `json:"role"`
	Content json.RawMessage   `json:"content"`
	Calls   []json.RawMessage `json:"tool_calls"`
}

// chat renders a request's messages as the prompt. The template is ChatML, of which each mark is one token
// here: a message costs five tokens in addition to its text (six if the role's name has more than six
// letters). An assistant's answer follows the same marks as when it was generated, so that it has the same
// tokens and its cached blocks are found.
func (b *requestBody) chat() (string, *refusal) {
	switch {
	case b.Messages == nil:
		return "", invalid("body.messages", "messages: Field required")
	case len(b.Messages) == 0:
		return "", invalid("body.messages", "messages: List should have at least 1 item after validation, not 0")
	}
	var text strings.Builder
	for i := range b.Messages {
		m := &b.Messages[i]
		if m.Role == "" {
			return "", invalid("body.messages", "messages: role: Field required")
		}
		if m.Role == "tool" || m.Role == "function" || len(m.Calls) > 0 {
			return "", unsupported("tool_calls", "no model calls tools here")
		}
		content, refused := m.text()
		if refused != nil {
			return "", refused
		}
		text.WriteString("<|im_start|>" + m.Role + "\n" + content + "<|im_end|>\n")
	}
	if b.Generation == nil || *b.Generation {
		text.WriteString("<|im_start|>assistant\n")
	}
	return text.String(), nil
}

// text returns the text of a message, which is a string or a list of text parts.
func (m *message) text() (string, *refusal) {
	var one string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &one) == nil {
		return one, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", invalid("body.messages", "messages: content: Input should be a string or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "text" && p.Type != "input_text" || p.Text == nil {
			return "", unsupported("messages.content", "a part of type "+p.Type+" is not text")
		}
		texts = append(texts, *p.Text)
	}
	return strings.Join(texts, "\n"), nil
}
