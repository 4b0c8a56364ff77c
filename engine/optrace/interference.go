package optrace

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	// untold is the part of what lanes lose that other programs must not have had at least,
	// for the target itself or its limits to be the cause.
	untold = 0.5
	// siblings is the part of what lanes lose that must be due to CPUs which the target did
	// not have, for its own threads not to be the cause.
	siblings = 0.5
	// byLimit is the part of what lanes lose for which a limit of CPU time must have held the
	// target up, to be called the cause.
	byLimit = 0.5
)

// culprit is what puts lanes off their CPUs.
type culprit uint8

const (
	culpritNone     culprit = iota // too little to judge, or nothing is known of it
	culpritPrograms                // other programs
	culpritReader                  // the process that traces: a cost of the trace, and no finding here
	culpritKernel                  // the kernel's own threads
	culpritLimit                   // a limit of CPU time
	culpritItself                  // other threads of the target
	culpritBinding                 // CPUs were free: threads are kept off them
	culpritUnknown                 // who had the other CPUs was not recorded
)

// interference is who had the CPUs while lanes could have run, as far as it is known.
// Parts are of what the lanes lost, and add up to 1 at most.
type interference struct {
	// lost are shares of the time of graphs, without what the tracer had of it: that is a
	// cost of the trace, as its probes are, and nobody's interference.
	lost   spread
	tracer float64 // what it had, as a share of the time of graphs
	// programs are other programs, those with the largest part first; all is the sum of
	// their parts.
	programs []taker
	all      float64
	// elsewhere is the part of all that was lost since programs had CPUs of the target on
	// which no lane waited: its threads had to share the others.
	elsewhere        float64
	kernel, siblings float64
	culprit          culprit
}

// taker is a process with its part.
type taker struct {
	OtherRow
	part float64
}

// interference judges who puts lanes off their CPUs.
//
// Who had the very CPU that a lane waited for is told by the switches there. That is half
// of it: where a program keeps one of two CPUs, two lanes take turns on the other, and the
// switches tell that they put each other off. So the CPUs count that the target's threads
// did not have meanwhile ([PutOff]): free ones would have taken a waiting thread at once,
// and w threads that wait for f CPUs of others lose f/w of their time to these. That the
// CPUs were not idle, and whose they were, is told by [HostLoad]: programs must have had
// so much CPU time.
func (v *view) interference() interference {
	i := interference{lost: v.preempted()}
	if !i.lost.ok {
		return i
	}
	tracer := v.tracerPart(i.lost.max)
	i.tracer, i.lost = tracer*i.lost.max, i.lost.times(1-tracer)
	part := v.parts(i.lost.max)
	for _, o := range v.hadTheCPU() {
		t := taker{OtherRow: o, part: part(&o)}
		switch {
		case o.Name == SiblingName:
			i.siblings += t.part
		case kernelThread(o.Name):
			i.kernel += t.part
		default:
			i.programs = append(i.programs, t)
			i.all += t.part
		}
	}
	possible, filled, known := v.byOthersElsewhere()
	if known && tracer < 1 {
		i.addElsewhere(v.HostLoad, ((1-v.throttled())*possible*filled-tracer)/(1-tracer)-i.kernel-i.all)
	}
	slices.SortStableFunc(i.programs, func(a, b taker) int { return cmp.Compare(b.part, a.part) })
	i.culprit = v.culprit(&i, possible, known)
	if i.culprit == culpritNone && i.tracer >= preemptedLimit {
		i.culprit = culpritReader
	}
	return i
}

// tracerPart is the part of what lanes lost that the process that traced had. Which of the
// lanes lost it is not known: of each it is taken out alike.
func (v *view) tracerPart(lost float64) float64 {
	o := v.tracer()
	part := 0.0
	switch {
	case v.PutOff.Time.D > 0:
		part = float64(o.Time) / float64(max(plus(v.othersTime(), o.Time), v.PutOff.Time.D))
	case lost > 0:
		part = o.Share.Or(0) / lost
	}
	return min(max(part, 0), 1)
}

// tracer is what the process that traced had. Some documents have it among the others.
func (v *view) tracer() OtherRow {
	if at := slices.IndexFunc(v.Others, func(o OtherRow) bool { return o.isTracer() }); at >= 0 {
		return v.Others[at]
	}
	return OtherRow{Name: OwnName, Time: v.Observer.ReaderTime, Share: v.Observer.Reader}
}

// othersTime is what all others had, added up.
func (v *view) othersTime() time.Duration {
	var sum time.Duration
	for k := range v.Others {
		if !v.Others[k].isTracer() {
			sum = plus(sum, v.Others[k].Time)
		}
	}
	return sum
}

