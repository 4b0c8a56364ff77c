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
	if w.Usage != nil && w.Usage.Completion >= 0 && w.Usage.Prompt >= 0 {
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

// opens says whether a message of a chat only names who speaks: vLLM sends one
// with the first token's time and without a token.
func opens(role, content bool, finish string) bool { return role && !content && finish == "" }

// scanner walks JSON without building anything. Whatever it does not know to
// read as encoding/json would, it refuses: its methods then return false.
type scanner struct {
	b  []byte
	at int
}

// maxDepth bounds what the scanner follows.
const maxDepth = 16

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

// fields notes which fields an object had: encoding/json merges those that come
// twice.
type fields uint8

func (f *fields) first(i int) bool {
	had := f.has(i)
	*f |= 1 << i
	return !had
}

func (f *fields) has(i int) bool { return *f&(1<<i) != 0 }

// object calls field at the value of each field, which it has to read.
func (s *scanner) object(field func(key []byte) bool) bool {
	if !s.is('{') {
		return false
	}
	if s.is('}') {
		return true
	}
	for {
		key, plain := s.text()
		// encoding/json takes a key in any case for the field.
		if !plain || !lower(key) || !s.is(':') || !field(key) {
			return false
		}
		if s.is('}') {
			return true
		}
		if !s.is(',') {
			return false
		}
	}
}

func lower(key []byte) bool {
	for _, b := range key {
		if b-'a' > 'z'-'a' && b != '_' && b-'0' > 9 {
			return false
		}
	}
	return true
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\t' || s.b[s.at] == '\r') {
		s.at++
	}
}

// is reads a sign that may be there.
func (s *scanner) is(sign byte) bool {
	s.space()
	if s.at < len(s.b) && s.b[s.at] == sign {
		s.at++
		return true
	}
	return false
}

// null reads a null that may be there.
func (s *scanner) null() bool { return s.word("null") }

func (s *scanner) word(w string) bool {
	s.space()
	if len(s.b)-s.at >= len(w) && string(s.b[s.at:s.at+len(w)]) == w {
		s.at += len(w)
		return true
	}
	return false
}

// text reads a string of printable ASCII without escapes.
func (s *scanner) text() (text []byte, ok bool) {
	text, escaped, ascii, ok := s.quoted()
	return text, ok && !escaped && ascii
}

// nullable reads a string like text, or null.
func (s *scanner) nullable() (text []byte, ok bool) {
	if s.null() {
		return nil, true
	}
	return s.text()
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

// quoted reads a string: what stands between the quotes, whether that has
// escapes, and whether it is ASCII.
func (s *scanner) quoted() (text []byte, escaped, ascii, ok bool) {
	if !s.is('"') {
		return nil, false, false, false
	}
	begin := s.at
	ascii = true
	for ; s.at < len(s.b); s.at++ {
		switch b := s.b[s.at]; {
		case b == '"':
			s.at++
			return s.b[begin : s.at-1], escaped, ascii, true
		case b < ' ':
			return nil, false, false, false
		case b >= utf8.RuneSelf:
			ascii = false
		case b == '\\':
			escaped = true
			if !s.escape() {
				return nil, false, false, false
			}
		}
	}
	return nil, false, false, false
}

// escape reads an escape up to its last byte.
func (s *scanner) escape() bool {
	s.at++
	if s.at >= len(s.b) {
		return false
	}
	switch s.b[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.at++
			if s.at >= len(s.b) || !hexDigit(s.b[s.at]) {
				return false
			}
		}
		return true
	}
	return false
}

func hexDigit(b byte) bool { return b-'0' <= 9 || b|0x20-'a' <= 5 }

// count reads a whole number that is not negative.
func (s *scanner) count(to *int) bool {
	s.space()
	begin, n := s.at, 0
	for s.at < len(s.b) && s.b[s.at]-'0' <= 9 {
		n = n*10 + int(s.b[s.at]-'0')
		s.at++
	}
	digits := s.at - begin
	if digits == 0 || digits > 15 || digits > 1 && s.b[begin] == '0' {
		return false
	}
	if s.at < len(s.b) && (s.b[s.at] == '.' || s.b[s.at]|0x20 == 'e') {
		return false
	}
	*to = n
	return true
}

// skip reads any value.
func (s *scanner) skip(depth int) bool {
	s.space()
	if depth > maxDepth || s.at >= len(s.b) {
		return false
	}
	switch s.b[s.at] {
	case '"':
		_, _, _, ok := s.quoted()
		return ok
	case '{':
		return s.skipList('{', '}', depth)
	case '[':
		return s.skipList('[', ']', depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// skipList reads an object or a list.
func (s *scanner) skipList(begin, end byte, depth int) bool {
	if !s.is(begin) {
		return false
	}
	if s.is(end) {
		return true
	}
	for {
		if begin == '{' {
			if _, _, _, ok := s.quoted(); !ok || !s.is(':') {
				return false
			}
		}
		if !s.skip(depth + 1) {
			return false
		}
		if s.is(end) {
			return true
		}
		if !s.is(',') {
			return false
		}
	}
}

// number reads a number by the grammar of RFC 8259.
func (s *scanner) number() bool {
	if s.at < len(s.b) && s.b[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.b) && s.b[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at < len(s.b) && s.b[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.b) && s.b[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.b) && (s.b[s.at] == '+' || s.b[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

// digits reads at least one digit.
func (s *scanner) digits() bool {
	begin := s.at
	for s.at < len(s.b) && s.b[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > begin
}
