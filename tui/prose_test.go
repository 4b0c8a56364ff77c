package tui

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// flat is the text of lines, joined with one space.
func flat(lines []prose) string {
	var parts []string
	for _, l := range lines {
		var b strings.Builder
		for _, s := range l {
			b.WriteString(s.text)
		}
		parts = append(parts, b.String())
	}
	return strings.Join(parts, " ")
}

func TestProseWraps(t *testing.T) {
	u := unicodeLook()
	for _, c := range []struct {
		name string
		p    prose
		w    int
		want []string
	}{
		{"at spaces", u.say(cell.Body, "one two three"), 8, []string{"one two", "three"}},
		{"a word of two meanings stays whole", line(u.say(cell.Body, "say --max"), u.say(cell.Accent, "-num 4")), 10, []string{"say", "--max-num", "4"}},
		{"a figure stays with its unit", u.say(cell.Body, "about 12\u00a0% of it"), 9, []string{"about", "12\u00a0% of", "it"}},
		{"a percent sign stays with its number", u.say(cell.Body, "about 12 % of it"), 9, []string{"about", "12\u00a0% of", "it"}},
		{"a word longer than the line", u.say(cell.Body, "a/very/long/path"), 6, []string{"a/very", "/long/", "path"}},
		{"wide signs", u.say(cell.Body, "模型名称"), 5, []string{"模型", "名称"}},
		{"a sign wider than the line", u.say(cell.Body, "模"), 1, []string{"模"}},
		{"nothing", nil, 5, []string{""}},
		{"no line feeds from outside", u.say(cell.Body, "one\ntwo\x1b[2Jthree"), 40, []string{"one two[2Jthree"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, l := range c.p.wrap(c.w) {
				got = append(got, flat([]prose{l}))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestWrapLosesNothing wraps texts of all kinds to all widths: no line is too
// wide, and the letters are those of the text.
func TestWrapLosesNothing(t *testing.T) {
	u := unicodeLook()
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "b ", " ", "  ", "--flag", "模", "é", "µ", " %", "1,000\u00a0tok/s ", "x/y/z", "e\u0301"}
	tight := strings.NewReplacer(" ", "", "\u00a0", "")
	for range 400 {
		var p prose
		for range r.IntN(24) {
			p = line(p, u.say(cell.Token(r.IntN(3)), alphabet[r.IntN(len(alphabet))]))
		}
		w := 2 + r.IntN(30)
		lines := p.wrap(w)
		for _, l := range lines {
			if l.width() > w {
				t.Fatalf("%q is wider than %d", flat([]prose{l}), w)
			}
		}
		if got, want := tight.Replace(flat(lines)), tight.Replace(flat([]prose{p})); got != want {
			t.Fatalf("width %d: got %q, want %q", w, got, want)
		}
		if c := p.cut(w, "…"); c.width() > w {
			t.Fatalf("cut to %d is %q", w, flat([]prose{c}))
		}
	}
}

func TestCutMarksWhatIsMissing(t *testing.T) {
	u := unicodeLook()
	p := line(u.say(cell.Body, "output "), u.say(cell.Accent, "1,230 tok/s"))
	for _, c := range []struct {
		w    int
		want string
	}{{30, "output 1,230 tok/s"}, {18, "output 1,230 tok/s"}, {13, "output 1,230…"}, {14, "output 1,230…"}, {1, "…"}, {0, ""}} {
		if got := flat([]prose{p.cut(c.w, "…")}); got != c.want {
			t.Errorf("%d cells: got %q, want %q", c.w, got, c.want)
		}
	}
}

func TestSaySpellsInSevenBits(t *testing.T) {
	u := &look{glyphs: cell.ASCII()}
	if got, want := flat([]prose{u.say(cell.Body, "4 → 32: −3 µs, “模”")}), `4 -> 32: -3 us, "?"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
