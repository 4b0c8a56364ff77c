package probe

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Request is one completion request.
type Request struct {
	Prompt    string
	Messages  []Message // if set, the request uses the chat endpoint
	Model     string    // "" is the client's model
	MaxTokens int       // maximum number of output tokens, at least 1
	// IgnoreEOS makes vLLM always generate MaxTokens tokens. Other servers ignore or refuse it.
	IgnoreEOS bool
	// CancelAfter, if above 0, is the number of chunks after which the client closes the
	// stream; the error is then ErrCancelled.
	CancelAfter int
	// Greedy selects the most likely token each time (temperature 0). Otherwise the server's
	// defaults apply.
	Greedy   bool
	KeepText bool // keep the generated text, up to 4 MiB
	// OnChunk, if set, is called by the request's goroutine as each chunk of output
	// arrives, with the time since the send.
	OnChunk func(sinceSend time.Duration)
}

// Message is one message of a chat.
type Message struct {
	Role    string `json:"role"` // "system", "user" or "assistant"
	Content string `json:"content"`
}

// requestBody is the JSON of a completion.
type requestBody struct {
	Model         string        `json:"model"`
	Prompt        *string       `json:"prompt,omitempty"`
	Messages      []Message     `json:"messages,omitempty"`
	MaxTokens     int           `json:"max_tokens,omitempty"`
	NewMaxTokens  int           `json:"max_completion_tokens,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	Logprobs      int           `json:"logprobs,omitempty"`
	Stream        bool          `json:"stream,omitempty"`
	StreamOptions streamOptions `json:"stream_options,omitzero"`
	IgnoreEOS     bool          `json:"ignore_eos,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

var errNoTokens = errors.New("a completion needs at least 1 token")

// newRequest builds the HTTP request of a completion.
func (c *Client) newRequest(ctx context.Context, r *Request, d dialect) (*http.Request, error) {
	if r.MaxTokens < 1 {
		return nil, errNoTokens
	}
	body := requestBody{
		Model: r.Model, Messages: r.Messages, MaxTokens: r.MaxTokens, IgnoreEOS: r.IgnoreEOS,
		Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
	}
	if r.Greedy {
		body.Temperature = new(float64)
	}
	if d&withoutUsage != 0 {
		body.StreamOptions = streamOptions{}
	}
	if d&newMaxTokens != 0 && r.Messages != nil {
		body.MaxTokens, body.NewMaxTokens = 0, r.MaxTokens
	}
	path := chatPath
	if r.Messages == nil {
		path, body.Prompt = completionsPath, &r.Prompt
	}
	if body.Model == "" {
		model, err := c.Model(ctx)
		if err != nil {
			return nil, err
		}
		body.Model = model
	}
	return c.request(ctx, path, "text/event-stream", body)
}

// dialect is a set of differences from the usual request, because the server refused the usual
// form.
type dialect uint32

const (
	// withoutUsage leaves out stream_options: vLLM before 0.4.3 and gateways that forbid
	// unknown fields answer 400 to it.
	withoutUsage dialect = 1 << iota
	// newMaxTokens names the limit of a chat max_completion_tokens: OpenAI's models since
	// o1 answer 400 to max_tokens (unsupported_parameter).
	newMaxTokens
)

// notes describes how the request departs from the usual form.
func (d dialect) notes() []string {
	var notes []string
	if d&withoutUsage != 0 {
		notes = append(notes, "the server refuses stream_options: requests are sent without it, and the server may report no usage")
	}
	if d&newMaxTokens != 0 {
		notes = append(notes, "the server refuses max_tokens: requests use max_completion_tokens")
	}
	return notes
}

// missing returns what a refusal adds to the dialect that was used; 0 if the refusal is
// about something else.
func (d dialect) missing(err error, chat bool) dialect {
	var status *StatusError
	if !errors.As(err, &status) || RefusalOf(err) != RequestRefused {
		return 0
	}
	message := strings.ToLower(status.Message)
	mentions := func(word string) bool { return strings.Contains(message, word) }
	var more dialect
	if mentions("stream_options") || mentions("include_usage") {
		more |= withoutUsage
	}
	// vLLM, among others, names both when the limit is too large.
	if chat && mentions("max_completion_tokens") && (mentions("instead") || mentions("unsupported") || mentions("not supported")) {
		more |= newMaxTokens
	}
	return more &^ d
}
