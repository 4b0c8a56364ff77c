//go:build e2e && linux

package main_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

// tabs are the names of the views in the order of their digits.
var tabs = []string{"Now", "Roofline", "History", "Evidence", "GPU", "Log"}

// TestE2EScreen uses the screen like a user: in a terminal, on a server that someone else started and that others
// load.
func TestE2EScreen(t *testing.T) {
	server := startSimulated(t)
	at := []string{"--url", server.url()}

	t.Run("sizes", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			name          string
			width, height int
			env, args     []string
			check         func(t *testing.T, x *screen, frame string)
		}{
			{name: "80x24", width: 80, height: 24, check: coloured(true)},
			{name: "NO_COLOR", width: 80, height: 24, env: []string{"NO_COLOR=1"}, check: coloured(false)},
			{name: "ascii", width: 80, height: 24, args: []string{"--ascii"}, check: inASCII},
			{name: "another locale", width: 80, height: 24, env: []string{"LC_ALL=C"}, check: inASCII},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				x := openScreen(t, c.width, c.height, c.env...)
				x.started("Now", append(slices.Concat([]string{"tune"}, at), c.args...)...)
				frame := x.AwaitThat("concurrency saturation with the number of slots", aWhile, func(s string) bool { return slots(s) != "" })
				t.Logf("%s:\n%s", c.name, boxedText(frame))
				if !strings.Contains(strings.ToUpper(frame), "SIMULATED") {
					t.Error("the frame does not say that the server is simulated")
				}
				c.check(t, x, frame)
				x.Press("q")
				x.ended(codeEarly)
			})
		}
	})

	t.Run("views and help", func(t *testing.T) {
		t.Parallel()
		x := openScreen(t, 80, 24)
		now := x.started("Now", slices.Concat([]string{"tune"}, at)...)
		for _, name := range tabs {
			if !strings.Contains(now, name) {
				t.Errorf("no view %s among the tabs:\n%s", name, boxedText(now))
			}
		}
		x.AwaitThat("concurrency saturation with the number of slots", aWhile, func(s string) bool { return slots(s) != "" })
		seen := map[string]string{}
		for i := range tabs {
			x.Press(string(rune('1' + i)))
			frame := x.AwaitThat("another view", soon, func(s string) bool {
				return !slices.ContainsFunc(values(seen), func(other string) bool { return body(other) == body(s) })
			})
			seen[tabs[i]] = frame
			t.Logf("%s:\n%s", tabs[i], boxedText(frame))
		}
		x.Press("?")
		help := x.AwaitThat("help", soon, func(s string) bool {
			return strings.Contains(s, "export a report") && strings.Contains(s, "closes the help")
		})
		t.Logf("help:\n%s", boxedText(help))
		x.Press("Escape")
		x.AwaitThat("the view under the help", soon, func(s string) bool { return !strings.Contains(s, "closes the help") })
		x.Press("1")
		firm(x)
		x.Press("y")
		x.AwaitThat("the command in the clipboard", soon, func(string) bool { return strings.Contains(x.Clipboard(), "--max-num-seqs") })
		t.Logf("copied %q, and shown:\n%s", x.Clipboard(), boxedText(x.Screen()))
		// Alone: with another key after it, it would be alt and that key.
		x.Press("Escape")
		x.AwaitThat("no copied command", soon, func(s string) bool { return !strings.Contains(s, "esc closes") })
		x.Press("q")
		x.ended(3)
	})

	t.Run("resize storm", func(t *testing.T) {
		t.Parallel()
		x := openScreen(t, 80, 24)
		x.started("Now", slices.Concat([]string{"tune"}, at)...)
		draw := rand.New(rand.NewPCG(1, 2))
		for range 40 {
			x.Resize(20+draw.IntN(200), 6+draw.IntN(70))
		}
		x.Resize(40, 10)
		small := x.AwaitThat("what size it needs", soon, func(s string) bool { return strings.Contains(s, "60") && strings.Contains(s, "16") })
		t.Logf("40x10:\n%s", boxedText(small))
		x.Resize(80, 24)
		frame := x.AwaitThat("the whole screen again", soon, func(s string) bool {
			return !slices.ContainsFunc(tabs, func(name string) bool { return !strings.Contains(s, name) })
		})
		if n := len(strings.Split(strings.TrimRight(frame, "\n"), "\n")); n > 24 {
			t.Errorf("%d lines in a terminal of 24", n)
		}
		firm(x)
		x.Press("q")
		x.ended(3)
	})

	t.Run("signals", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			name   string
			signal syscall.Signal
		}{{"HUP", syscall.SIGHUP}, {"INT", syscall.SIGINT}, {"TERM", syscall.SIGTERM}} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				x := openScreen(t, 80, 24)
				x.started("Now", slices.Concat([]string{"tune"}, at)...)
				x.AwaitThat("concurrency saturation", aWhile, func(s string) bool { return slots(s) != "" })
				must(t, syscall.Kill(x.pid(), c.signal))
				left := x.ended(128 + int(c.signal))
				t.Logf("%s leaves:\n%s", c.name, boxedText(left))
				if !strings.Contains(left, "slot") {
					t.Errorf("the report is not on the normal screen:\n%s", boxedText(left))
				}
				reported(t, x, left)
			})
		}
	})

	t.Run("stop and continue", func(t *testing.T) {
		t.Parallel()
		x := openScreen(t, 80, 24)
		x.started("Now", slices.Concat([]string{"tune"}, at)...)
		for range 2 {
			x.Press("C-z")
			x.AwaitNormal(soon)
			x.Await("Stopped", soon)
			if !x.Cursor() {
				t.Error("stopped, the cursor is hidden")
			}
			x.Type("clear; echo meanwhile $((20+3))")
			x.Await("meanwhile 23", soon)
			x.Type("fg; " + x.ending())
			x.AwaitThat("the screen again", soon, func(s string) bool { return strings.Contains(s, "Roofline") && x.Alternate() })
		}
		// The screen is not only drawn, but responds.
		firm(x)
		x.Press("q")
		x.ended(3)
	})
}

