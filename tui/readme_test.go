package tui

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/tui/frame"
)

// TestKeysOfTheManual compares the table of docs/tuning.md with the keys.
func TestKeysOfTheManual(t *testing.T) {
	text, err := os.ReadFile("../docs/tuning.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), "<!-- keys -->")
	table, _, ends := strings.Cut(rest, "<!-- /keys -->")
	if !begins || !ends {
		t.Fatal("docs/tuning.md has no <!-- keys --> … <!-- /keys -->: the table of the keys belongs between them")
	}
	if diff := cmp.Diff(strings.TrimSpace(keyTable()), strings.TrimSpace(table)); diff != "" {
		t.Errorf("docs/tuning.md differs from the keys (-keys +file):\n%s", diff)
	}
}

// keyTable returns the keys of the screen as a Markdown table.
func keyTable() string {
	var b strings.Builder
	b.WriteString("| key | does |\n|---|---|\n")
	k := frame.Keys()
	for _, g := range k.Groups() {
		for _, binding := range g.Keys {
			h := binding.Help()
			fmt.Fprintf(&b, "| %s | %s |\n", "`"+strings.ReplaceAll(h.Key, " ", "` `")+"`", h.Desc)
		}
	}
	return b.String()
}
