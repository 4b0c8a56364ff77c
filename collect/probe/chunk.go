package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// chunk is what a streamed message contains.
type chunk struct {
	choice bool // it has a choice
	role   bool // it names the speaker of a chat
	says   bool // the choice has text or a refusal
	thinks bool // it has reasoning
	calls  bool // it has a tool call
	failed bool // it is an error

	finish  string
	text    []byte // of the first choice
	thought int    // bytes of reasoning
	timings *timings

	// The server's usage report; tokens and reasoned are those of the output, cached
	// those of the prompt.
	tokens, prompt, cached, reasoned stat.Opt
}

// timings are the times and counts of a whole request that llama.cpp's server
// puts into its last message (tools/server/server-task.cpp, result_timings;
// cache_n since b6600).
type timings struct {
	Prompt      *float64 `json:"prompt_n"` // tokens that were computed
	Cached      *float64 `json:"cache_n"`  // tokens that were not
	PromptMS    *float64 `json:"prompt_ms"`
	Predicted   *float64 `json:"predicted_n"`
	PredictedMS *float64 `json:"predicted_ms"`
}

// output reports whether the choice has anything that was generated.
func (c *chunk) output() bool { return c.says || c.thinks || c.calls }

// token reports whether a message with a choice represents output. Every one does, except an
// opening message that comes first, and a closing message after others.
func (c *chunk) token(first bool, before int) bool {
	return !(first && c.opens() || c.closes() && before > 0)
}

// opens reports whether a message only names the speaker of a chat: vLLM begins with one,
// at the first token's time and without a token.
func (c *chunk) opens() bool { return c.role && !c.output() && c.finish == "" }

// closes reports whether a message only has the finish reason.
func (c *chunk) closes() bool { return !c.output() && c.finish != "" }

// wireChunk is a message as servers spell it. Raw fields may hold any type.
type wireChunk struct {
	Choices []*wireChoice   `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  json.RawMessage `json:"object"`
	Timings json.RawMessage `json:"timings"`
}

type wireChoice struct {
	Text         json.RawMessage `json:"text"`
	FinishReason json.RawMessage `json:"finish_reason"`
	Delta        wireDelta       `json:"delta"`
}

type wireDelta struct {
	Role      json.RawMessage `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning json.RawMessage `json:"reasoning"`         // vLLM since 0.11
	Reasoned  json.RawMessage `json:"reasoning_content"` // vLLM before, and others
	ToolCalls json.RawMessage `json:"tool_calls"`
	Call      json.RawMessage `json:"function_call"`
	Refusal   json.RawMessage `json:"refusal"`
}

// parseChunk reads one message. Values of an unknown type are ignored, except a count: a
// wrong one would be a wrong measurement.
func parseChunk(data []byte) (chunk, error) {
	var w wireChunk
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, &w); {
	case errors.As(err, &kind) && kind.Field == "choices":
		w.Choices = nil
	case errors.As(err, &kind) && kind.Field == "choices.delta": // stays empty
	case err != nil:
		return chunk{}, err
	}
	c := chunk{
		// An error is {"error": ...}, or vLLM's older {"object": "error", ...}.
		failed: string(w.Object) == `"error"` || given(w.Error),
	}
	if given(w.Usage) {
		if err := c.readUsage(w.Usage); err != nil {
			return chunk{}, fmt.Errorf("usage: %w", err)
		}
	}
	if len(w.Choices) > 0 && w.Choices[0] != nil {
		c.readChoice(w.Choices[0])
	}
	if given(w.Timings) {
		c.timings = new(timings)
		if json.Unmarshal(w.Timings, c.timings) != nil {
			c.timings = nil
		}
	}
	return c, nil
}

// readChoice records what a choice contains.
func (c *chunk) readChoice(first *wireChoice) {
	delta := &first.Delta
	c.choice, c.finish = true, finishReason(first.FinishReason)
	c.role = filled(delta.Role)
	c.says = filled(first.Text) || filled(delta.Content) || filled(delta.Refusal)
	c.thinks = filled(delta.Reasoning) || filled(delta.Reasoned)
	c.calls = filled(delta.ToolCalls) || filled(delta.Call)
	c.text = append(textIn(first.Text), textIn(delta.Content)...)
	c.thought = len(textIn(delta.Reasoning)) + len(textIn(delta.Reasoned))
}

// given reports whether a value is present and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// filled reports whether a value is present and neither null, "", [] nor {}.
func filled(raw json.RawMessage) bool {
	switch {
	case !given(raw):
		return false
	case raw[0] == '"':
		return len(raw) > len(`""`)
	case raw[0] == '[' || raw[0] == '{':
		return len(bytes.TrimSpace(raw[1:len(raw)-1])) > 0
	}
	return true
}

// finishReason returns a reason that is a string, or else its JSON.
func finishReason(raw json.RawMessage) string {
	var reason string
	if !given(raw) || json.Unmarshal(raw, &reason) == nil {
		return reason
	}
	return string(raw)
}

// textIn returns a text, or the texts of a list of parts.
func textIn(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return raw[1 : len(raw)-1 : len(raw)-1]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var parts []struct {
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	var all []byte
	for _, part := range parts {
		all = append(all, textIn(part.Text)...)
	}
	return all
}
