package tui

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeysOfTheReadme compares the table of the README with the keys.
func TestKeysOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), "<!-- keys -->")
	table, _, ends := strings.Cut(rest, "<!-- /keys -->")
	if !begins || !ends {
		t.Fatal("README.md has no <!-- keys --> … <!-- /keys -->: KeyTable belongs between them")
	}
	if diff := cmp.Diff(strings.TrimSpace(KeyTable()), strings.TrimSpace(table)); diff != "" {
		t.Errorf("README.md differs from the keys (-keys +README):\n%s", diff)
	}
}
