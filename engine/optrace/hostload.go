package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// HostLoad is who had the CPUs that the target may use while a trace was recorded, by what
// the kernel counts for each CPU and each process, in steps of 10 ms. It tells nothing of
// single moments: what was between graphs is in it too.
type HostLoad struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	CPUs    int           `json:"cpus"` // that the target may use, by its affinity
	// Times are added up over these CPUs; Target, Rooftop and Kernel are those of the target,
	// of the process that traced and of the kernel's own threads on all CPUs. Others is what
	// is left of programs: all processes beside them, those that ended meanwhile too.
	Target  time.Duration `json:"target_ns"`
	Rooftop time.Duration `json:"rooftop_ns"`
	Kernel  time.Duration `json:"kernel_ns"`
	Others  time.Duration `json:"others_ns"`
	Idle    time.Duration `json:"idle_ns"`
	// Processes are those of Others that took most and may use one of these CPUs, largest
	// first.
	Processes []ProcessLoad `json:"processes"`
	// CPULimit is the limit of CPU time of the target's control group and those above it,
	// in CPUs, absent where there is none; Throttled for how much of the time it held the
	// target up, and ThrottledPeriods in how many of its periods: absent where that cannot be
	// read.
	CPULimit         stat.Opt `json:"cpu_limit_cores"`
	Throttled        stat.Opt `json:"throttled_s"`
	ThrottledPeriods stat.Opt `json:"throttled_periods_ratio"`
}

// ProcessLoad is the CPU time of a process.
type ProcessLoad struct {
	PID  int           `json:"pid"`
	Name string        `json:"name"`
	Time time.Duration `json:"cpu_ns"`
}

// PutOff is what the target had while lanes of it could have run and had no CPU.
type PutOff struct {
	Time OptTime `json:"time_ns"` // added up over lanes, absent where scheduling was not traced
	// OwnCPUs is how many CPUs the threads of the target had then, Threads how many of them
	// could have run and had none: means over Time, absent where no lane was put off.
	OwnCPUs stat.Opt `json:"own_cpus"`
	Threads stat.Opt `json:"threads"`
}
