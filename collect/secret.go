package collect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Secret is a bearer token. Every way of printing it shows a placeholder, so
// that it reaches no log, recording or document by accident.
type Secret struct{ value string }

const (
	redacted       = "[redacted]"
	maxSecretBytes = 16 << 10
)

// NewSecret takes a token as a person or a variable holds it: surrounding white
// space is not part of it. The empty string is no token. It refuses what cannot
// be sent in a header, without repeating it.
func NewSecret(s string) (Secret, error) {
	s = strings.TrimSpace(s)
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Secret{}, errors.New("the API key holds a space, a line break or a character outside ASCII: it must be the bare key")
	}
	return Secret{value: s}, nil
}

// ReadSecret reads a token from a file that holds nothing else. Errors name the
// file and never its content.
func ReadSecret(path string) (Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return Secret{}, fmt.Errorf("read the API key: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return Secret{}, fmt.Errorf("read the API key: %w", err)
	}
	if len(b) > maxSecretBytes {
		return Secret{}, fmt.Errorf("read the API key: %s is larger than %d bytes: it must hold the key alone", path, maxSecretBytes)
	}
	s, err := NewSecret(string(b))
	switch {
	case err != nil:
		return Secret{}, fmt.Errorf("read %s: %w", path, err)
	case s.value == "":
		return Secret{}, fmt.Errorf("read the API key: %s is empty", path)
	}
	return s, nil
}

// IsZero reports whether there is no token.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns a placeholder, or nothing where there is no token.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return redacted
}

// GoString returns what String does, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns what String does, for JSON, YAML and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
