package vllm

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

// family is a row of vllm-families.csv: a metric family as the packages of the
// releases define it.
type family struct {
	name, core, kind string
	first, last      release
}

type release [3]int

func parseRelease(t *testing.T, s string) (r release) {
	t.Helper()
	for i, part := range strings.Split(s, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || i > 2 {
			t.Fatalf("release %q", s)
		}
		r[i] = n
	}
	return r
}

func families(t *testing.T) []family {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(shared(t, "vllm-families.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []family
	for _, row := range rows[1:] {
		out = append(out, family{strings.TrimPrefix(row[0], "vllm:"), row[1], row[2], parseRelease(t, row[3]), parseRelease(t, row[4])})
	}
	return out
}

// TestNamesAreThoseOfThePackages checks each name of the catalog, and its kind,
// against what the packages define.
func TestNamesAreThoseOfThePackages(t *testing.T) {
	kinds := map[string]string{}
	for _, f := range families(t) {
		kinds[f.name] = f.kind
	}
	// No release so far has the slots; rooftop reads them should one come.
	absent := []string{"max_num_seqs"}
	for _, m := range catalog.EngineOf(catalog.VLLM).Metrics() {
		if len(Dialect().TargetsOf(m.Key)) == 0 {
			t.Errorf("metric %s of the catalog feeds nothing", m.Key)
		}
		for _, name := range m.Names {
			kind, found := kinds[name]
			if !found {
				kind, found = kinds[strings.TrimSuffix(name, "_total")]
			}
			if !found {
				kind, found = kinds[name+"_total"]
			}
			if found == slices.Contains(absent, name) || (found && kind != string(m.Kind)) {
				t.Errorf("%s (%s, %s) is in the packages: %v, as %q", name, m.Key, m.Kind, found, kind)
			}
		}
	}
}

// TestEveryRelease builds the page of each release from the families that its
// package defines, and expects all the core readings of its engine.
func TestEveryRelease(t *testing.T) {
	all := families(t)
	releases := map[release]bool{}
	for _, f := range all {
		releases[f.first], releases[f.last] = true, true
	}
	for _, r := range slices.SortedFunc(maps.Keys(releases), compareReleases) {
		for _, core := range []string{"v0", "v1"} {
			var page strings.Builder
			for _, f := range all {
				if f.core == core && compareReleases(f.first, r) <= 0 && compareReleases(r, f.last) <= 0 {
					f.write(&page)
				}
			}
			if page.Len() == 0 {
				continue // V0 left with 0.11
			}
			t.Run(fmt.Sprintf("%d.%d.%d %s", r[0], r[1], r[2], core), func(t *testing.T) {
				p := read(t, []byte(page.String()))
				for _, g := range []engine.Gauge{engine.GaugeRunning, engine.GaugeWaiting, engine.GaugeKVUsage} {
					if !p.Gauges[g].OK {
						t.Errorf("no gauge %s", gaugeNames[g])
					}
				}
				counters := []engine.Counter{engine.CounterPromptTokens, engine.CounterGenerationTokens, engine.CounterRequestSuccess, engine.CounterPreemptions}
				if core == "v1" {
					counters = append(counters, engine.CounterPrefixQueries, engine.CounterPrefixHits)
				}
				for _, c := range counters {
					if p.Counters[c].V != 7 {
						t.Errorf("counter %s is %v, want 7", counterNames[c], p.Counters[c])
					}
				}
				for h := range engine.NumHists {
					if !p.Hists[h].OK || p.Hists[h].Count != 2 {
						t.Errorf("no histogram %s", histNames[h])
					}
				}
			})
		}
	}
}

func compareReleases(a, b release) int { return slices.CompareFunc(a[:], b[:], cmp.Compare[int]) }

// write puts a family on a page as the Python client writes it.
func (f family) write(page *strings.Builder) {
	labels := `engine="0",model_name="m"`
	if f.core == "v0" {
		labels = `model_name="m"`
	}
	name := "vllm:" + f.name
	switch f.kind {
	case "gauge":
		fmt.Fprintf(page, "# TYPE %s gauge\n%s{%s} 0.5\n", name, name, labels)
	case "counter":
		name = strings.TrimSuffix(name, "_total")
		fmt.Fprintf(page, "# TYPE %s_total counter\n%s_total{%s} 7\n# TYPE %s_created gauge\n%s_created{%s} 1.79e+09\n", name, name, labels, name, name, labels)
	case "histogram":
		fmt.Fprintf(page, "# TYPE %s histogram\n", name)
		for _, le := range []string{"1.0", "+Inf"} {
			fmt.Fprintf(page, "%s_bucket{%s,le=%q} 2\n", name, labels, le)
		}
		fmt.Fprintf(page, "%s_count{%s} 2\n%s_sum{%s} 1.5\n", name, labels, name, labels)
	}
}
