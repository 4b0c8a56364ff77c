package frame

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

func TestGrant(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks []Block
		h      int
		want   []int
	}{
		{"everything fits", []Block{{Lines: 2, Keep: 1}, {Lines: 3, Keep: 2}}, 6, []int{2, 3}},
		{"what matters least goes first", []Block{{Lines: 2, Keep: 9}, {Lines: 2, Keep: 1}, {Lines: 2, Keep: 5}}, 4, []int{2, 0, 2}},
		{"it is shortened before it goes", []Block{{Lines: 2, Keep: 9}, {Lines: 4, Least: 1, Keep: 1}}, 4, []int{2, 2}},
		{"shorter than its least it goes", []Block{{Lines: 2, Keep: 9}, {Lines: 4, Least: 3, Keep: 1}}, 4, []int{2, 0}},
		{"of equals the first goes", []Block{{Lines: 1, Keep: 3}, {Lines: 1, Keep: 3}}, 1, []int{0, 1}},
		{"spare lines go to what can grow", []Block{{Lines: 1, Keep: 1}, {Lines: 2, Grow: 5, Keep: 1}, {Lines: 1, Grow: 9, Keep: 1}}, 8, []int{1, 4, 3}},
		{"what is left out does not grow", []Block{{Lines: 3, Grow: 5, Keep: 1}, {Lines: 2, Keep: 2}}, 4, []int{0, 2}},
		{"no room", []Block{{Lines: 1, Keep: 1}}, 0, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, grant(c.blocks, c.h)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// letters returns a panel whose blocks are each filled with a letter.
func letters(title string, keep ...int) Panel {
	q := Panel{Title: title}
	for i, k := range keep {
		q.Blocks = append(q.Blocks, Block{Lines: 1, Keep: k, Draw: func(p cell.Pane) { p.Fill(cell.Body, string(rune('a'+i))) }})
	}
	return q
}

func TestColumnsAsDrawn(t *testing.T) {
	u := unicodeLook()
	panels := []Panel{letters("One", 90, 50), letters("Two", 80), {}}
	for _, c := range []struct {
		name   string
		h      int
		framed bool
		want   string
	}{
		{"headings and space", 6, false, `
── One ─────
aaaaaaaaaaaa
bbbbbbbbbbbb

── Two ─────
aaaaaaaaaaaa
`},
		{"space goes first", 5, false, `
── One ─────
aaaaaaaaaaaa
bbbbbbbbbbbb
── Two ─────
aaaaaaaaaaaa
`},
		{"then what matters least, then headings", 3, false, `
aaaaaaaaaaaa
── Two ─────
aaaaaaaaaaaa
`},
		{"frames", 7, true, `
╭─ One ────╮
│ aaaaaaaa │
│ bbbbbbbb │
╰──────────╯
╭─ Two ────╮
│ aaaaaaaa │
╰──────────╯
`},
		{"a frame goes with all that is in it", 5, true, `
╭─ One ────╮
│ aaaaaaaa │
│ bbbbbbbb │
╰──────────╯

`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sheet := cell.NewCanvas(12, c.h)
			u.Column(sheet.Pane(), panels, c.framed)
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), sheet.Plain()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func unicodeLook() *Settings { return &Settings{Glyphs: cell.Unicode()} }
