package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// TestEverySizeHoldsItsFrame draws every width from 20 to 240 at every height from 6 to 80 once, alternating states, views,
// overlays and glyphs: no line too wide, no frame too tall, never empty.
func TestEverySizeHoldsItsFrame(t *testing.T) {
	all, turn := builders(), 0
	keys := []string{"1", "2 down", "3", "4 down", "5 G", "6 up", "1", "a down", "y", "? down G", "3 q", "/ x y z", "c", "space"}
	for w := 20; w <= 240; w++ {
		for h := 6; h <= 80; h++ {
			if (w+h)%23 != 0 && !longtest.Tests {
				continue
			}
			f, pressed := all[turn%len(all)], keys[turn/len(all)%len(keys)]
			o := frame.Options{ASCII: turn%3 == 0}
			if turn%5 == 0 {
				o.Playback = &fakeTape{now: time.Minute, of: time.Hour, speed: 1}
			}
			turn++
			s := f.build()
			if s != nil && s.Advice == nil {
				s.Can[loop.CommandApply].OK = false
			}
			m, _, _ := testModel(s, o)
			m.Update(tea.WindowSizeMsg{Width: w, Height: h})
			m.View()
			press(m, pressed)
			if err := screentest.CheckFrame(screentest.TrimLines(ansi.Strip(m.Text)), w, h); err != nil {
				t.Fatalf("%s at %dx%d after %s: %v\n%s", f.name, w, h, pressed, err, ansi.Strip(m.Text))
			}
			if e := m.Extent; e.Lines < 0 || e.First > max(0, e.Lines-e.Page) {
				t.Fatalf("%s at %dx%d after %s: %+v", f.name, w, h, pressed, e)
			}
		}
	}
}
