package capture

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestStarvation covers the runs from which the limits were derived, on a machine with two cores,
// and artificial ones.
func TestStarvation(t *testing.T) {
	const s = figure.NBSP + "s"
	throttled := func(share float64) *CgroupUsage {
		return &CgroupUsage{ThrottledShare: stat.Some(share), ThrottledSeconds: stat.Some(3.2), CPULimitCores: stat.Some(1.5)}
	}
	tests := []struct {
		name        string
		ran, waited stat.Opt
		span        float64 // seconds
		cgroup      *CgroupUsage
		outside     bool
		want        []string // IDs
		says        []string
	}{
		{"vLLM that keeps two cores busy", stat.Some(15.7), stat.Some(2.75), 8.09, nil, false, nil, nil},
		{"llama.cpp", stat.Some(2.07), stat.Some(0.119), 1.07, nil, false, nil, nil},
		{"a server at rest", stat.Some(0.01), stat.Some(0.02), 10, nil, false, nil, nil},
		{"a server that does little and waits a little", stat.Some(0.5), stat.Some(2.9), 10, nil, false, nil, nil},
		{"at the limit", stat.Some(8), stat.Some(4), 8, nil, false, nil, nil},
		{"beside a busy program", stat.Some(8.11), stat.Some(8.47), 7.94, nil, false, []string{"cpu-starved"},
			[]string{"the server's threads waited 8.47" + s + " for a CPU and ran for 8.11" + s, "other programs share its cores", "top"}},
		{"beside two", stat.Some(19.4), stat.Some(24.2), 22, nil, false, []string{"cpu-starved"},
			[]string{"the server's threads waited 24.2" + s + " for a CPU and ran for 19.4" + s + ": other programs share its cores"}},
		{"more threads than cores", stat.Some(15.6), stat.Some(60), 8, nil, false, []string{"cpu-starved"}, []string{"to itself", "OMP_NUM_THREADS"}},
		{"a part of the server", stat.Some(8.11), stat.Some(8.47), 7.94, nil, true, []string{"cpu-starved"}, []string{"the tree's threads"}},
		{"a limit that holds it up", stat.Some(12), stat.Some(11), 8, throttled(0.6), false, []string{"cpu-throttled", "cpu-starved"},
			[]string{"60" + figure.NBSP + "% of its periods, 3.20" + s, "its limit is 1.50" + figure.NBSP + "cores", "the limit of its control group delays them"}},
		{"a limit, and waiting is unknown", stat.Some(12), stat.None, 8, throttled(0.3), false, []string{"cpu-throttled"}, []string{"docker update --cpus"}},
		{"a limit that is hardly met", stat.Some(11), stat.Some(1), 8, throttled(0.1), false, nil, nil},
		{"a limit that cannot be read", stat.Some(11), stat.Some(1), 8, &CgroupUsage{ThrottledShare: stat.Some(0.4)}, false, []string{"cpu-throttled"}, []string{"cannot be read"}},
		{"a run too short to judge", stat.Some(0.1), stat.Some(0.2), 0.15, throttled(0.9), false, nil, nil},
		{"a kernel that does not report it", stat.Some(8), stat.None, 8, nil, false, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Capture{End: time.Duration(tt.span * float64(time.Second)), Tree: Tree{Root: 7, CPUs: 2, Processes: []Process{{PID: 7}}}}
			if tt.outside {
				c.Tree.Listener.PID = 9
			}
			got := starvation(&c, &TreeUsage{Total: ProcessUsage{CPUSeconds: tt.ran, RunWaitSeconds: tt.waited}, Cgroup: tt.cgroup})
			checkWarnings(t, got, tt.want, tt.says)
		})
	}
	if got := starvation(new(Capture), nil); got != nil {
		t.Errorf("%v of no tree", got)
	}
}

// TestWaitingAroundAShortRun has samples far outside the run: waiting there does not belong to the
// run.
func TestWaitingAroundAShortRun(t *testing.T) {
	c := Capture{Begin: 2 * time.Second, End: 3 * time.Second, Tree: Tree{Processes: []Process{{PID: 7}}, Samples: []TreeSample{{}, {At: 8 * time.Second}}}}
	if got := starvation(&c, &TreeUsage{Total: ProcessUsage{CPUSeconds: stat.Some(1), RunWaitSeconds: stat.Some(2)}}); got != nil {
		t.Error(got)
	}
}

// checkWarnings compares warnings with IDs, and their texts with parts.
func checkWarnings(t *testing.T, got []Warning, want, says []string) {
	t.Helper()
	var ids []string
	all := ""
	for _, w := range got {
		ids = append(ids, w.ID)
		all += w.Text + "\n"
	}
	if strings.Join(ids, " ") != strings.Join(want, " ") {
		t.Fatalf("warnings %v, want %v", got, want)
	}
	for _, part := range says {
		if !strings.Contains(all, part) {
			t.Errorf("%q does not say %q", all, part)
		}
	}
}
