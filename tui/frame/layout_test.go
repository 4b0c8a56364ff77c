package frame

import (
	"image"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parts returns the rectangles of a layout with names, in drawing order.
func (l *layout) parts() []struct {
	name string
	r    image.Rectangle
} {
	return []struct {
		name string
		r    image.Rectangle
	}{
		{"header", l.header}, {"tabs", l.tabs}, {"rule", l.upper}, {"banner", l.banner}, {"body", l.body},
		{"question", l.question}, {"tape", l.tape}, {"rule", l.lower}, {"footer", l.footer},
	}
}

// picture draws a layout: a box for each part, a line of text for each line of the terminal, at an
// eighth of its width.
func picture(l layout, w, h int) string {
	inner := w/8 - 2
	lines := make([]string, h)
	for _, part := range l.parts() {
		r := part.r
		for y := r.Min.Y; y < r.Max.Y; y++ {
			left, right, fill, text := "│", "│", " ", ""
			switch {
			case r.Dy() == 1:
				left, right, text = "[", "]", part.name
			case y == r.Min.Y:
				left, right, fill, text = "╭", "╮", "─", part.name
			case y == r.Max.Y-1:
				left, right, fill = "╰", "╯", "─"
			}
			if r.Min.X == 0 && r.Max.X == w && lines[y] == "" {
				lines[y] = left + text + strings.Repeat(fill, inner-len(text)) + right
			} else {
				lines[y] = "overlap or gap: " + part.name
			}
		}
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

func TestArrange(t *testing.T) {
	for _, c := range []struct {
		name string
		w, h int
		want bars
		draw string
	}{
		{"reference", 80, 24, bars{}, `
[header  ]
[tabs    ]
╭body────╮
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
╰────────╯
[footer  ]
`},
		{"the server died", 80, 24, bars{banner: 2}, `
[header  ]
[tabs    ]
╭banner──╮
╰────────╯
╭body────╮
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
│        │
╰────────╯
[footer  ]
`},
		{"everything on the lowest", 80, 16, bars{banner: 2, question: 3, tape: 1}, `
[header  ]
[tabs    ]
╭banner──╮
╰────────╯
╭body────╮
│        │
│        │
│        │
│        │
│        │
╰────────╯
╭question╮
│        │
╰────────╯
[tape    ]
[footer  ]
`},
		{"roomy, with a question and a recording", 120, 30, bars{question: 2, tape: 1}, `
[header       ]
[tabs         ]
[rule         ]
╭body─────────╮
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
│             │
╰─────────────╯
╭question─────╮
╰─────────────╯
[tape         ]
[rule         ]
[footer       ]
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.draw, picture(arrange(c.w, c.h, c.want), c.w, c.h)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestArrangeCoversTheTerminal checks at every size that parts touch and never overlap.
func TestArrangeCoversTheTerminal(t *testing.T) {
	for w := LeastWidth; w <= 240; w += 20 {
		for h := LeastHeight; h <= 80; h++ {
			for _, want := range []bars{{}, {banner: 1}, {banner: 2, question: 3, tape: 1}, {banner: 9, question: 9, tape: 9}} {
				l := arrange(w, h, want)
				next := 0
				for _, part := range l.parts() {
					if part.r.Empty() {
						continue
					}
					if part.r.Min != image.Pt(0, next) || part.r.Max.X != w {
						t.Fatalf("%dx%d %+v: %s at %v, want it from line %d over the whole width", w, h, want, part.name, part.r, next)
					}
					next = part.r.Max.Y
				}
				if next != h {
					t.Fatalf("%dx%d %+v: ends at line %d", w, h, want, next)
				}
				if l.body.Dy() < 7 {
					t.Fatalf("%dx%d %+v: %d lines for the view", w, h, want, l.body.Dy())
				}
			}
		}
	}
}
