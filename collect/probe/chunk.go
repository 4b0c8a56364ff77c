package probe

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// chunk is the part of a streamed message that is of interest.
type chunk struct {
	choice  bool // it has a choice: output
	opens   bool // of a chat, it only names who speaks
	finish  string
	text    []byte // of the first choice, where asked for; valid until the next
	counted bool   // it has the server's count
	prompt  int
	output  int
	cached  int
	failed  bool // it is an error
}

// wireChunk is how a message is spelled.
type wireChunk struct {
	Choices []struct {
		Text         string `json:"text"`
		FinishReason string `json:"finish_reason"`
		Delta        struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error  json.RawMessage `json:"error"`
	Object string          `json:"object"`
}

// parseChunk reads one message. A message as servers write them, one for each
// token of each stream, is scanned; any other goes to the full parser.
func parseChunk(data []byte, keepText bool) (chunk, error) {
	if c, ok := scanChunk(data, keepText); ok {
		return c, nil
	}
	return decodeChunk(data, keepText)
}

// decodeChunk reads any message.
func decodeChunk(data []byte, keepText bool) (chunk, error) {
	var w wireChunk
	if err := json.Unmarshal(data, &w); err != nil {
		return chunk{}, err
	}
	c := chunk{
		// An error is {"error": ...}, or vLLM's older {"object": "error", ...}.
		failed: w.Object == "error" || (len(w.Error) > 0 && !bytes.Equal(w.Error, []byte("null"))),
	}
	if w.Usage != nil && plausible(w.Usage.Completion) && plausible(w.Usage.Prompt) && plausible(w.Usage.Details.Cached) {
		c.counted, c.prompt, c.output, c.cached = true, w.Usage.Prompt, w.Usage.Completion, w.Usage.Details.Cached
	}
	if len(w.Choices) > 0 {
		first := &w.Choices[0]
		c.choice, c.finish = true, first.FinishReason
		c.opens = opens(first.Delta.Role != "", first.Delta.Content != "", c.finish)
		if keepText {
			c.text = append([]byte(first.Text), first.Delta.Content...)
		}
	}
	return c, nil
}

// maxCount bounds a count that is believed, so that sums of many stay in range.
const maxCount = 1 << 40

func plausible(n int) bool { return n >= 0 && n <= maxCount }

// opens says whether a message of a chat only names who speaks: vLLM sends one
// with the first token's time and without a token.
func opens(role, content bool, finish string) bool { return role && !content && finish == "" }

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
	var role, content bool
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "text":
			_, read := s.kept(c, keepText)
			return seen.first(0) && !seen.has(2) && read
		case "finish_reason":
			reason, read := s.nullable()
			c.finish = reasonOf(reason)
			return seen.first(1) && read
		case "delta":
			return seen.first(2) && (s.null() || s.object(func(key []byte) bool {
				switch string(key) {
				case "role":
					who, read := s.nullable()
					role = len(who) > 0
					return seen.first(3) && read
				case "content":
					some, read := s.kept(c, keepText)
					content = some
					return seen.first(4) && read
				}
				return s.skip(0)
			}))
		}
		return s.skip(0)
	})
	c.opens = opens(role, content, c.finish)
	return ok && s.is(']')
}

// usage reads the server's counts.
func (s *scanner) usage(c *chunk) bool {
	c.counted = true
	var seen fields
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return seen.first(0) && s.count(&c.prompt)
		case "completion_tokens":
			return seen.first(1) && s.count(&c.output)
		case "prompt_tokens_details":
			return seen.first(2) && (s.null() || s.object(func(key []byte) bool {
				if string(key) == "cached_tokens" {
					return seen.first(3) && s.count(&c.cached)
				}
				return s.skip(0)
			}))
		}
		return s.skip(0)
	})
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

// kept reads a string or null, and adds it to the chunk's text where that is
// asked for. Some says that it is not empty.
func (s *scanner) kept(c *chunk, keep bool) (some, ok bool) {
	if s.null() {
		return false, true
	}
	s.space()
	begin := s.at
	text, escaped, ascii, ok := s.quoted()
	if !ok || !keep {
		return len(text) > 0, ok
	}
	if escaped || (!ascii && !utf8.Valid(text)) {
		var decoded string
		if json.Unmarshal(s.b[begin:s.at], &decoded) != nil {
			return false, false
		}
		c.text = append(c.text, decoded...)
		return len(text) > 0, true
	}
	c.text = append(c.text, text...)
	return len(text) > 0, true
}
