package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestADocumentIsNoRecording holds that a report's document is told from a broken file, and
// what reads it.
func TestADocumentIsNoRecording(t *testing.T) {
	for content, want := range map[string]string{
		"{\n  \"schema\": \"rooftop.trace/v1\"\n}\n": "'rooftop trace compare' reads it",
		"neither": "is no recording of 'rooftop trace --save'",
	} {
		path := filepath.Join(t.TempDir(), "a1.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readRecording(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}
