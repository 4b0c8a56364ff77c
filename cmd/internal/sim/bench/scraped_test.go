package bench

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// TestScrapeIntervals diagnoses scenarios by pages as a Prometheus server scrapes them, without GPU and
// health. A coarse interval may leave findings open, but no other wrong flag is recommended
// than by the same pages every 250 ms. Findings are counted against the direct diagnosis, which has GPU and
// health. A few scenarios at one interval unless SIMBENCH_SCRAPED has some:
//
//	SIMBENCH_SCRAPED=5s,15s,30s,60s go test -timeout 1h -run ScrapeIntervals -v ./cmd/internal/sim/bench
func TestScrapeIntervals(t *testing.T) {
	few := fast[1:3]
	if longtest.Tests {
		few = fast[:4]
	}
	list, err := settings.Select(few...)
	intervals := []time.Duration{15 * time.Second}
	if given := os.Getenv("SIMBENCH_SCRAPED"); given != "" {
		list, err = settings.All()
		intervals = nil
		for text := range strings.SplitSeq(given, ",") {
			every, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			intervals = append(intervals, every)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	// A fault that begins and ends in the middle of a short measurement has no place in a long one.
	list = slices.DeleteFunc(list, func(sc settings.Scenario) bool { return sc.Measure.For == 0 || len(sc.Faults)+len(sc.Restarts) > 0 })
	told := func(d *engine.Diagnosis) string {
		if r := d.Recommendation; r != nil {
			return string(r.Finding)
		}
		return string(d.Outcome)
	}
	diagnosed := func(t *testing.T, sc *settings.Scenario, every, length time.Duration) (Answer, string, string) {
		t.Helper()
		out, err := Run(sc, nil, Options{Seed: 1, For: length, Every: every})
		if err != nil || out.refused() {
			t.Fatalf("%s: %v %v", sc.Name, err, out)
		}
		flag := ""
		if r := out.Diagnosis.Recommendation; r != nil {
			flag = r.Flag
		}
		return answer(&sc.Truth, &out.Diagnosis), flag, told(&out.Diagnosis)
	}
	reference, direct := make([]string, len(list)), make([]string, len(list))
	if os.Getenv("SIMBENCH_SCRAPED") != "" {
		for i := range list {
			_, _, direct[i] = diagnosed(t, &list[i], 0, 5*time.Minute)
		}
	}
	count := func(t *testing.T, every time.Duration, judge func(i int, flag string, right bool)) {
		right, open := 0, 0
		confusion := map[string]int{}
		for i := range list {
			a, flag, is := diagnosed(t, &list[i], every, max(5*time.Minute, 20*every))
			judge(i, flag, len(a.Faults) == 0)
			confusion[direct[i]+" → "+is]++
			switch {
			case len(a.Faults) == 0:
				right++
			case flag == "":
				open++
				t.Logf("open: %s: %s", list[i].Name, strings.Join(a.Faults, "; "))
			default:
				t.Logf("another flag than the truth: %s: %s", list[i].Name, strings.Join(a.Faults, "; "))
			}
		}
		for _, row := range slices.Sorted(maps.Keys(confusion)) {
			t.Logf("every %v: %s × %d", every, row, confusion[row])
		}
		t.Logf("every %v: %d right, %d open, %d with another flag", every, right, open, len(list)-right-open)
	}
	count(t, engine.PollInterval, func(i int, flag string, _ bool) { reference[i] = flag })
	for _, every := range intervals {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			count(t, every, func(i int, flag string, right bool) {
				if !right && flag != "" && flag != reference[i] {
					t.Errorf("%s: recommends %s, by polls every 250 ms %q", list[i].Name, flag, reference[i])
				}
			})
		})
	}
}
