package ggml

import (
	"slices"
	"strings"
)

// hidden stands where a secret was.
const hidden = "[redacted]"

// secretWords end the names of flags whose values are secrets, as llama-server's --api-key
// and --hf-token; -hft is short for the latter.
var secretWords = []string{"key", "keys", "token", "secret", "password", "passphrase", "hft"}

// withoutSecrets is a command line as it may be kept: recordings and reports are handed on.
func withoutSecrets(words []string) []string {
	kept := slices.Clone(words)
	for i, word := range words {
		name, _, inline := strings.Cut(word, "=")
		switch {
		case !strings.HasPrefix(name, "-") || !isSecret(name):
		case inline:
			kept[i] = name + "=" + hidden
		case i+1 < len(words):
			kept[i+1] = hidden
		}
	}
	return kept
}

// isSecret says that a flag's last word is one of secrets.
func isSecret(flag string) bool {
	words := strings.FieldsFunc(strings.ToLower(flag), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return len(words) > 0 && slices.Contains(secretWords, words[len(words)-1])
}
