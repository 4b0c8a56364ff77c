package tui

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/frame"
)

// BenchmarkFrame draws and paints a view, as View does after each change.
func BenchmarkFrame(b *testing.B) {
	th := frame.ThemeOf("dark", colorprofile.TrueColor)
	s := snapshotNamed(b, "waiting")
	for v := range numViews {
		for _, size := range [][2]int{{80, 24}, {200, 60}} {
			b.Run(fmt.Sprintf("%s-%dx%d", viewFile(v), size[0], size[1]), func(b *testing.B) {
				u := plainLook()
				u.View = v
				b.ReportAllocs()
				for b.Loop() {
					c, _ := drawRun(s, u, size[0], size[1])
					c.Render(th.Paint)
				}
			})
		}
	}
	for name, v := range map[string]frame.ViewID{"trial": viewNow, "lost": viewHistory} {
		s := snapshotNamed(b, name)
		b.Run(fmt.Sprintf("auto-%s-%s-80x24", viewFile(v), name), func(b *testing.B) {
			u := plainLook()
			u.View = v
			b.ReportAllocs()
			for b.Loop() {
				c, _ := drawRun(s, u, 80, 24)
				c.Render(th.Paint)
			}
		})
	}
}
