package render

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// TestLabelsAreNotCut checks that a centred label at the edge is right-aligned.
func TestLabelsAreNotCut(t *testing.T) {
	p := newPicture("x", "x", "", 10)
	p.label("", frameWidth-frameRight, 5, "middle", "600 µs")
	p.label("", 100, 5, "middle", "600 µs")
	if a, b := p.Labels[0], p.Labels[1]; a.Anchor != "end" || b.Anchor != "middle" {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestBarsLeaveRoomForTheirLabels checks that the label after the longest bar is not cut, and that waiting has a colour in both
// colour schemes.
func TestBarsLeaveRoomForTheirLabels(t *testing.T) {
	p := plotPicture(&page.Plot{ID: "share", X: page.Axis{To: .082}, Bars: []page.PlotBar{
		{Label: "flash_attn_ext", ValueLabel: "8.2 % · flash_attn_ext", Class: "waiting", To: .082},
		{Label: "ffn_up", ValueLabel: "8.0 % · q8_0", Class: "memory", To: .08},
	}})
	found := false
	for _, l := range p.Labels {
		x, err := strconv.ParseFloat(l.X, 64)
		if err != nil {
			t.Fatal(err)
		}
		if end := x + 7*float64(cell.Width(l.Text)); l.Anchor == "start" && end > frameWidth {
			t.Errorf("%q ends at %.0f of %.0f", l.Text, end, frameWidth)
		}
		found = found || strings.HasSuffix(l.Text, "flash_attn_ext") && l.Anchor == "start"
	}
	if !found {
		t.Errorf("no label is whole: %+v", p.Labels)
	}
	if p.Rects[0].Class != "waiting" {
		t.Errorf("what waits is %q", p.Rects[0].Class)
	}
	if !strings.Contains(pageHTML, "svg .waiting { fill: var(--waiting)") || strings.Count(pageHTML, "--waiting: #") != 2 {
		t.Error("what waits has no colour in both schemes")
	}
}
