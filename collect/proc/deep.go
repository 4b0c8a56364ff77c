package proc

import (
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// readWaits reads how long the threads of every member waited for a CPU, if the sample is a deep one.
func (s *Sampler) readWaits(deep bool) {
	for _, m := range s.members {
		if m.wait = stat.None; deep && !m.zombie {
			m.wait = s.fs.runWait(m.pid)
		}
	}
}

// attachWaits copies the waiting times into a sample.
func (s *Sampler) attachWaits(look []capture.ProcessSample) {
	waits := make(map[int]stat.Opt, len(s.members))
	for _, m := range s.members {
		waits[m.index] = m.wait
	}
	for i := range look {
		look[i].RunWaitSeconds = waits[look[i].Process]
	}
}

// runWait returns how long the living threads of a process waited for a CPU, the second number
// of their schedstat (Documentation/scheduler/sched-stats.rst). It is absent if the kernel does not
// report it.
func (f procfiles) runWait(pid int) stat.Opt {
	tasks, err := f.mount.AllThreads(pid)
	if err != nil {
		return stat.None
	}
	sum := stat.None
	for _, task := range tasks {
		if s, err := task.Schedstat(); err == nil {
			sum = sum.Plus(stat.Some(float64(s.WaitingNanoseconds) / 1e9))
		}
	}
	return sum
}
