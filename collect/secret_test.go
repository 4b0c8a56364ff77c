package collect

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	s, err := NewSecret("  sk-s3cret\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.value != "sk-s3cret" {
		t.Fatalf("the token is %q: white space around it is not part of it", s.value)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", s, "options", Options{Token: s})
	document, err := json.Marshal(map[string]any{"token": s, "options": struct{ Token Secret }{s}})
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		"%v": fmt.Sprintf("%v", s), "%+v": fmt.Sprintf("%+v", Options{Token: s}), "%#v": fmt.Sprintf("%#v", Options{Token: s}),
		"%s": fmt.Sprintf("%s", s), "%q": fmt.Sprintf("%q", s), "%x": fmt.Sprintf("%x", s),
		"slog": log.String(), "json": string(document),
	} {
		if strings.Contains(got, "s3cret") || strings.Contains(got, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("%s shows the token: %s", name, got)
		}
	}
}

func TestNewSecretRefusesWhatNoHeaderCarries(t *testing.T) {
	for _, in := range []string{"two words", "line\nbreak", "ümlaut", "nul\x00"} {
		if _, err := NewSecret(in); err == nil || strings.Contains(err.Error(), in) {
			t.Errorf("NewSecret(%q): error %v, want one that does not repeat it", in, err)
		}
	}
}

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name, path, want, says string
	}{
		{"key with newline", write("good", "sk-1\n"), "sk-1", ""},
		{"empty file", write("empty", "\n"), "", "empty"},
		{"a whole .env file", write("env", "A=s3cret B=2"), "", "bare key"},
		{"too large", write("large", strings.Repeat("x", maxSecretBytes+1)), "", "larger"},
		{"missing file", filepath.Join(dir, "none"), "", "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadSecret(tt.path)
			if tt.says == "" {
				if err != nil || got.value != tt.want {
					t.Fatalf("got %q and %v, want %q", got.value, err, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}
