package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// TestEverySizeHoldsItsFrame draws every state in every view at all small sizes
// and a grid of the others: no line too wide, no frame too tall, never empty.
func TestEverySizeHoldsItsFrame(t *testing.T) {
	var sizes [][2]int
	for w := 20; w <= 240; w++ {
		for h := 6; h <= 80; h++ {
			small := w <= leastWidth+2 && h <= leastHeight+2
			grid := w%44 == 36 && h%18 == 6 || w == 80 && h == 24 || w == 240 && h == 80
			if grid || small && (w+h)%3 == 0 {
				sizes = append(sizes, [2]int{w, h})
			}
		}
	}
	own := len(fixtures()) - len(autoFixtures())
	for i, f := range fixtures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range sizes {
				for v := range numViews {
					if size[0] < leastWidth && v > 0 {
						break // the summary is the same for all
					}
					if i >= own && v != viewNow && v != viewHistory {
						continue // the others are those of a run that somebody leads
					}
					for _, glyphs := range []cell.Glyphs{cell.Unicode(), cell.ASCII()} {
						u := &look{glyphs: glyphs, view: v}
						u.scroll[v] = 5 * int(v)
						c, e := frame(f.s, u, size[0], size[1])
						if err := holds(c.Plain(), size[0], size[1]); err != nil {
							t.Fatalf("%s at %dx%d: %v\n%s", views()[v].name, size[0], size[1], err, c.Plain())
						}
						if e.lines < 0 || e.first > max(0, e.lines-e.page) {
							t.Fatalf("%s at %dx%d: %+v", views()[v].name, size[0], size[1], e)
						}
					}
				}
			}
		})
	}
}

// TestAllSizesHoldTheirFrame draws every width from 20 to 240 at every height from
// 6 to 80 once, the states, views and glyphs taking turns.
func TestAllSizesHoldTheirFrame(t *testing.T) {
	all, turn := fixtures(), 0
	for w := 20; w <= 240; w++ {
		for h := 6; h <= 80; h++ {
			f, v := all[turn%len(all)], viewID(turn/len(all)%int(numViews))
			u := &look{glyphs: cell.Unicode(), view: v}
			if turn/3%2 == 0 {
				u.glyphs = cell.ASCII()
			}
			c, _ := frame(f.s, u, w, h)
			if err := holds(c.Plain(), w, h); err != nil {
				t.Fatalf("%s, %s at %dx%d: %v\n%s", f.name, views()[v].name, w, h, err, c.Plain())
			}
			turn++
		}
	}
}

// TestOverlaysHoldTheirFrame draws what lies over a view at small and large sizes.
func TestOverlaysHoldTheirFrame(t *testing.T) {
	for _, c := range []struct{ name, keys string }{
		{"long", "a"}, {"long", "y"}, {"long", "?"}, {"measuring", "q"}, {"worse", "?"}, {"waiting", "/ x y z"}, {"long", "c"}, {"long", "space"},
	} {
		t.Run(c.name+" "+c.keys, func(t *testing.T) {
			s := snapshotNamed(t, c.name)
			for _, w := range []int{20, 41, 60, 80, 120, 240} {
				for _, h := range []int{6, 11, 16, 17, 24, 60} {
					m, _, _ := testModel(s, Options{ASCII: w%2 == 0, Playback: &fakeTape{now: time.Minute, of: time.Hour, speed: 1}})
					m.Update(tea.WindowSizeMsg{Width: w, Height: h})
					m.View()
					press(m, c.keys+" down down G")
					if err := holds(trimLines(ansi.Strip(m.text)), w, h); err != nil {
						t.Fatalf("%dx%d: %v\n%s", w, h, err, ansi.Strip(m.text))
					}
				}
			}
		})
	}
}

// holds says what is wrong with a frame for a terminal of some size.
func holds(text string, w, h int) error {
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
