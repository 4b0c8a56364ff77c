package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// golden compares got with a file of testdata, or rewrites it.
func golden(t *testing.T, name string, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *screentest.Update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// checkWidth fails if a line is too wide.
func checkWidth(t *testing.T, page string, cells int) {
	t.Helper()
	for i, l := range strings.Split(page, "\n") {
		if n := cell.Width(l); n > cells {
			t.Errorf("line %d is %d cells wide, limit %d: %q", i+1, n, cells, l)
		}
	}
}

// Numbers are spelled with three figures, and quantities in the unit that a reader expects.
func TestNumbersAndAmounts(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {3297.4, "3,300"}, {884, "884"}, {999.6, "1,000"}, {12.44, "12.4"}, {3.1, "3.10"}, {.031, "0.0310"},
		{107432, "107,000"}, {-3297, "−3,300"}, {.00031, "3.10e−4"}, {1.234e15, "1.23e15"},
	} {
		if got := figure.Significant(c.v); got != c.want {
			t.Errorf("figure.Significant(%v) = %q, want %q", c.v, got, c.want)
		}
	}
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{.0385, "s", "38.5 ms"}, {.9996, "s", "1.00 s"}, {.0000021, "s", "2.10 µs"}, {80.6, "s", "80.6 s"}, {0, "s", "0 s"},
		{.2214, "ratio", "22 %"}, {.9983, "ratio", "99.8 %"}, {.99996, "ratio", "100 %"}, {.0449, "ratio", "4.5 %"}, {0, "ratio", "0 %"}, {.0996, "ratio", "10 %"},
		{192.3e9, "B", "179 GiB"}, {1.0109, "USD", "$1.01"}, {.0412, "USD", "$0.0412"}, {24, "USD/h", "$24.00/h"}, {1250, "USD", "$1,250"},
		{127.98, "req", "128 req"}, {3.24, "req", "3.2 req"}, {.0012, "req", "<0.1 req"}, {1134, "req", "1,134 req"}, {13.9, "1/s", "13.9/s"},
		{1, "bool", "yes"}, {0, "bool", "no"}, {71, "C", "71 °C"}, {.463, "J", "463 mJ"},
	} {
		if got := strings.ReplaceAll(figure.Show(some(c.v), c.unit), figure.NBSP, " "); got != c.want {
			t.Errorf("figure.Show(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0 s", 400 * time.Millisecond: "0 s", 59600 * time.Millisecond: "1 min", 252 * time.Second: "4 min 12 s",
		time.Hour: "1 h", 7499 * time.Second: "2 h 4 min", -time.Second: "0 s",
	} {
		if got := strings.ReplaceAll(figure.Elapsed(d), figure.NBSP, " "); got != want {
			t.Errorf("figure.Elapsed(%v) = %q, want %q", d, got, want)
		}
	}
}
