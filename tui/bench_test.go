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
	for _, state := range []string{"waiting", "trial", "lost"} {
		s := snapshotNamed(b, state)
		for v := range numViews {
			b.Run(fmt.Sprintf("%s-%s", state, viewFile(v)), func(b *testing.B) {
				u := plainLook()
				u.View = v
				b.ReportAllocs()
				for b.Loop() {
					c, _ := drawRun(s, u, 200, 60)
					c.Render(th.Paint)
				}
			})
		}
	}
}
