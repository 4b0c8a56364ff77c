package frame_test

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

func TestParseColors(t *testing.T) {
	c, err := frame.ParseColors("# mine\n\nwarn = #ffe169 bold\nselected=15 on #0a4fa8\nbody = 7\n")
	if err != nil || len(c) != 3 {
		t.Fatalf("%v, %v", c, err)
	}
	if got := c[cell.Warn].Render("x"); got != "\x1b[1;38;2;255;225;105mx\x1b[m" {
		t.Errorf("warn %q", got)
	}
	if got := c[cell.Selected].Render("x"); !strings.Contains(got, "48;2;10;79;168") {
		t.Errorf("selected %q", got)
	}
	for text, want := range map[string]string{
		"warning = 3":      `line 1: "warning" is none of accent, achievable, bad`,
		"\nwarn = yellow":  `line 2: "yellow" is no colour: give #rrggbb or 0 to 255`,
		"warn = #ffe":      `"#ffe" is no colour`,
		"warn = 256":       `"256" is no colour`,
		"warn =":           "a colour is missing",
		"warn = 3 on blue": `"blue" is no colour`,
	} {
		if _, err := frame.ParseColors(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseColors(f *testing.F) {
	f.Add("warn = #ffe169 bold\nselected = 15 on #0a4fa8")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := frame.ParseColors(text); err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q: %v names no line", text, err)
		}
	})
}
