package lines

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/page"
)

// TestLaneColumns divides a hundred milliseconds into ten columns.
func TestLaneColumns(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	at := func(begin, end, sync, off int) page.Stretch {
		return page.Stretch{From: ms(begin), To: ms(end), Wait: ms(sync), Off: ms(off)}
	}
	for _, c := range []struct {
		name  string
		spans []page.Stretch
		want  string
	}{
		{"computes", []page.Stretch{at(0, 100, 0, 0)}, "##########"},
		{"nothing", nil, "          "},
		{"a gap between operators", []page.Stretch{at(0, 30, 0, 0), at(60, 100, 0, 0)}, "###   ####"},
		{"what waits waits at the end", []page.Stretch{at(0, 100, 40, 0)}, "######...."},
		{"what is off is off before it waits", []page.Stretch{at(0, 100, 20, 30)}, "#####xxx.."},
		{"a quarter of a column off is seen", []page.Stretch{at(0, 10, 0, 3), at(10, 100, 0, 2)}, "x#########"},
		{"the larger part of the others", []page.Stretch{at(0, 10, 6, 0), at(10, 20, 4, 0)}, ".#        "},
		{"beyond the graph", []page.Stretch{at(90, 900, 0, 0), at(200, 300, 0, 0), at(-10, 5, 0, 0)}, "         #"},
		{"more off than there is", []page.Stretch{at(0, 50, 0, 90)}, "xxxxx     "},
		{"times that are none", []page.Stretch{at(50, 20, 0, 0), at(0, 20, -5, -5)}, "##        "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for _, state := range laneColumns(c.spans, ms(100), 10) {
				b.WriteString(laneSigns(true)[state])
			}
			if b.String() != c.want {
				t.Errorf("%q, want %q", b.String(), c.want)
			}
		})
	}
	if got := laneColumns([]page.Stretch{at(0, 1, 0, 0)}, 0, 10); got != nil {
		t.Errorf("a graph without time has %v", got)
	}
}
