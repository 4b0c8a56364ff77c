package tui

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// TestEverySizeHoldsItsFrame draws every state in every view at small sizes and a grid of larger
// ones: no line too wide, no frame too tall, never empty.
func TestEverySizeHoldsItsFrame(t *testing.T) {
	var sizes [][2]int
	every, wide := 23, 88
	if longtest.Tests {
		every, wide = 1, 44
	}
	for w := 20; w <= 240; w++ {
		for h := 6; h <= 80; h++ {
			small := w <= frame.LeastWidth+2 && h <= frame.LeastHeight+2
			grid := w%wide == 36 && h%18 == 6 || w == 80 && h == 24 || w == 240 && h == 80
			if grid || small && (w+h)%every == 0 {
				sizes = append(sizes, [2]int{w, h})
			}
		}
	}
	own := len(builders()) - len(autoBuilders())
	for i, f := range fixtures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range sizes {
				for v := range numViews {
					if size[0] < frame.LeastWidth && v > 0 {
						break // the summary is the same for all
					}
					if i >= own && v != viewNow && v != viewHistory {
						continue // the others are those of a run that somebody leads
					}
					for _, glyphs := range []cell.Glyphs{cell.Unicode(), cell.ASCII()} {
						u := &frame.Settings{Glyphs: glyphs, View: v}
						u.Scroll[v] = 5 * int(v)
						c, e := drawRun(f.s, u, size[0], size[1])
						if err := screentest.CheckFrame(c.Plain(), size[0], size[1]); err != nil {
							t.Fatalf("%s at %dx%d: %v\n%s", views()[v].name, size[0], size[1], err, c.Plain())
						}
						if e.Lines < 0 || e.First > max(0, e.Lines-e.Page) {
							t.Fatalf("%s at %dx%d: %+v", views()[v].name, size[0], size[1], e)
						}
					}
				}
			}
		})
	}
}

// TestAllSizesHoldTheirFrame draws every width from 20 to 240 at every height from 6 to 80 once,
// alternating states, views and glyphs.
func TestAllSizesHoldTheirFrame(t *testing.T) {
	all, turn := fixtures(), 0
	for w := 20; w <= 240; w++ {
		for h := 6; h <= 80; h++ {
			if turn++; !longtest.Tests && (w+h)%23 != 0 {
				continue
			}
			f, v := all[turn%len(all)], frame.ViewID(turn/len(all)%int(numViews))
			u := &frame.Settings{Glyphs: cell.Unicode(), View: v}
			if turn/3%2 == 0 {
				u.Glyphs = cell.ASCII()
			}
			c, _ := drawRun(f.s, u, w, h)
			if err := screentest.CheckFrame(c.Plain(), w, h); err != nil {
				t.Fatalf("%s, %s at %dx%d: %v\n%s", f.name, views()[v].name, w, h, err, c.Plain())
			}
		}
	}
}

// TestOverlaysHoldTheirFrame draws overlays at small and large sizes.
func TestOverlaysHoldTheirFrame(t *testing.T) {
	for _, c := range []struct{ name, keys string }{
		{"long", "a"}, {"long", "y"}, {"long", "?"}, {"measuring", "q"}, {"worse", "?"}, {"waiting", "/ x y z"}, {"long", "c"}, {"long", "space"},
	} {
		t.Run(c.name+" "+c.keys, func(t *testing.T) {
			s := snapshotNamed(t, c.name)
			for j, w := range []int{20, 41, 60, 80, 119, 240} {
				for i, h := range []int{6, 11, 16, 17, 24, 60} {
					if !longtest.Tests && (i+j)%2 != 0 {
						continue
					}
					m, _, _ := testModel(s, frame.Options{ASCII: w%2 == 0, Playback: &fakeTape{now: time.Minute, of: time.Hour, speed: 1}})
					m.Update(tea.WindowSizeMsg{Width: w, Height: h})
					m.View()
					press(m, c.keys+" down down G")
					if err := screentest.CheckFrame(screentest.TrimLines(ansi.Strip(m.Text)), w, h); err != nil {
						t.Fatalf("%dx%d: %v\n%s", w, h, err, ansi.Strip(m.Text))
					}
				}
			}
		})
	}
}
