package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// HostLoad is how the target's CPUs were used during a trace, from the kernel's counters per CPU
// and process, in steps of 10 ms. It covers the whole time, between graphs too, and does not
// resolve single moments.
type HostLoad struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	CPUs    int           `json:"cpus"` // number of CPUs in the target's affinity
	// Times are added up over these CPUs, except that Target, Rooftop and Kernel are those of
	// the target, of the tracing process and of the kernel's threads on all CPUs. Others is the
	// remaining time of programs, those that ended meanwhile included.
	Target  time.Duration `json:"target_ns"`
	Rooftop time.Duration `json:"rooftop_ns"`
	Kernel  time.Duration `json:"kernel_ns"`
	Others  time.Duration `json:"others_ns"`
	Idle    time.Duration `json:"idle_ns"`
	// CPULimit is the lowest CPU limit of the target's control group and its ancestors, in
	// CPUs, absent if there is none. Throttled is how long it stopped the target, in seconds,
	// and ThrottledPeriods in which share of its periods; absent if that cannot be read.
	CPULimit         stat.Opt `json:"cpu_limit_cores"`
	Throttled        stat.Opt `json:"throttled_s"`
	ThrottledPeriods stat.Opt `json:"throttled_periods_ratio"`
}

// Preempted describes the target while threads of it could have run and had no CPU.
type Preempted struct {
	Time OptTime `json:"time_ns"` // added up over threads, absent if scheduling was not traced
}

// CPUsOf returns how many CPUs a time corresponds to, over the elapsed time; 0 for a nil
// HostLoad.
func (h *HostLoad) CPUsOf(t time.Duration) float64 {
	if h == nil || h.Elapsed <= 0 {
		return 0
	}
	return float64(t) / float64(h.Elapsed)
}
