package probe

import "unicode/utf8"

// scanner walks JSON without building anything. Whatever it does not know to
// read as encoding/json would, it refuses: its methods then return false.
type scanner struct {
	b  []byte
	at int
}

// maxDepth bounds what the scanner follows.
const maxDepth = 16

// fields notes which fields an object had: encoding/json merges those that come
// twice.
type fields uint16

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
	if digits == 0 || digits > 15 || n > maxCount || digits > 1 && s.b[begin] == '0' {
		return false
	}
	if s.at < len(s.b) && (s.b[s.at] == '.' || s.b[s.at]|0x20 == 'e') {
		return false
	}
	*to = n
	return true
}

// filled reads any value, and says whether it is more than null, "", [] or {}.
func (s *scanner) filled() (some, ok bool) {
	for _, empty := range []string{"null", `""`} {
		if s.word(empty) {
			return false, true
		}
	}
	begin := s.at
	for _, pair := range []string{"[]", "{}"} {
		if s.is(pair[0]) && s.is(pair[1]) {
			return false, true
		}
		s.at = begin
	}
	return true, s.skip(0)
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
