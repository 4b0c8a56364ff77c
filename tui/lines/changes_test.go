package lines

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

func TestChangesRow(t *testing.T) {
	for _, c := range []struct {
		name           string
		must, rest     []Stretch
		band, interval Stretch
		mid            float64
		ascii          bool
		want           string
	}{
		{"both", []Stretch{{0.2, 0.35}, {0.24, 0.33}}, nil, Stretch{0.2, 0.35}, Stretch{0.24, 0.33}, 0.29, false,
			"│                   ░░░░├════◆═══┤░░\n0 %     +10 %     +20 %     +30 %   +40 %"},
		{"beyond the prediction", []Stretch{{0.1, 0.2}, {0.05, 0.3}}, nil, Stretch{0.1, 0.2}, Stretch{0.05, 0.3}, 0.15, true,
			"|      +-----=======O=======------------+\n0 %        +10 %         +20 %      +30 %"},
		{"wider than the axis", []Stretch{{-0.02, 0.05}}, []Stretch{{-0.9, 3}}, EmptyStretch(), Stretch{-0.9, 3}, 0, false,
			"<───────────────────◆───────────────────>\n−20 %   −10 %      0 %      +10 %   +20 %"},
		{"nothing known", nil, nil, EmptyStretch(), EmptyStretch(), 0, false,
			"                    │\n−1 %    −0.5 %     0 %      +0.5 %   +1 %"},
		{"no numbers", []Stretch{{math.NaN(), math.Inf(1)}}, nil, Stretch{0, math.Inf(1)}, EmptyStretch(), math.NaN(), false,
			"                    │\n−1 %    −0.5 %     0 %      +0.5 %   +1 %"},
		{"worse", []Stretch{{-0.8, -0.7}}, nil, EmptyStretch(), Stretch{-0.8, -0.7}, -0.75, false,
			"├──◆─┤                                  │\n−80 %   −60 %     −40 %     −20 %     0 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			glyphs := cell.Unicode()
			if c.ascii {
				glyphs = cell.ASCII()
			}
			canvas := cell.NewCanvas(41, 2)
			axis := NewChanges(c.must, c.rest)
			axis.Row(canvas.Pane(), glyphs, c.band, c.interval, c.mid, cell.Trial)
			axis.Axis(canvas.Pane().Sub(0, 1, 41, 1))
			got := strings.TrimSuffix(canvas.Plain(), "\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, got)
			}
		})
	}
}
