// Package screentest has helpers for tests of screens: keys, golden frames, and random changes of snapshots.
package screentest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Update is the flag -update of tests, which writes golden files instead of comparing with them.
var Update = flag.Bool("update", false, "write the golden files")

// Golden compares a text with a golden file in testdata/frames.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "frames", name+".golden")
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// GoldenBytes compares the terminal output of a canvas in a colour profile with a golden file. It
// also checks that the colours do not change the text.
func GoldenBytes(t testing.TB, name string, c *cell.Canvas, th frame.Theme, p colorprofile.Profile) {
	t.Helper()
	got := c.Render(th.Paint)
	Golden(t, name, strings.ReplaceAll(got, "\x1b", "␛")+"\n")
	if colour := regexp.MustCompile(`\x1b\[[0-9;]*[349][0-9]`).FindString(got); p <= colorprofile.ASCII && colour != "" {
		t.Errorf("a colour without colours: %q", colour)
	}
	if words := TrimLines(ansi.Strip(got)); words != c.Plain() {
		t.Errorf("without colours the words are others:\n%s", cmp.Diff(c.Plain(), words))
	}
}

// CheckFrame returns an error if text is not a valid frame of w by h cells.
func CheckFrame(text string, w, h int) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != h {
		return fmt.Errorf("%d lines", len(lines))
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n > w {
			return fmt.Errorf("line %d is %d cells wide: %q", i, n, l)
		}
		if strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e' }) {
			return fmt.Errorf("line %d has control characters: %q", i, l)
		}
	}
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("empty")
	}
	return nil
}

// TrimLines returns a text without blanks at the ends of its lines.
func TrimLines(s string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(s, "\n") {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}
