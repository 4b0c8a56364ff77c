package frame

import (
	"image"
	"testing"
)

// TestArrangeCoversTheTerminal checks at every size that parts touch and never overlap.
func TestArrangeCoversTheTerminal(t *testing.T) {
	for w := LeastWidth; w <= 240; w += 20 {
		for h := LeastHeight; h <= 80; h++ {
			for _, want := range []bars{{}, {banner: 1}, {banner: 2, question: 3, tape: 1}, {banner: 9, question: 9, tape: 9}} {
				l := arrange(w, h, want)
				next := 0
				for i, r := range []image.Rectangle{l.header, l.tabs, l.upper, l.banner, l.body, l.question, l.tape, l.lower, l.footer} {
					if r.Empty() {
						continue
					}
					if r.Min != image.Pt(0, next) || r.Max.X != w {
						t.Fatalf("%dx%d %+v: part %d at %v, want it from line %d over the whole width", w, h, want, i, r, next)
					}
					next = r.Max.Y
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
