package collect

import (
	"errors"
	"strings"
)

// Secret is a bearer token. All ways of printing it show a placeholder, so that it never appears in
// a log, recording or document by accident.
type Secret struct{ value string }

const redacted = "[redacted]"

// NewSecret returns a secret without the surrounding white space of s. The empty string is no
// token. It fails if s cannot be sent in a header; the error does not contain s.
func NewSecret(s string) (Secret, error) {
	s = strings.TrimSpace(s)
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Secret{}, errors.New("the API key contains a space, a line break or a character outside ASCII: it must be the bare key")
	}
	return Secret{value: s}, nil
}

// IsZero reports whether there is no token.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns a placeholder, or "" without a token.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return redacted
}

// GoString returns the same as String, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns the same as String, for JSON, YAML and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
