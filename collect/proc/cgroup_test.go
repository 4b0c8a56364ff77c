package proc

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// cgroups starts a sampler of process 10 with children in the given control groups.
// mountinfo has the directory of the mounts in place of DIR.
func cgroups(t *testing.T, cgroup, mountinfo string, files map[string]string) capture.CgroupSample {
	t.Helper()
	f := mount(t, fake{pid: 10, ppid: 1, argv: []string{"a"}}, fake{pid: 11, ppid: 10, argv: []string{"b"}}, fake{pid: 12, ppid: 1, argv: []string{"c"}})
	for pid, ppid := range map[int]int{10: 1, 11: 10, 12: 1} {
		use(t, f, pid, counts{ppid: ppid, start: pid})
	}
	dir := t.TempDir()
	for name, text := range files {
		put(t, dir, name, text)
	}
	put(t, f.root, "10/cgroup", cgroup)
	put(t, f.root, "self/mountinfo", fmt.Sprintf(mountinfo, dir))
	s, err := f.NewSampler(10, clockOf(new(time.Duration)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Deep()
	tree := s.Tree()
	if len(tree.Cgroups) != 1 {
		return capture.CgroupSample{}
	}
	return tree.Cgroups[0]
}

func TestCgroups(t *testing.T) {
	const (
		v2     = "30 23 0:26 / %[1]s rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n25 23 0:6 / /x rw - tmpfs - rw\n24 23 0:5 / /proc rw - proc proc rw\n"
		inside = "30 23 0:26 /docker/abc %[1]s rw - cgroup2 cgroup2 rw\n"
		v1     = "31 23 0:27 / %[1]s/cpu rw - cgroup cgroup rw,cpu\n"
	)
	tests := []struct {
		name, cgroup, mounts string
		files                map[string]string
		want                 capture.CgroupSample
	}{
		{"version 2", "0::/s/llm\n", v2, map[string]string{
			"s/llm/cpu.stat": "usage_usec 2500000\nnr_periods 8\nnr_throttled 2\nthrottled_usec 500000\n",
			"s/llm/cpu.max":  "150000 100000\n", "s/cpu.max": "max 100000\n",
		}, capture.CgroupSample{Path: "/s/llm", Periods: stat.Some(8), ThrottledPeriods: stat.Some(2), ThrottledSeconds: stat.Some(0.5), CPULimitCores: stat.Some(1.5)}},
		{"the limit is above", "0::/s/llm\n", v2, map[string]string{
			"s/llm/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n", "s/llm/cpu.max": "400000 100000\n",
			"s/cpu.stat": "nr_periods 50\nnr_throttled 40\nthrottled_usec 3000000\n", "s/cpu.max": "100000 100000\n",
		}, capture.CgroupSample{Path: "/s/llm", Periods: stat.Some(50), ThrottledPeriods: stat.Some(40), ThrottledSeconds: stat.Some(3), CPULimitCores: stat.Some(1)}},
		{"seen from inside of a container", "0::/docker/abc/x\n", inside, map[string]string{"x/cpu.stat": "nr_periods 7\n"}, capture.CgroupSample{Path: "/docker/abc/x", Periods: stat.Some(7)}},
		{"outside of what is mounted", "0::/other\n", inside, nil, capture.CgroupSample{}},
		{"outside of our namespace", "0::/../other\n", "30 23 0:26 / %s/m rw - cgroup2 cgroup2 rw\n", map[string]string{"other/cpu.stat": "nr_periods 7\n", "m/cpu.stat": "nr_periods 8\n"}, capture.CgroupSample{}},
		{"version 1 without a quota", "9:name=systemd:/\n4:memory:/m/x\n1:cpu:/c\n0::/\n", v1, map[string]string{
			"cpu/c/cpu.cfs_quota_us": "-1\n", "cpu/c/cpu.cfs_period_us": "100000\n", "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n",
			"cpu/c/cpu.stat": "nr_periods 3\nnr_throttled 1\nthrottled_time 250000000\n",
		}, capture.CgroupSample{Path: "/c", Periods: stat.Some(3), ThrottledPeriods: stat.Some(1), ThrottledSeconds: stat.Some(0.25)}},
		{"version 1 with a quota", "2:cpu,cpuacct:/c\n", "31 23 0:27 / %s rw - cgroup cgroup rw,cpu,cpuacct\n", map[string]string{
			"c/cpu.cfs_quota_us": "250000\n", "c/cpu.cfs_period_us": "100000\n",
		}, capture.CgroupSample{Path: "/c", CPULimitCores: stat.Some(2.5)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, cgroups(t, tt.cgroup, tt.mounts, tt.files)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
