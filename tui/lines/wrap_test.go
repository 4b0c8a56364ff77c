package lines

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/page"
)

// flat returns the text of lines, joined with one space.
func flat(lines []page.Text) string {
	var parts []string
	for _, l := range lines {
		var b strings.Builder
		for _, s := range l {
			b.WriteString(s.Text)
		}
		parts = append(parts, b.String())
	}
	return strings.Join(parts, " ")
}

func TestProseWraps(t *testing.T) {
	for _, c := range []struct {
		name string
		p    page.Text
		w    int
		want []string
	}{
		{"at spaces", say(page.Body, "one two three"), 8, []string{"one two", "three"}},
		{"a word of two meanings stays whole", page.Join(say(page.Body, "say --max"), say(page.Accent, "-num 4")), 10, []string{"say", "--max-num", "4"}},
		{"a figure stays with its unit", say(page.Body, "about 12\u00a0% of it"), 9, []string{"about", "12\u00a0% of", "it"}},
		{"a percent sign stays with its number", say(page.Body, "about 12 % of it"), 9, []string{"about", "12\u00a0% of", "it"}},
		{"a word longer than the line", say(page.Body, "a/very/long/path"), 6, []string{"a/very", "/long/", "path"}},
		{"wide signs", say(page.Body, "模型名称"), 5, []string{"模型", "名称"}},
		{"a sign wider than the line", say(page.Body, "模"), 1, []string{"模"}},
		{"flags stay whole", say(page.Body, "change --max-num-seqs now"), 16, []string{"change", "--max-num-seqs", "now"}},
		{"nothing", nil, 5, []string{""}},
		{"no line feeds from outside", say(page.Body, "one\ntwo\x1b[2Jthree"), 40, []string{"one two\ufffd[2Jthree"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, l := range Wrap(c.p, c.w, c.w) {
				got = append(got, flat([]page.Text{l}))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestWrapLosesNothing wraps various texts to all widths: no line is too wide, and no letter is
// lost.
func TestWrapLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "b ", " ", "  ", "--flag", "模", "é", "µ", " %", "1,000\u00a0tok/s ", "x/y/z", "e\u0301"}
	tight := strings.NewReplacer(" ", "", "\u00a0", "")
	for range 400 {
		var p page.Text
		for range r.IntN(24) {
			p = page.Join(p, say(page.Tone(r.IntN(3)), alphabet[r.IntN(len(alphabet))]))
		}
		w := 2 + r.IntN(30)
		lines := Wrap(p, w, w)
		for _, l := range lines {
			if Width(l) > w {
				t.Fatalf("%q is wider than %d", flat([]page.Text{l}), w)
			}
		}
		if got, want := tight.Replace(flat(lines)), tight.Replace(flat([]page.Text{p})); got != want {
			t.Fatalf("width %d: got %q, want %q", w, got, want)
		}
		if c := Cut(p, w, "…"); Width(c) > w {
			t.Fatalf("cut to %d is %q", w, flat([]page.Text{c}))
		}
	}
}

func TestCutMarksWhatIsMissing(t *testing.T) {
	p := page.Join(say(page.Body, "output "), say(page.Accent, "1,230 tok/s"))
	for _, c := range []struct {
		w    int
		want string
	}{{30, "output 1,230 tok/s"}, {18, "output 1,230 tok/s"}, {13, "output 1,230…"}, {14, "output 1,230…"}, {1, "…"}, {0, ""}} {
		if got := flat([]page.Text{Cut(p, c.w, "…")}); got != c.want {
			t.Errorf("%d cells: got %q, want %q", c.w, got, c.want)
		}
	}
}

func TestSafeSpellsInSevenBits(t *testing.T) {
	if got, want := Safe("4 → 32: −3 µs, “模”", true), `4 -> 32: -3 us, "?"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func say(t page.Tone, text string) page.Text { return SafeText(page.Toned(t, text), false) }
