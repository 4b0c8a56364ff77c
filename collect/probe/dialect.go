package probe

import (
	"errors"
	"net/http"
	"strings"
)

// dialect says in what a request departs from the usual form, because the server
// refused that.
type dialect uint32

const (
	// withoutUsage leaves out stream_options: vLLM before 0.4.3 and gateways that
	// forbid unknown fields answer 400 to it.
	withoutUsage dialect = 1 << iota
	// newMaxTokens names the limit of a chat max_completion_tokens: OpenAI's models
	// since o1 answer 400 to max_tokens (unsupported_parameter).
	newMaxTokens
)

// speak puts a request into a dialect.
func (b *completionBody) speak(d dialect) {
	if d&withoutUsage != 0 {
		b.StreamOptions = streamOptions{}
	}
	if d&newMaxTokens != 0 && b.Messages != nil {
		b.MaxTokens, b.NewMaxTokens = 0, b.MaxTokens
	}
}

// notes tells what was asked for in another way than usual.
func (d dialect) notes() []string {
	var all []string
	if d&withoutUsage != 0 {
		all = append(all, "the server refuses stream_options: it was asked without, and may report no usage")
	}
	if d&newMaxTokens != 0 {
		all = append(all, "the server refuses max_tokens: it was asked with max_completion_tokens")
	}
	return all
}

// wanted is what a refusal adds to the dialect that was spoken; 0 where the refusal
// is about something else.
func (d dialect) wanted(err error, chat bool) dialect {
	var status *StatusError
	if !errors.As(err, &status) || status.Code != http.StatusBadRequest && status.Code != http.StatusUnprocessableEntity {
		return 0
	}
	words := strings.ToLower(status.Message)
	has := func(word string) bool { return strings.Contains(words, word) }
	var more dialect
	if has("stream_options") || has("include_usage") {
		more |= withoutUsage
	}
	// A limit that is too large is refused under both names, by vLLM among others.
	if chat && has("max_completion_tokens") && (has("instead") || has("unsupported") || has("not supported")) {
		more |= newMaxTokens
	}
	return more &^ d
}
