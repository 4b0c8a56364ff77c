package ggml

import (
	"slices"
	"strings"
)

// hidden replaces a secret.
const hidden = "[redacted]"

// secretWords are the last words of flags with secret values, such as llama-server's --api-key
// and --hf-token; -hft is short for the latter.
var secretWords = []string{"key", "keys", "token", "secret", "password", "passphrase", "hft"}

// withoutSecrets returns a command line with secrets replaced, because recordings and reports
// are shared.
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

// isSecret reports whether a flag's last word is in secretWords.
func isSecret(flag string) bool {
	words := strings.FieldsFunc(strings.ToLower(flag), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return len(words) > 0 && slices.Contains(secretWords, words[len(words)-1])
}
