package screen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

func TestPossible(t *testing.T) {
	for _, c := range []struct {
		name          string
		o             cli.Output
		stdin, stdout bool
		term          string
		want          bool
	}{
		{"a terminal", cli.Output{}, true, true, "xterm-256color", true},
		{"a terminal of no name", cli.Output{}, true, true, "", true},
		{"stdout is a file", cli.Output{}, true, false, "xterm", false},
		{"stdin is a pipe", cli.Output{}, false, true, "xterm", false},
		{"a dumb terminal", cli.Output{}, true, true, "dumb", false},
		{"plain", cli.Output{Plain: true}, true, true, "xterm", false},
		{"events", cli.Output{JSON: true}, true, true, "xterm", false},
	} {
		if got := possible(&c.o, c.stdin, c.stdout, c.term); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestThemeFile checks that a file of colours is read before the screen opens, and refused with its
// line.
func TestThemeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "colours")
	for text, want := range map[string]string{"warn = 3 bold\n": "", "warn = 3\nok = green\n": "line 2: "} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := Default()
		o.Colors = path
		if err := o.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	o := Default()
	o.Colors = path + ".missing"
	if err := o.Check(); err == nil {
		t.Error("a missing file is accepted")
	}
}
