package advice

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// findOversubscribed finds more threads than CPUs. GGML's barriers spin, so a waiting thread
// keeps the CPU from the one that it waits for.
func findOversubscribed(v *subject) *cause {
	n := v.Target.CPUs
	if n <= 0 || v.ThreadCount <= n {
		return findSelfPreempted(v)
	}
	p := v.Interference().Lost
	if p.OK && p.Max < optrace.PreemptedLimit {
		return nil
	}
	c := newCause(severityBad, "More threads than CPUs", stat.None, v.threadsAndCPUs())
	c.remedy = v.setting(optThreads, strconv.Itoa(n), remedy{
		do:  fmt.Sprintf("Run as many threads as there are CPUs: %d instead of %d.", n, v.ThreadCount),
		why: "Threads that wait for each other spin, and keep the CPU from the one that they wait for.", price: "none",
	})
	if p.OK {
		c.Cost = stat.Some(p.Mean)
		c.Evidence = append(c.Evidence, fmt.Sprintf("The threads were ready but had no CPU for %s of the time of graphs on average.", figure.PercentSign(p.Mean)))
		c.remedy.gain = gainOf(0, freed(p.Mean), freed(p.Max))
	}
	return c
}

func (v *subject) threadsAndCPUs() string {
	return fmt.Sprintf("A graph is computed by %s, and the target may use %s.", figure.Counted(v.ThreadCount, "thread"), figure.Counted(v.Target.CPUs, "CPU"))
}

// findSelfPreempted finds threads that lack a CPU although there are as many CPUs as threads,
// and other programs hardly cause it.
func findSelfPreempted(v *subject) *cause {
	i := v.Interference()
	p := i.Lost
	c := newCause(severityBad, "", stat.Some(p.Max), v.withoutCPU(&i),
		fmt.Sprintf("Other processes had the CPU for %s of the time that threads lost, other threads of the target for %s.", figure.PercentSign(i.ByKernelThreads+i.ByAllPrograms-i.Elsewhere), figure.PercentSign(i.BySiblings)))
	if v.Target.CPUs > 0 {
		c.Evidence = append(c.Evidence, v.threadsAndCPUs())
	}
	if own := v.Preempted; own.OwnCPUs.OK && own.Threads.OK {
		c.Evidence = append(c.Evidence, fmt.Sprintf("Meanwhile the target had %s CPUs on average, and %s of its threads waited for one.", figure.Significant(own.OwnCPUs.V), figure.Significant(own.Threads.V)))
	}
	c.remedy = &remedy{kind: remedyHost, price: "none", gain: gainOf(0, freed(p.Mean)/2, freed(p.Max))}
	switch r := c.remedy; i.Culprit {
	case optrace.ByLimit:
		c.Title = "A limit of CPU time stops the threads"
		c.Evidence = slices.Insert(c.Evidence, 1, v.cpuLimit())
		r.do = "Raise the limit of CPU time (cpu.max of the control group, --cpus of a container), or run one thread per CPU that it allows."
		r.why, r.price = "A limit that is used up stops all threads until its next period begins.", "a higher limit takes CPU time from others"
	case optrace.ByItself:
		c.Title = "Threads of the target take the CPUs from each other"
		r.do = "Check for contexts that compute at the same time with more threads than CPUs in total; use one thread per CPU."
		r.why = "A thread that waits for its CPU holds up its whole graph at the next barrier."
	case optrace.ByBinding:
		c.Title = "Threads are preempted, and not by other processes"
		c.Evidence = append(c.Evidence, fmt.Sprintf("Other programs used %s of these CPUs over the whole trace, too little to explain it.", figure.Significant(v.HostLoad.CPUsOf(v.HostLoad.Others))))
		r.do = "Check what keeps the threads off free CPUs: several threads bound to one CPU (taskset, --cpu-mask, --numa)"
		if !v.HostLoad.Throttled.OK {
			r.do += ", or a limit of CPU time (cpu.max of its control group)"
		}
		r.do += "."
		r.why = "CPUs were free while threads waited for one."
	case optrace.ByUnknown:
		c.Title = "Threads are preempted; the cause is unknown"
		c.Evidence = append(c.Evidence, "The processes on the other CPUs were not recorded.")
		c.remedy = &remedy{
			kind: remedyTrace, do: "Trace this process again: by its PID, rooftop records which processes use the other CPUs.",
			why: "Other programs, a limit of CPU time and too many threads look the same here.", price: "none",
		}
	default:
		return nil
	}
	return c
}

// cpuLimit describes the CPU limit and for how long it stopped the target.
func (v *subject) cpuLimit() string {
	h := v.HostLoad
	text := "The limit of its control group"
	if h.CPULimit.OK {
		text += " is " + figure.Significant(h.CPULimit.V) + " CPUs, and"
	}
	text += fmt.Sprintf(" stopped it for %s, summed over CPUs", figure.Value(h.Throttled.V, "s"))
	if h.ThrottledPeriods.OK {
		text += fmt.Sprintf(", in %s of its periods", figure.PercentSign(h.ThrottledPeriods.V))
	}
	return text + fmt.Sprintf("; threads waited for %s. Other processes may have the CPUs then.", figure.Duration(v.Preempted.Time.D))
}
