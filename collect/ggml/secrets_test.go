package ggml

import (
	"strings"
	"testing"
)

func TestSecretsOfACommandLineAreNotKept(t *testing.T) {
	for line, want := range map[string]string{
		"llama-server -m a.gguf --api-key s3 --port 80": "llama-server -m a.gguf --api-key [redacted] --port 80",
		"llama-server --api-key=s3 -hft s4":             "llama-server --api-key=[redacted] -hft [redacted]",
		"llama-server --HF_TOKEN s3 --api-key-file /k":  "llama-server --HF_TOKEN [redacted] --api-key-file /k",
		"server --ctk q8_0 --keep 4 --cache-type-k f16": "server --ctk q8_0 --keep 4 --cache-type-k f16",
		"key token --api-key":                           "key token --api-key",
		"":                                              "",
	} {
		if got := strings.Join(withoutSecrets(strings.Split(line, " ")), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
