package collect

import (
	"encoding/json"
	"fmt"
	"log/slog"
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
