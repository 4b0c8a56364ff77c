package capture

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// steady returns one process with the given milliseconds of CPU time in each interval of 50 ms.
func steady(used ...int) *Tree {
	t := &Tree{Processes: []Process{{PID: 7, Comm: "it", Role: "server"}}}
	sum := 0
	for k, u := range append([]int{0}, used...) {
		sum += u
		t.Samples = append(t.Samples, TreeSample{At: time.Duration(k) * 50 * ms, Walked: k%10 == 0, Processes: []ProcessSample{{CPU: time.Duration(sum) * ms, RSSBytes: int64(1000 + k), Threads: 3}}})
	}
	return t
}

func TestUsageOfCPU(t *testing.T) {
	tests := []struct {
		name       string
		tree       *Tree
		begin, end time.Duration
		mean, peak stat.Opt
		samples    int
		reason     string // part of it
	}{
		{"even", steady(25, 25, 25, 25, 25, 25, 25, 25), 0, 400 * ms, stat.Some(0.5), stat.Some(0.5), 9, ""},
		{"a burst counts over 200 ms", steady(0, 0, 0, 0, 100, 0, 0, 0), 0, 400 * ms, stat.Some(0.25), stat.Some(0.5), 9, ""},
		{"the looks around the run", steady(50, 25, 25, 25, 25, 50), 60 * ms, 240 * ms, stat.Some(0.5), stat.Some(0.5), 5, ""},
		{"a run between two looks", steady(50, 25, 50), 60 * ms, 90 * ms, stat.Some(0.5), stat.None, 2, "shorter than 200 ms"},
		{"more than was looked at", steady(25, 25, 25, 25), -time.Second, time.Hour, stat.Some(0.5), stat.Some(0.5), 5, ""},
		{"one look", steady(), 0, time.Second, stat.None, stat.None, 1, "needs two"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			row := tt.tree.Usage(tt.begin, tt.end).Total.CPU
			if !same(row.Mean, tt.mean) || !same(row.Peak, tt.peak) || row.Samples != tt.samples {
				t.Errorf("CPU %+v; want mean %v, peak %v over %d looks", row, tt.mean, tt.peak, tt.samples)
			}
			if (tt.reason == "") != (row.Reason == "") || !strings.Contains(row.Reason, tt.reason) {
				t.Errorf("reason %q, want %q", row.Reason, tt.reason)
			}
		})
	}
}

func same(a, b stat.Opt) bool { return a.OK == b.OK && math.Abs(a.V-b.V) < 1e-9 }

