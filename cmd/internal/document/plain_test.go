package document_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// golden compares got with a file of testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
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

func TestPlainGoldens(t *testing.T) {
	type variant struct {
		suffix string
		o      Options
	}
	variants := []variant{
		{"-80", Options{Options: render.Options{Width: 80}}},
	}
	more := []variant{
		{"-60", Options{Options: render.Options{Width: 60}}},
		{"-120", Options{Options: render.Options{Width: 120}}},
		{"-80-ascii", Options{Options: render.Options{Width: 80, ASCII: true}}},
		{"-80-v", Options{Options: render.Options{Width: 80, Verbose: true}}},
		{"-80-color", Options{Options: render.Options{Width: 80, Color: true}}},
		{"-80-classic", Options{Options: render.Options{Width: 80}, Classic: true}},
	}
	for _, name := range slices.Sorted(maps.Keys(states())) {
		list := variants
		if name == "slots" || name == "kv" {
			list = append(slices.Clone(variants), more...)
		}
		for _, v := range list {
			t.Run(name+v.suffix, func(t *testing.T) {
				var b bytes.Buffer
				if err := WritePlain(&b, states()[name](), v.o); err != nil {
					t.Fatal(err)
				}
				if !v.o.Color {
					checkWidth(t, b.String(), v.o.Width)
				}
				golden(t, name+v.suffix, b.Bytes())
			})
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {3297.4, "3,300"}, {884, "884"}, {999.6, "1,000"}, {12.44, "12.4"}, {3.1, "3.10"}, {.031, "0.0310"},
		{107432, "107,000"}, {-3297, "−3,300"}, {.00031, "3.10e−4"}, {1.234e15, "1.23e15"},
	} {
		t.Run(strconv.FormatFloat(c.v, 'g', -1, 64), func(t *testing.T) {
			if got := figure.Significant(c.v); got != c.want {
				t.Errorf("figure.Significant(%v) = %q, want %q", c.v, got, c.want)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{.0385, "s", "38.5 ms"}, {.9996, "s", "1.00 s"}, {.0000021, "s", "2.10 µs"}, {80.6, "s", "80.6 s"}, {0, "s", "0 s"},
		{.2214, "ratio", "22 %"}, {.9983, "ratio", "99.8 %"}, {.99996, "ratio", "100 %"}, {.0449, "ratio", "4.5 %"}, {0, "ratio", "0 %"}, {.0996, "ratio", "10 %"},
		{192.3e9, "B", "179 GiB"}, {1.0109, "USD", "$1.01"}, {.0412, "USD", "$0.0412"}, {24, "USD/h", "$24.00/h"}, {1250, "USD", "$1,250"},
		{127.93, "req", "128 req"}, {127.98, "req", "128 req"}, {3.24, "req", "3.2 req"}, {.2, "req", "0.2 req"}, {.0012, "req", "<0.1 req"}, {1134, "req", "1,134 req"}, {13.9, "1/s", "13.9/s"},
		{1, "bool", "yes"}, {0, "bool", "no"}, {71, "C", "71 °C"}, {.463, "J", "463 mJ"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := strings.ReplaceAll(figure.Show(some(c.v), c.unit), nbsp, " "); got != c.want {
				t.Errorf("figure.Show(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
			}
		})
	}
}
