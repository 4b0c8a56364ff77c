package advice

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// preemptedBad is the share of the time of graphs for which a thread is ready without a CPU,
	// from which the finding is severe.
	preemptedBad = 0.15
	// mostOfLost is the part of the time that threads lost from which something is its cause.
	mostOfLost = 0.5
	// partRetaken is the assumed share of the CPU time of other programs that still others take
	// over if these go away, for the lower end of a gain.
	partRetaken = 0.5
)

// taker is what had the CPUs while threads could have run.
type taker uint8

const (
	takenByNone     taker = iota // too little was lost
	takenByPrograms              // other programs
	takenByKernel                // the kernel's own threads
	takenByLimit                 // a limit of CPU time
	takenByItself                // the target's own threads, or what keeps them off free CPUs
	takenByUnknown               // the use of the CPUs was not recorded
)

// interference is the CPU time that threads lost.
type interference struct {
	// lost is the share of the time of graphs that threads lost, without what the tracer took:
	// that is a cost of the trace, like its probes.
	lost     optrace.Spread
	byTracer float64 // taken by the tracer, as a share of the time of graphs
	byOthers float64 // part of the lost time for which other programs and the kernel used CPUs
	taker    taker
}

// interference determines what preempts threads. A thread waits only if something else has a CPU
// of the target: other programs are the cause if they used as much CPU time during graphs as
// threads lost, whether on the CPU of a preempted thread or on another one, and left no CPU idle.
func (v *subject) interference() interference {
	i := interference{lost: v.PreemptedSpread()}
	if !i.lost.OK {
		return i
	}
	all, tracer := v.Preempted.Time.D.Seconds(), v.Observer.ReaderTime.Seconds()
	part := 0.0
	switch {
	case all > 0:
		part = min(tracer/all, 1)
	case i.lost.Max > 0:
		part = min(v.Observer.Reader.Or(0)/i.lost.Max, 1)
	}
	i.byTracer, i.lost = part*i.lost.Max, i.lost.Scaled(1-part)
	h := v.HostLoad
	throttled := 0.0
	if left := all * (1 - part); h != nil && left > 0 {
		inGraphs := min(stat.Ratio(v.GraphSeconds, h.Elapsed.Seconds()).Or(0), 1)
		i.byOthers = min((h.Others+h.Kernel).Seconds()*inGraphs/left, 1)
		// The time alone is too low: Linux 6.18 reported as little as a fifth of what a limit of 0.6
		// CPUs took from two threads (measured).
		throttled = max(h.Throttled.Or(0)/all, h.ThrottledPeriods.Or(0))
	}
	others := i.byOthers >= mostOfLost && h.CPUsOf(h.Idle) < 1
	switch bad := i.lost.Max >= preemptedBad; {
	case i.lost.Max < optrace.PreemptedLimit:
	case bad && throttled >= mostOfLost:
		i.taker = takenByLimit // no matter what used the CPUs meanwhile
	case others && h.Kernel > h.Others:
		i.taker = takenByKernel
	case others:
		i.taker = takenByPrograms
	case bad && h == nil:
		i.taker = takenByUnknown
	case bad:
		i.taker = takenByItself
	}
	return i
}

// findPreempted finds other programs on the CPUs of compute threads: interference, not a slow
// operator.
func findPreempted(v *subject) *cause {
	i := v.interference()
	c := newCause(severityFrom(i.lost.Max, preemptedBad), "", stat.Some(i.lost.Max), v.withoutCPU(&i))
	switch i.taker {
	case takenByPrograms:
		c.Title = "Other programs take the CPU: interference, not a slow operator"
		c.Evidence = append(c.Evidence, UsedByOthers(v.HostLoad))
		c.remedy = v.keepOff(&i)
	case takenByKernel:
		c.Title = "The kernel's own threads take the CPU: interference, not a slow operator"
		c.Evidence = append(c.Evidence, usedBy("Threads of the kernel", v.HostLoad, v.HostLoad.Kernel))
		c.instead = "kernel threads work for all programs (disks, network, memory); no setting of this runtime stops them"
	default:
		return nil
	}
	if v.ThreadCount > 1 {
		c.Evidence = append(c.Evidence, "The other threads wait at the next barrier for the preempted one, so every operator looks slower.")
	}
	return c
}

// withoutCPU describes for how long threads were ready without a CPU, apart from what the
// tracer took.
func (v *subject) withoutCPU(i *interference) string {
	text := fmt.Sprintf("Thread %d was ready but had no CPU for %s of the time of graphs", i.lost.Highest, figure.PercentSign(i.lost.Max))
	if v.ThreadCount > 1 {
		text += fmt.Sprintf("; the mean of %s is %s", figure.Counted(v.ThreadCount, "thread"), figure.PercentSign(i.lost.Mean))
	}
	if i.byTracer >= optrace.LeastShown {
		text += "; the CPU time of rooftop itself is not included, it is a cost of the trace"
	}
	return text + "."
}

// UsedByOthers describes how much of the target's CPUs other programs used, "" for a nil
// HostLoad.
func UsedByOthers(h *optrace.HostLoad) string {
	if h == nil {
		return ""
	}
	return usedBy("Other programs", h, h.Others)
}