func (o *OtherRow) isTracer() bool { return o.Name == OwnName }

// parts gives the part of what lanes lost to others than the tracer that a process had: by
// time where that is known, else by its share.
func (v *view) parts(lost float64) func(*OtherRow) float64 {
	whole := max(v.othersTime(), v.PutOff.Time.D-v.tracer().Time, 1)
	return func(o *OtherRow) float64 {
		if v.PutOff.Time.D > 0 {
			return max(float64(o.Time)/float64(whole), 0)
		}
		if lost <= 0 {
			return 0
		}
		return min(max(o.Share.Or(0)/lost, 0), 1)
	}
}

// byOthersElsewhere is the part of what lanes lose that is due to CPUs which the target
// did not have, and how much of these other programs can have had. It is not known
// without [HostLoad], unless the target had all CPUs.
func (v *view) byOthersElsewhere() (possible, filled float64, known bool) {
	cpus, h := v.Target.CPUs, v.HostLoad
	if h != nil && h.CPUs > 0 {
		cpus = h.CPUs
	}
	if cpus <= 0 || !v.PutOff.OwnCPUs.OK || !v.PutOff.Threads.OK {
		return 1, 0, false
	}
	away := max(float64(cpus)-v.PutOff.OwnCPUs.V, 0)
	waiting := max(v.PutOff.Threads.V, 1)
	possible = min(away/waiting, 1)
	if h == nil {
		return possible, 0, possible < siblings
	}
	// Lanes that waited at once waited for the same time.
	need := away * float64(v.PutOff.Time.D) / waiting
	if need <= 0 {
		return possible, 0, true
	}
	return possible, min(float64(h.Others)/need, 1), true
}

// hiddenName stands for programs of which the CPU time is known and nothing else.
const hiddenName = "programs that have ended, or are hidden"

// addElsewhere shares a part among the programs that had CPUs of the target, by their CPU
// time.
func (i *interference) addElsewhere(h *HostLoad, part float64) {
	if h == nil || !(part > 0) {
		return
	}
	i.elsewhere = part
	i.all += part
	hidden := part
	for k := range h.Processes {
		p := &h.Processes[k]
		its := part * min(float64(p.Time)/float64(max(h.Others, 1)), 1)
		hidden -= its
		at := slices.IndexFunc(i.programs, func(t taker) bool { return t.PID == p.PID })
		if at < 0 {
			i.programs = append(i.programs, taker{OtherRow: OtherRow{PID: p.PID}})
			at = len(i.programs) - 1
		}
		i.programs[at].part += its
		i.programs[at].Name = cmp.Or(i.programs[at].Name, p.Name)
	}
	if hidden*i.lost.max >= thiefLimit {
		i.programs = append(i.programs, taker{OtherRow: OtherRow{Name: hiddenName}, part: hidden})
	}
}

// culprit is what takes most of what lanes lose.
func (v *view) culprit(i *interference, possible float64, known bool) culprit {
	lost := i.lost.max
	switch {
	case lost < preemptedLimit:
		return culpritNone
	case lost >= preemptedBad && v.throttled() >= byLimit:
		// Whoever had the CPUs meanwhile: the target might not have them.
		return culpritLimit
	case lost < preemptedBad || i.kernel+i.all > 1-untold:
		return i.some()
	case known && possible < siblings:
		return culpritItself
	case known:
		return culpritBinding
	}
	return culpritUnknown
}

// some is who took enough to be named.
func (i *interference) some() culprit {
	switch {
	case i.all*i.lost.max >= thiefLimit && len(i.programs) > 0:
		return culpritPrograms
	case i.kernel*i.lost.max >= preemptedLimit:
		return culpritKernel
	}
	return culpritNone
}

// throttled is the part of what lanes lose for which a limit of CPU time held the target
// up, by the time that the kernel adds up over CPUs, or by the periods that ended so: of the
// time Linux 6.18 told as little as a fifth of what a limit of 0.6 CPUs took from two threads (measured).
func (v *view) throttled() float64 {
	h := v.HostLoad
	if h == nil || v.PutOff.Time.D <= 0 {
		return 0
	}
	return min(max(h.Throttled.Or(0)/v.PutOff.Time.D.Seconds(), h.ThrottledPeriods.Or(0), 0), 1)
}

// cpusOf is how many CPUs a time is of the whole.
func (h *HostLoad) cpusOf(t time.Duration) float64 {
	if h == nil || h.Elapsed <= 0 {
		return 0
	}
	return float64(t) / float64(h.Elapsed)
}

// KernelName is the name of a thread of the kernel in [Recording.Processes]: in brackets,
// as ps writes it.
func KernelName(name string) string { return "[" + name + "]" }

func kernelThread(name string) bool {
	return strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]")
}
