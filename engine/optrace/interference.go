package optrace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits above which findings are made.
const (
	// PreemptedLimit is the share of the time of graphs for which a thread is ready without a
	// CPU. The kernel's own threads and timers take well under 1 %.
	PreemptedLimit = 0.03
	// PreemptedBad is the same share from which the finding is severe.
	PreemptedBad = 0.15
	// TakerLimit is the share of the time of graphs that a process must have had, or cost, to
	// be named.
	TakerLimit = 0.01
	// MainTaker is the share of the threads' lost time that one process must have taken to be
	// named as the one to stop.
	MainTaker = 0.5
	// minNotOthers is the least part of the threads' lost time that other programs did not take,
	// for the target itself or its limits to be the cause.
	minNotOthers = 0.5
	// minCPUsMissing is the part of the threads' lost time due to CPUs that the target did not have,
	// below which its own threads are the cause.
	minCPUsMissing = 0.5
	// minThrottled is the part of the threads' lost time for which a CPU limit must have stopped the
	// target, to be called the cause.
	minThrottled = 0.5
)

// culprit is the cause of preempted threads.
type culprit uint8

// Culprits.
const (
	NoCulprit  culprit = iota // too little time was lost, or the cause is unknown
	ByPrograms                // other programs
	ByReader                  // the tracing process: a cost of the trace, not a finding
	ByKernel                  // the kernel's own threads
	ByLimit                   // a limit of CPU time
	ByItself                  // other threads of the target
	ByBinding                 // CPUs were free, but the threads were kept off them
	ByUnknown                 // the processes on the other CPUs were not recorded
)

// Interference is which processes had the CPUs while threads could have run, as far as it is
// known. Parts are fractions of the time that threads lost and add up to at most 1.
type Interference struct {
	// Lost is the share of the time of graphs that threads lost, without what the tracer took:
	// that is a cost of the trace, like its probes.
	Lost     Spread
	ByTracer float64 // taken by the tracer, as a share of the time of graphs
	// Programs are other programs, those with the largest part first; ByAllPrograms is the sum
	// of their parts.
	Programs      []taker
	ByAllPrograms float64
	// Elsewhere is the part that was lost because programs had CPUs of the target on which no
	// thread waited: its threads had to share the others.
	Elsewhere                   float64
	ByKernelThreads, BySiblings float64
	Culprit                     culprit
}

// taker is a process with the part of the lost time that it took.
type taker struct {
	OtherRow
	Part float64
}

// Interference determines what preempts threads.
//
// The switches on a CPU show who had it while a thread waited there. That is half of the
// answer: if a program keeps one of two CPUs, two threads take turns on the other, and the
// switches show that they preempt each other. So the CPUs that the target's threads did not
// have meanwhile count too ([optrace.Preempted]): free CPUs would have taken a waiting thread
// at once, and w threads that wait for f CPUs of others lose f/w of their time to these.
// [optrace.HostLoad] shows that the CPUs were not idle, and who had them: programs must have
// had that much CPU time.
func (v *View) Interference() Interference {
	i := Interference{Lost: v.PreemptedSpread()}
	if !i.Lost.OK {
		return i
	}
	tracer := v.tracerPart(i.Lost.Max)
	i.ByTracer, i.Lost = tracer*i.Lost.Max, i.Lost.scaled(1-tracer)
	part := v.Parts(i.Lost.Max)
	for _, o := range v.HadTheCPU() {
		t := taker{OtherRow: o, Part: part(&o)}
		switch {
		case o.Name == SiblingName:
			i.BySiblings += t.Part
		case kernelThread(o.Name):
			i.ByKernelThreads += t.Part
		default:
			i.Programs = append(i.Programs, t)
			i.ByAllPrograms += t.Part
		}
	}
	possible, filled, known := v.byOthersElsewhere()
	if known && tracer < 1 {
		i.addElsewhere(v.HostLoad, ((1-v.throttled())*possible*filled-tracer)/(1-tracer)-i.ByKernelThreads-i.ByAllPrograms)
	}
	slices.SortStableFunc(i.Programs, func(a, b taker) int { return cmp.Compare(b.Part, a.Part) })
	i.Culprit = v.culprit(&i, possible, known)
	if i.Culprit == NoCulprit && i.ByTracer >= PreemptedLimit {
		i.Culprit = ByReader
	}
	return i
}

// tracerPart returns the part of the threads' lost time that the tracing process took. It is
// not known which thread lost it, so it is subtracted from all in proportion.
func (v *View) tracerPart(lost float64) float64 {
	o := &v.Observer
	part := 0.0
	switch {
	case v.Preempted.Time.D > 0:
		part = float64(o.ReaderTime) / float64(max(stat.AddSaturating(v.othersTime(), o.ReaderTime), v.Preempted.Time.D))
	case lost > 0:
		part = o.Reader.Or(0) / lost
	}
	return min(max(part, 0), 1)
}

// othersTime returns the CPU time that all processes but the tracer took.
func (v *View) othersTime() time.Duration {
	var sum time.Duration
	for k := range v.Others {
		sum = stat.AddSaturating(sum, v.Others[k].Time)
	}
	return sum
}