// usedBy describes how much of the target's CPUs something used.
func usedBy(who string, h *optrace.HostLoad, took time.Duration) string {
	return fmt.Sprintf("%s used %s of %s over the whole trace.", who, figure.Significant(h.CPUsOf(took)), figure.Counted(h.CPUs, "CPU"))
}

// keepOff returns the remedy against other programs. The time that the kernel took cannot be
// saved.
func (v *subject) keepOff(i *interference) *remedy {
	h, p := v.HostLoad, i.lost
	part := i.byOthers * float64(h.Others) / float64(max(h.Others+h.Kernel, 1))
	return &remedy{
		kind: remedyHost, price: "the others get less of the machine",
		do:   "Give this runtime CPUs of its own (taskset, a cpuset), lower the priority of the other programs (nice), or stop them.",
		why:  fmt.Sprintf("A thread loses %s of its time to them.", figure.PercentSign(p.Max)) + v.fewerMeanwhile(i),
		gain: gainOf(freed(partRetaken*part*p.Mean), freed(part*p.Max), freed(part*v.LostByAll(p))),
	}
}

// fewerMeanwhile suggests fewer threads while other programs have the CPUs, because threads at
// a barrier spin on the CPU that the awaited one needs. It returns "" if all threads fit the
// remaining CPUs, or little is lost.
func (v *subject) fewerMeanwhile(i *interference) string {
	h := v.HostLoad
	if h.CPUs <= 0 || v.ThreadCount < 2 || i.lost.Max < preemptedBad {
		return ""
	}
	left := max(float64(h.CPUs)-h.CPUsOf(h.Others), 0)
	fit := max(int(math.Round(left)), 1)
	if fit >= v.ThreadCount {
		return ""
	}
	flag, value := v.names.spell(optThreads, strconv.Itoa(fit))
	return fmt.Sprintf(" If that is not possible, %s may be faster than %d (%s %s): other programs leave %s of the %d CPUs.", figure.Counted(fit, "thread"), v.ThreadCount, flag, value, figure.Significant(left), h.CPUs)
}

// findOversubscribed finds threads that lack a CPU although other programs do not cause it: more
// threads than CPUs, a limit of CPU time, or threads that are kept off free CPUs.
func findOversubscribed(v *subject) *cause {
	i := v.interference()
	p, n := i.lost, v.Target.CPUs
	if n > 0 && v.ThreadCount > n {
		return v.moreThreadsThanCPUs(p, n)
	}
	c := newCause(severityBad, "", stat.Some(p.Max), v.withoutCPU(&i))
	if n > 0 {
		c.Evidence = append(c.Evidence, v.threadsAndCPUs())
	}
	c.remedy = &remedy{kind: remedyHost, price: "none", gain: gainOf(0, freed(p.Mean)/2, freed(p.Max))}
	switch r := c.remedy; i.taker {
	case takenByLimit:
		c.Title = "A limit of CPU time stops the threads"
		c.Evidence = append(c.Evidence, v.cpuLimit())
		r.do = "Raise the limit of CPU time (cpu.max of the control group, --cpus of a container), or run one thread per CPU that it allows."
		r.why, r.price = "A limit that is used up stops all threads until its next period begins.", "a higher limit takes CPU time from others"
	case takenByItself:
		c.Title = "Threads are preempted, and not by other programs"
		c.Evidence = append(c.Evidence, UsedByOthers(v.HostLoad))
		r.do = "Check for contexts that compute at the same time with more threads than CPUs in total, and for threads that are bound to one CPU (taskset, --cpu-mask, --numa)."
		r.why = "Other programs used too little CPU time to explain it, or left CPUs idle."
	case takenByUnknown:
		c.Title = "Threads are preempted; the cause is unknown"
		c.Evidence = append(c.Evidence, "The CPU time of other programs was not recorded.")
		r.kind, r.gain = remedyTrace, gain{}
		r.do = "Trace this process again: by its PID, rooftop records how much other programs use its CPUs."
		r.why = "Other programs, a limit of CPU time and too many threads look the same here."
	default:
		return nil
	}
	return c
}

// moreThreadsThanCPUs returns the finding of more threads than CPUs, nil if they lost hardly any
// time. GGML's barriers spin, so a waiting thread keeps the CPU from the one that it waits for.
func (v *subject) moreThreadsThanCPUs(p optrace.Spread, n int) *cause {
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

// cpuLimit describes the CPU limit and for how long it stopped the target.
func (v *subject) cpuLimit() string {
	h := v.HostLoad
	text := "The limit of its control group"
	if h.CPULimit.OK {
		text += " is " + figure.Significant(h.CPULimit.V) + " CPUs, and"
	}
	var stopped []string
	if h.Throttled.OK {
		stopped = append(stopped, fmt.Sprintf("for %s, summed over CPUs", figure.Value(h.Throttled.V, "s")))
	}
	if h.ThrottledPeriods.OK {
		stopped = append(stopped, fmt.Sprintf("in %s of its periods", figure.PercentSign(h.ThrottledPeriods.V)))
	}
	return text + fmt.Sprintf(" stopped it %s; threads waited for %s.", strings.Join(stopped, ", "), figure.Duration(v.Preempted.Time.D))
}
