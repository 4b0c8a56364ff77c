package tui

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// BenchmarkFrame draws a view and paints it, as View does after each change.
func BenchmarkFrame(b *testing.B) {
	th := themeOf("dark", colorprofile.TrueColor)
	s := snapshotNamed(b, "waiting")
	for v := range numViews {
		for _, size := range [][2]int{{80, 24}, {200, 60}} {
			b.Run(fmt.Sprintf("%s-%dx%d", viewFile(v), size[0], size[1]), func(b *testing.B) {
				u := plainLook()
				u.view = v
				b.ReportAllocs()
				for b.Loop() {
					c, _ := frame(s, u, size[0], size[1])
					c.Render(th.paint)
				}
			})
		}
	}
	for name, v := range map[string]viewID{"trial": viewNow, "lost": viewHistory} {
		s := snapshotNamed(b, name)
		b.Run(fmt.Sprintf("auto-%s-%s-80x24", viewFile(v), name), func(b *testing.B) {
			u := plainLook()
			u.view = v
			b.ReportAllocs()
			for b.Loop() {
				c, _ := frame(s, u, 80, 24)
				c.Render(th.paint)
			}
		})
	}
}