// codeEarly is the exit code of a run that ended before its first measurement was complete.
const codeEarly = 4

// firm waits until the baseline is measured and the recommendation is final.
func firm(x *screen) string {
	x.t.Helper()
	return x.AwaitThat("a recommendation that stands", aWhile, func(s string) bool {
		return slots(s) != "" && !strings.Contains(s, "so far") && !strings.Contains(s, "preliminary")
	})
}

// slots returns the number of slots that a frame recommends, "" if it does not recommend more slots.
func slots(frame string) string {
	if !regexp.MustCompile(`(?i)slot`).MatchString(frame) {
		return ""
	}
	found := regexp.MustCompile(`--max-num-seqs(?: +\d+ +(?:→|->|to))? +(\d+)`).FindStringSubmatch(frame)
	if found == nil {
		return ""
	}
	return found[1]
}

// body returns a frame without its first and last lines, which change with time.
func body(frame string) string {
	lines := strings.Split(strings.TrimRight(frame, "\n"), "\n")
	if len(lines) < 6 {
		return frame
	}
	return regexp.MustCompile(`[\d.,:]+`).ReplaceAllString(strings.Join(lines[3:len(lines)-2], "\n"), "N")
}

func values(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// coloured returns a check that a frame has colour, or none.
func coloured(want bool) func(*testing.T, *screen, string) {
	return func(t *testing.T, x *screen, _ string) {
		t.Helper()
		got := regexp.MustCompile(`\x1b\[[0-9;:]*(3[0-7]|9[0-7]|38[;:][0-9;:]+|4[0-7]|48[;:][0-9;:]+)m`).FindString(x.Styled())
		if (got != "") != want {
			t.Errorf("colour %q, want any: %v", got, want)
		}
	}
}

// inASCII checks that a frame is in ASCII.
func inASCII(t *testing.T, _ *screen, frame string) {
	t.Helper()
	for _, r := range frame {
		if r >= utf8.RuneSelf {
			t.Errorf("%q in an ASCII frame:\n%s", r, boxedText(frame))
			return
		}
	}
}

// reported fails unless the run left its report in files, and the normal screen names their path.
func reported(t *testing.T, x *screen, left string) {
	t.Helper()
	var found []string
	_ = filepath.WalkDir(x.Home, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	t.Logf("files: %q", found)
	at := slices.IndexFunc(found, func(path string) bool { return strings.HasSuffix(path, ".md") })
	if at < 0 {
		t.Errorf("no report was written below the home directory: %q", found)
		return
	}
	text := readFile(t, found[at])
	if !strings.Contains(string(text), "--max-num-seqs") {
		t.Errorf("the report does not have the recommendation:\n%s", text)
	}
	if name := filepath.Base(filepath.Dir(found[at])); !strings.Contains(strings.Join(strings.Fields(left), ""), name) {
		t.Errorf("the normal screen does not name %s:\n%s", name, boxedText(left))
	}
}