// TestPeakReachesBack covers time that appears at once but was used over a longer period: a child
// that lived between two searches for children, and one that was found late.
func TestPeakReachesBack(t *testing.T) {
	unseen := steady(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	unseen.Samples[10].Walked = false
	for k := 9; k <= 11; k++ {
		unseen.Samples[k].Processes[0].Reaped = 400 * ms
	}
	if got := unseen.Usage(0, time.Second).Total.CPU.Peak; !same(got, stat.Some(400.0/450)) {
		t.Errorf("peak %v; want 400 ms of CPU over the 450 ms since children were looked for", got)
	}
	late := steady(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	late.Processes = append(late.Processes, Process{PID: 8, Role: "worker"})
	for k := 10; k <= 11; k++ {
		late.Samples[k].Processes = append(late.Samples[k].Processes, ProcessSample{Process: 1, CPU: 450 * ms})
	}
	if got := late.Usage(0, time.Second).Total.CPU.Peak; !same(got, stat.Some(0.9)) {
		t.Errorf("peak %v; want 450 ms of CPU over the 500 ms since children were looked for", got)
	}
}

// TestLevelOfComingAndGoing has a child in each sample that searches for children, which is gone in
// the next one: the sampler cannot see new children between these, though there is always one.
func TestLevelOfComingAndGoing(t *testing.T) {
	tree := &Tree{Processes: []Process{{PID: 1, Role: "server"}}}
	for k := range 41 {
		look := TreeSample{At: time.Duration(k) * 50 * ms, Walked: k%10 == 0, Processes: []ProcessSample{{RSSBytes: 1000, Threads: 5}}}
		if look.Walked {
			look.Processes = append(look.Processes, ProcessSample{Process: len(tree.Processes), RSSBytes: 100, Threads: 1})
			tree.Processes = append(tree.Processes, Process{PID: 2 + k, Role: "child"})
		}
		tree.Samples = append(tree.Samples, look)
	}
	u := tree.Usage(0, 2*time.Second)
	if !same(u.Total.RSS.Mean, stat.Some(1100)) || !same(u.Total.Threads.Mean, stat.Some(6)) || u.Total.RSS.Samples != 41 {
		t.Errorf("RSS %+v, threads %+v; want the mean of the looks that saw all: 1100 and 6", u.Total.RSS, u.Total.Threads)
	}
	if server := u.Processes[0]; !same(server.RSS.Mean, stat.Some(1000)) {
		t.Errorf("the server's RSS %+v", server.RSS)
	}
}

func TestUsageByRole(t *testing.T) {
	opt := stat.Some
	tree := &Tree{
		Processes: []Process{
			{PID: 1, Comm: "vllm", Role: "api-server"}, {PID: 2, Title: "VLLM::Worker", Comm: "python", Role: "worker"}, {PID: 3, Comm: "python", Role: "worker"},
		},
		Samples: []TreeSample{
			{At: 0, Walked: true, Processes: []ProcessSample{
				{Process: 0, RSSBytes: 100, Threads: 5, RunWaitSeconds: opt(1)}, {Process: 1, RSSBytes: 1000, Threads: 20},
			}},
			{At: 50 * ms, Processes: []ProcessSample{
				{Process: 0, RSSBytes: 100, Threads: 5, CPU: 10 * ms}, {Process: 1, RSSBytes: 1200, Threads: 20, CPU: 50 * ms},
			}},
			{At: 550 * ms, Walked: true, Partial: true, Processes: []ProcessSample{
				{Process: 0, RSSBytes: 100, Threads: 5, CPU: 30 * ms}, {Process: 1, RSSBytes: 1200, Threads: 22, CPU: 300 * ms}, {Process: 2, RSSBytes: 700, Threads: 1, CPU: 200 * ms},
			}},
			{At: 600 * ms, Walked: true, Processes: []ProcessSample{
				{Process: 0, RSSBytes: 100, Threads: 5, CPU: 30 * ms, RunWaitSeconds: opt(1.5)}, {Process: 1, RSSBytes: 1200, Threads: 22, CPU: 300 * ms}, {Process: 2, RSSBytes: 700, Threads: 1, CPU: 200 * ms, RunWaitSeconds: opt(0.25)},
			}},
		},
	}
	u := tree.Usage(50*ms, 550*ms)
	if u.Samples != 4 || u.Partial != 1 || u.Failed != 0 || len(u.Processes) != 3 || len(u.Roles) != 2 {
		t.Fatalf("usage %+v", u)
	}
	worker := u.Roles[1]
	if worker.Name != "worker" || worker.Count != 2 || !same(worker.RSS.Peak, opt(1900)) || !same(worker.RSS.Mean, opt(1550)) || !same(worker.Threads.Peak, opt(23)) {
		t.Errorf("workers %+v", worker)
	}
	if !same(worker.CPUSeconds, opt(0.45)) || !same(worker.CPU.Mean, opt(0.9)) {
		t.Errorf("workers' CPU %+v; want 250 ms and the 200 ms of one that joined", worker.CPU)
	}
	if !same(u.Total.CPUSeconds, opt(0.47)) || !same(u.Total.RSS.Peak, opt(2000)) || u.Processes[1].Name != "VLLM::Worker" {
		t.Errorf("total %+v", u.Total)
	}
	if api, late := u.Processes[0], u.Processes[2]; !same(api.RunWaitSeconds, opt(0.5)) || !same(late.RunWaitSeconds, opt(0.25)) {
		t.Errorf("waited %v, and %v of one that joined", api.RunWaitSeconds, late.RunWaitSeconds)
	}
	if u.Total.RunWaitSeconds.OK || worker.RunWaitSeconds.OK {
		t.Errorf("waited %v in all, though that of one process is not known", u.Total.RunWaitSeconds)
	}
}

// TestRunWaitIsWholeOrAbsent: a thread that ends takes its waiting time along, so that the sum of its
// process falls.
func TestRunWaitIsWholeOrAbsent(t *testing.T) {
	for _, c := range []struct {
		name              string
		first, last, want stat.Opt
	}{
		{"every thread lives", stat.Some(100), stat.Some(100.5), stat.Some(0.5)},
		{"a thread ended", stat.Some(100), stat.Some(3), stat.None},
		{"unknown at the start", stat.None, stat.Some(3), stat.None},
	} {
		tree := steady(25)
		tree.Processes = append(tree.Processes, Process{PID: 8, Role: "ended"})
		tree.Samples[0].Processes = append(tree.Samples[0].Processes, ProcessSample{Process: 1, Threads: 1, RunWaitSeconds: stat.Some(7)})
		tree.Samples[0].Processes[0].RunWaitSeconds, tree.Samples[1].Processes[0].RunWaitSeconds = c.first, c.last
		u := tree.Usage(0, 50*ms)
		if ended := u.Processes[1].RunWaitSeconds; !same(u.Total.RunWaitSeconds, c.want) || ended.OK {
			t.Errorf("%s: waited %v, want %v; one that ended %v", c.name, u.Total.RunWaitSeconds, c.want, ended)
		}
		tree.Samples = tree.Samples[:1]
		if got := tree.Usage(0, 50*ms).Total.RunWaitSeconds; got.OK {
			t.Errorf("%s: waited %v between one sample and itself", c.name, got)
		}
	}
}

func TestCgroupUsage(t *testing.T) {
	opt := stat.Some
	tree := &Tree{Samples: []TreeSample{{}}, Cgroups: []CgroupSample{
		{Path: "/a", Periods: opt(100), ThrottledPeriods: opt(0), ThrottledSeconds: opt(2)},
		{Path: "/a", Periods: opt(120), ThrottledPeriods: opt(5), ThrottledSeconds: opt(2.5), CPULimitCores: opt(2)},
	}}
	want := &CgroupUsage{Path: "/a", ThrottledSeconds: opt(0.5), ThrottledShare: opt(0.25), CPULimitCores: opt(2)}
	if diff := cmp.Diff(want, tree.Usage(0, time.Second).Cgroup); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tree.Cgroups[1].Path = "/b"
	if got := tree.Usage(0, time.Second).Cgroup; got.ThrottledShare.OK {
		t.Errorf("growth between two groups: %+v", got)
	}
}