// Parts returns a function that gives the part of the lost time that a process other than the
// tracer took: by its time if known, or else by its share.
func (v *View) Parts(lost float64) func(*OtherRow) float64 {
	whole := max(v.othersTime(), v.Preempted.Time.D-v.Observer.ReaderTime, 1)
	return func(o *OtherRow) float64 {
		if v.Preempted.Time.D > 0 {
			return max(float64(o.Time)/float64(whole), 0)
		}
		if lost <= 0 {
			return 0
		}
		return min(max(o.Share.Or(0)/lost, 0), 1)
	}
}

// byOthersElsewhere returns the part of the threads' lost time that is due to CPUs which the
// target did not have, and the fraction of these that other programs can have had. Without
// [optrace.HostLoad] it is known only if the target had nearly all CPUs.
func (v *View) byOthersElsewhere() (possible, filled float64, known bool) {
	cpus, h := v.Target.CPUs, v.HostLoad
	if h != nil && h.CPUs > 0 {
		cpus = h.CPUs
	}
	if cpus <= 0 || !v.Preempted.OwnCPUs.OK || !v.Preempted.Threads.OK {
		return 1, 0, false
	}
	away := max(float64(cpus)-v.Preempted.OwnCPUs.V, 0)
	waiting := max(v.Preempted.Threads.V, 1)
	possible = min(away/waiting, 1)
	if h == nil {
		return possible, 0, possible < minCPUsMissing
	}
	// Time is added up over threads that waited at the same time.
	need := away * float64(v.Preempted.Time.D) / waiting
	if need <= 0 {
		return possible, 0, true
	}
	return possible, min(float64(h.Others)/need, 1), true
}

// addElsewhere divides a part among the programs that had CPUs of the target, by their CPU
// time.
func (i *Interference) addElsewhere(h *HostLoad, part float64) {
	if h == nil || !(part > 0) {
		return
	}
	i.Elsewhere = part
	i.ByAllPrograms += part
	hidden := part
	for k := range h.Processes {
		p := &h.Processes[k]
		its := part * min(float64(p.Time)/float64(max(h.Others, 1)), 1)
		hidden -= its
		at := slices.IndexFunc(i.Programs, func(t taker) bool { return t.PID == p.PID })
		if at < 0 {
			i.Programs = append(i.Programs, taker{OtherRow: OtherRow{PID: p.PID}})
			at = len(i.Programs) - 1
		}
		i.Programs[at].Part += its
		i.Programs[at].Name = cmp.Or(i.Programs[at].Name, p.Name)
	}
	if hidden*i.Lost.Max >= TakerLimit {
		i.Programs = append(i.Programs, taker{OtherRow: OtherRow{Name: HiddenName}, Part: hidden})
	}
}

// culprit returns the cause of most of the threads' lost time.
func (v *View) culprit(i *Interference, possible float64, known bool) culprit {
	lost := i.Lost.Max
	switch {
	case lost < PreemptedLimit:
		return NoCulprit
	case lost >= PreemptedBad && v.throttled() >= minThrottled:
		// The target could not have had the CPUs, no matter which process used them meanwhile.
		return ByLimit
	case lost < PreemptedBad || i.ByKernelThreads+i.ByAllPrograms > 1-minNotOthers:
		return i.largestTaker()
	case known && possible < minCPUsMissing:
		return ByItself
	case known:
		return ByBinding
	}
	return ByUnknown
}

// largestTaker returns the culprit among other processes that took enough to be named.
func (i *Interference) largestTaker() culprit {
	switch {
	case i.ByAllPrograms*i.Lost.Max >= TakerLimit && len(i.Programs) > 0:
		return ByPrograms
	case i.ByKernelThreads*i.Lost.Max >= PreemptedLimit:
		return ByKernel
	}
	return NoCulprit
}

// throttled returns the part of the threads' lost time for which a CPU limit stopped the
// target: the larger of the time that the kernel adds up over CPUs and the share of throttled
// periods. The time alone is too low: Linux 6.18 reported as little as a fifth of what a limit
// of 0.6 CPUs took from two threads (measured).
func (v *View) throttled() float64 {
	h := v.HostLoad
	if h == nil || v.Preempted.Time.D <= 0 {
		return 0
	}
	return min(max(h.Throttled.Or(0)/v.Preempted.Time.D.Seconds(), h.ThrottledPeriods.Or(0), 0), 1)
}

func kernelThread(name string) bool {
	return strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]")
}

// LostByAll returns the most that the threads can lose by what some of them lose: the sum over
// threads, if all wait for each that is off its CPU, but no more than the time that they do not
// compute.
func (v *View) LostByAll(off Spread) float64 {
	most := off.Mean * float64(max(v.ThreadCount, 1))
	if busy := v.Busy(); busy.OK {
		most = min(most, 1-busy.Mean)
	}
	return max(most, off.Max)
}

// HadTheCPU returns the known processes that had the CPUs, those that took most first, with the
// target's own other threads.
func (v *View) HadTheCPU() []OtherRow {
	list := slices.DeleteFunc(slices.Clone(v.Others), func(o OtherRow) bool { return o.Name == UnknownName })
	slices.SortStableFunc(list, func(a, b OtherRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Share.Or(0), a.Share.Or(0)))
	})
	return list
}

// MaxPreempted returns the share of the time of graphs for which the thread that lost most was
// ready without a CPU, absent if it is below [PreemptedLimit] or was not traced.
func MaxPreempted(s *Summary) stat.Opt {
	p := NewView(s).PreemptedSpread()
	if !p.OK || p.Max < PreemptedLimit {
		return stat.None
	}
	return stat.Some(p.Max)
}
