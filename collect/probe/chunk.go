package probe

import (
	"encoding/json"
	"unicode/utf8"
)

// chunk is the part of a streamed message that is of interest.
type chunk struct {
	choice  bool // it has a choice
	role    bool // of a chat, it names who speaks
	says    bool // the choice holds text or a refusal
	thinks  bool // it holds reasoning
	calls   bool // it holds a tool's call
	failed  bool // it is an error
	counted bool // it has the server's count of output tokens
	// Beside it there is a count of the prompt, of its cached part, and of the tokens
	// of reasoning.
	tellsPrompt, tellsCached, tellsThought bool

	finish   string
	text     []byte // of the first choice, where asked for; valid until the next
	thought  int    // bytes of reasoning, where text is asked for
	prompt   int
	tokens   int // of output
	cached   int // of the prompt
	reasoned int // of the output
	timings  *timings
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

// output says that the choice holds anything that was generated.
func (c *chunk) output() bool { return c.says || c.thinks || c.calls }

// token says that a message of a choice stands for output: any does, except one
// that opens, if it is the first, and one that closes, unless it is all that came.
func (c *chunk) token(first bool, before int) bool {
	return !(first && c.opens() || c.closes() && before > 0)
}

// opens says that a message of a chat only names who speaks: vLLM begins with
// one, at the first token's time and without a token.
func (c *chunk) opens() bool { return c.role && !c.output() && c.finish == "" }

// closes says that a message only tells why the output ended.
func (c *chunk) closes() bool { return !c.output() && c.finish != "" }

// wireChunk is how a message is spelled. What is left raw may be of any type.
type wireChunk struct {
	Choices json.RawMessage `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  json.RawMessage `json:"object"`
	Timings json.RawMessage `json:"timings"`
}

type wireChoice struct {
	Text         json.RawMessage `json:"text"`
	FinishReason json.RawMessage `json:"finish_reason"`
	Delta        json.RawMessage `json:"delta"`
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

// parseChunk reads one message. A message as servers write them, one for each
// token of each stream, is scanned; any other goes to the full parser.
func parseChunk(data []byte, keepText bool) (chunk, error) {
	if c, ok := scanChunk(data, keepText); ok {
		return c, nil
	}
	return decodeChunk(data, keepText)
}

// decodeChunk reads any message. What is of an unknown type is left out, except
// a count: a wrong one would be a wrong measurement.
func decodeChunk(data []byte, keepText bool) (chunk, error) {
	var w wireChunk
	if err := json.Unmarshal(data, &w); err != nil {
		return chunk{}, err
	}
	c := chunk{
		// An error is {"error": ...}, or vLLM's older {"object": "error", ...}.
		failed: string(w.Object) == `"error"` || given(w.Error),
	}
	if err := c.usage(w.Usage); err != nil {
		return chunk{}, err
	}
	if first := firstOf(w.Choices); first != nil {
		c.take(first, keepText)
	}
	if given(w.Timings) {
		c.timings = new(timings)
		if json.Unmarshal(w.Timings, c.timings) != nil {
			c.timings = nil
		}
	}
	return c, nil
}

// firstOf is the first choice; nil where there is none.
func firstOf(raw json.RawMessage) *wireChoice {
	var choices []*wireChoice
	if json.Unmarshal(raw, &choices) != nil || len(choices) == 0 {
		return nil
	}
	return choices[0]
}

// take notes what a choice holds.
func (c *chunk) take(first *wireChoice, keepText bool) {
	c.choice, c.finish = true, reasonIn(first.FinishReason)
	var delta wireDelta
	_ = json.Unmarshal(first.Delta, &delta)
	c.role = filled(delta.Role)
	c.says = filled(first.Text) || filled(delta.Content) || filled(delta.Refusal)
	c.thinks = filled(delta.Reasoning) || filled(delta.Reasoned)
	c.calls = filled(delta.ToolCalls) || filled(delta.Call)
	if keepText {
		c.text = append(textIn(first.Text), textIn(delta.Content)...)
		c.thought = len(textIn(delta.Reasoning)) + len(textIn(delta.Reasoned))
	}
}

// given says that a value is there and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// filled says that a value is there and not empty.
func filled(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return false
	}
	s := scanner{b: raw}
	some, ok := s.filled()
	return some || !ok
}

// reasonIn is a finish reason, or what stands in its place.
func reasonIn(raw json.RawMessage) string {
	var reason string
	if !given(raw) || json.Unmarshal(raw, &reason) == nil {
		return reason
	}
	return string(raw)
}

// textIn is a text, or those of a list of parts.
func textIn(raw json.RawMessage) []byte {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
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
		if json.Unmarshal(part.Text, &text) == nil {
			all = append(all, text...)
		}
	}
	return all
}

// scanChunk reads a message of the usual form, or returns false.
func scanChunk(data []byte, keepText bool) (chunk, bool) {
	var c chunk
	s := scanner{b: data}
	var seen fields
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "choices":
			return seen.first(0) && s.choices(&c, keepText)
		case "usage":
			return seen.first(1) && (s.null() || s.usage(&c))
		case "error":
			return seen.first(2) && s.null()
		case "object":
			kind, plain := s.text()
			return seen.first(3) && plain && string(kind) != "error"
		case "timings":
			return seen.first(4) && s.null()
		}
		return s.skip(0)
	})
	s.space()
	return c, ok && s.at == len(s.b)
}

// choices reads a list of at most one choice.
func (s *scanner) choices(c *chunk, keepText bool) bool {
	if s.null() {
		return true
	}
	if !s.is('[') {
		return false
	}
	if s.is(']') {
		return true
	}
	c.choice = true
	var seen fields
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "text":
			return seen.first(0) && !seen.has(2) && s.kept(c, keepText)
		case "finish_reason":
			reason, read := s.nullable()
			c.finish = reasonOf(reason)
			return seen.first(1) && read
		case "delta":
			return seen.first(2) && (s.null() || s.delta(c, &seen, keepText))
		}
		return s.skip(0)
	})
	return ok && s.is(']')
}

// delta reads what a message adds to a chat.
func (s *scanner) delta(c *chunk, seen *fields, keepText bool) bool {
	return s.object(func(key []byte) bool {
		at, holds := 0, &c.calls
		switch string(key) {
		case "role":
			who, read := s.nullable()
			c.role = len(who) > 0
			return seen.first(3) && read
		case "content":
			return seen.first(4) && s.kept(c, keepText)
		case "reasoning":
			return seen.first(5) && s.thought(c, keepText)
		case "reasoning_content":
			return seen.first(6) && s.thought(c, keepText)
		case "tool_calls":
			at = 7
		case "function_call":
			at = 8
		case "refusal":
			at, holds = 9, &c.says
		default:
			return s.skip(0)
		}
		some, read := s.filled()
		*holds = *holds || some
		return seen.first(at) && read
	})
}

// thought reads reasoning, and counts its bytes where text is asked for.
func (s *scanner) thought(c *chunk, keepText bool) bool {
	s.space()
	begin := s.at
	some, ok := s.filled()
	c.thinks = c.thinks || some
	if ok && some && keepText {
		c.thought += len(textIn(s.b[begin:s.at]))
	}
	return ok
}

// reasonOf is a finish reason as a string, without a copy of the usual ones.
func reasonOf(reason []byte) string {
	switch string(reason) {
	case "":
		return ""
	case "length":
		return "length"
	case "stop":
		return "stop"
	}
	return string(reason)
}

// kept reads a string or null, notes whether it is output, and adds it to the
// chunk's text where that is asked for.
func (s *scanner) kept(c *chunk, keep bool) bool {
	if s.null() {
		return true
	}
	s.space()
	begin := s.at
	text, escaped, ascii, ok := s.quoted()
	c.says = c.says || len(text) > 0
	if !ok || !keep {
		return ok
	}
	if escaped || (!ascii && !utf8.Valid(text)) {
		var decoded string
		if json.Unmarshal(s.b[begin:s.at], &decoded) != nil {
			return false
		}
		c.text = append(c.text, decoded...)
		return true
	}
	c.text = append(c.text, text...)
	return true
}
