package optrace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// preemptedLimit is the share of the time of graphs that a lane is ready and
	// without a CPU. The kernel's own threads and timers take well under 1 %.
	preemptedLimit = 0.03
	preemptedBad   = 0.15
	// thiefLimit is the share that other processes must have had, or cost, to be named.
	thiefLimit = 0.01
	// mainThief is the share of what the lanes lose that one process must have taken to
	// be the one to stop.
	mainThief = 0.5
	// seenShare is the least share that is said: percents have one digit after the point.
	seenShare = 0.0005
	// mostThieves are named.
	mostThieves = 3
	// remains is the share of what processes take that may stay taken where one goes away:
	// the next in the queue gets the CPU. Assumption, for the lower end of a gain.
	remains = 0.5
)

// OwnName is the name in [Recording.Processes] of the process that traced. It is longer
// than the kernel lets the name of a process be (TASK_COMM_LEN), so that no other has it.
const OwnName = "rooftop (this trace)"

// findPreempted is other processes on the CPUs of the lanes: interference, and no slow
// operator.
func findPreempted(v *view) (cause, bool) {
	i := v.interference()
	p := i.lost
	severity := severityWarn
	if p.max >= preemptedBad {
		severity = severityBad
	}
	without := fmt.Sprintf("Lane %d was ready and without a CPU for %s of the time of graphs", p.most, spellPercent(p.max))
	if v.lanes > 1 {
		without += fmt.Sprintf(", the mean of %s is %s", spellThreads(v.lanes), spellPercent(p.mean))
	}
	without += i.leftOut()
	c := cause{Finding: Finding{ID: "preempted", Severity: severity, Evidence: []string{without + "."}, Cost: stat.Some(p.max)}}
	c.Evidence = append(c.Evidence, v.heldElsewhere(&i)...)
	if list := i.thieves(v); list != "" {
		c.Evidence = append(c.Evidence, "Of what the lanes lost, their CPU went to "+list+".")
	}
	if v.lanes > 1 {
		c.Evidence = append(c.Evidence, "The other lanes wait at the next barrier for the one that was put off, so that every operator looks slower.")
	}
	switch i.culprit {
	case culpritPrograms:
		c.Title = "Another process takes the CPU: interference, not a slow operator"
		c.remedy = v.keepOff(&i)
	case culpritKernel:
		c.Title = "The kernel's own threads take the CPU: interference, not a slow operator"
		c.instead = "threads of the kernel work for all programs (disks, network, memory): nothing of this runtime sends them away"
	default:
		return cause{}, false
	}
	return c, true
}

// leftOut says that what the tracer had is not in what lanes lost.
func (i *interference) leftOut() string {
	if i.tracer < seenShare {
		return ""
	}
	return "; what rooftop itself had is left out, as a cost of the trace"
}

// keepOff is the remedy against other programs. Of what a lane loses, what the kernel took
// stays lost.
func (v *view) keepOff(i *interference) *remedy {
	p, thief := i.lost, &i.programs[0]
	all := min(i.all, 1)
	// One lane at least gets back what is taken from it, as far as no other process takes
	// that; at most all wait for each that is off.
	least, most := min(1/float64(max(v.lanes, 1)), remains), all*v.lostByAll(p)
	r := &remedy{kind: remedyHost, price: "the others get less of the machine"}
	if thief.part < mainThief || thief.PID <= 0 {
		r.do = "Give this runtime CPUs of its own (taskset, a cpuset): several processes take turns on them."
		r.why = fmt.Sprintf("No single one takes most of the %s that a lane loses.", spellPercent(p.max)) + v.fewerMeanwhile(i)
		r.gain = gainOf(freed(remains*all*p.mean), freed(all*p.max), freed(most))
		return r
	}
	// A graph is held up by the lane that loses most in it, which is another one each time.
	took := max(thief.Share.Or(0), thief.part*p.max)
	r.do = "Keep " + thief.who() + " off the CPUs of this runtime (taskset, a cpuset), let it give way (nice), or stop it."
	r.why = fmt.Sprintf("It had the CPU for %s of what lanes lost.", spellPercent(thief.part))
	if i.elsewhere*p.max >= thiefLimit {
		r.why = fmt.Sprintf("%s of what lanes lost is due to it (est): it had their CPU, or another one, so that they took turns on the rest.", spellPercent(thief.part))
	}
	r.why += v.fewerMeanwhile(i)
	r.gain = gainOf(freed(least*took), freed(min(took, most)), freed(most))
	return r
}

// fewerMeanwhile says that fewer threads may do better while other programs have the CPUs:
// those that wait at a barrier spin, and keep the CPU from the one that they wait for. "" where
// no fewer fit the CPUs that are left, or little is lost.
func (v *view) fewerMeanwhile(i *interference) string {
	h := v.HostLoad
	if h == nil || h.CPUs <= 0 || v.lanes < 2 || i.lost.max < preemptedBad {
		return ""
	}
	left := max(float64(h.CPUs)-h.cpusOf(h.Others), 0)
	fit := max(int(math.Round(left)), 1)
	if fit >= v.lanes {
		return ""
	}
	flag, value := v.names.spell(optThreads, strconv.Itoa(fit))
	return fmt.Sprintf(" Where that cannot be, %s may do better than %d (%s %s): others leave %s of the %d CPUs.", spellThreads(fit), v.lanes, flag, value, spellThree(left), h.CPUs)
}

// heldElsewhere says what programs had of the CPUs on which no lane waited, where that
// cost lanes time.
func (v *view) heldElsewhere(i *interference) []string {
	h := v.HostLoad
	if h == nil || i.elsewhere*i.lost.max < thiefLimit {
		return nil
	}
	list := make([]string, 0, mostThieves)
	for k := range h.Processes {
		if p := &h.Processes[k]; len(list) < mostThieves && h.cpusOf(p.Time) >= thiefLimit {
			row := OtherRow{PID: p.PID, Name: p.Name}
			list = append(list, fmt.Sprintf("%s %s", row.who(), spellThree(h.cpusOf(p.Time))))
		}
	}
	whose := "other programs had " + spellThree(h.cpusOf(h.Others)) + " CPUs over the whole trace"
	if len(list) > 0 {
		whose += " (" + strings.Join(list, ", ") + ")"
	}
	return []string{fmt.Sprintf("While a lane waited, the target had %s of the %d CPUs that it may use; %s. Its threads took turns on the rest.", spellThree(v.PutOff.OwnCPUs.V), h.CPUs, whose)}
}

// takers are the processes that are known to have had a lane's CPU, the one that traced
// among them, those that took most first.
func (v *view) takers() []OtherRow {
	list := slices.DeleteFunc(slices.Clone(v.Others), func(o OtherRow) bool { return o.Name == UntoldName || o.Name == SiblingName })
	if r := v.Observer.Reader; r.Or(0) > 0 {
		at := slices.IndexFunc(list, func(o OtherRow) bool { return o.Time < v.Observer.ReaderTime })
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, OtherRow{Name: OwnName, Time: v.Observer.ReaderTime, Share: r})
	}
	return list
}

// hadTheCPU are the takers but for the one that traced, and the target's own other threads,
// those that took most first.
func (v *view) hadTheCPU() []OtherRow {
	list := slices.DeleteFunc(slices.Clone(v.Others), func(o OtherRow) bool { return o.Name == UntoldName || o.isTracer() })
	slices.SortStableFunc(list, func(a, b OtherRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Share.Or(0), a.Share.Or(0)))
	})
	return list
}

// who is a process with its name.
func (o *OtherRow) who() string {
	name := o.Name
	if name == "" {
		name = "a process"
	}
	if o.PID <= 0 || name == OwnName || name == hiddenName {
		return name
	}
	return fmt.Sprintf("%s (PID %d)", name, o.PID)
}

// thieves are the processes that took most, with their parts of what was lost.
func (i *interference) thieves(v *view) string {
	var out []string
	part := v.parts(i.lost.max)
	for _, o := range v.hadTheCPU() {
		if p := part(&o); len(out) < mostThieves && p*i.lost.max >= thiefLimit {
			out = append(out, o.who()+" "+spellPercent(p))
		}
	}
	return strings.Join(out, ", ")
}

// lostByAll is the most that the lanes can lose by what some of them lose: where all
// wait for each that is off its CPU, the sum over lanes, and no more than the time that
// they do not compute.
func (v *view) lostByAll(off spread) float64 {
	most := off.mean * float64(max(v.lanes, 1))
	if busy := v.busy(); busy.ok {
		most = min(most, 1-busy.mean)
	}
	return max(most, off.max)
}

// findPutOff is the part of findOversubscribed with no more lanes than CPUs: lanes that are
// put off their CPUs, hardly by other programs.
func findPutOff(v *view) (cause, bool) {
	i := v.interference()
	p := i.lost
	c := cause{Finding: Finding{ID: "oversubscribed", Severity: severityBad, Evidence: []string{
		fmt.Sprintf("Lane %d was ready and without a CPU for %s of the time of graphs%s.", p.most, spellPercent(p.max), i.leftOut()),
		fmt.Sprintf("Other processes had the CPU for %s of what the lanes lost, other threads of the target for %s.", spellPercent(i.kernel+i.all-i.elsewhere), spellPercent(i.siblings)),
	}, Cost: stat.Some(p.max)}}
	if n := v.Target.CPUs; n > 0 {
		c.Evidence = append(c.Evidence, fmt.Sprintf("%s compute a graph, and the target may use %d CPUs.", spellThreads(v.lanes), n))
	}
	if own := v.PutOff; own.OwnCPUs.OK && own.Threads.OK {
		c.Evidence = append(c.Evidence, fmt.Sprintf("Meanwhile the target had %s CPUs in the mean, and %s threads of it waited for one.", spellThree(own.OwnCPUs.V), spellThree(own.Threads.V)))
	}
	c.remedy = &remedy{kind: remedyHost, price: "none", gain: gainOf(0, freed(p.mean)/2, freed(p.max))}
	switch r := c.remedy; i.culprit {
	case culpritLimit:
		c.Title = "A limit of CPU time stops the threads"
		c.Evidence = slices.Insert(c.Evidence, 1, v.limit())
		r.do = "Raise the limit of CPU time (cpu.max of the control group, --cpus of a container), or run one thread for each CPU that it allows."
		r.why, r.price = "A limit that is used up stops all threads, until its next period begins.", "a higher limit takes CPU time from others"
	case culpritItself:
		c.Title = "Threads of the target take the CPUs from each other"
		r.do = "Look for contexts that compute at once with more threads than CPUs together: one thread for each CPU."
		r.why = "A thread that waits for its CPU holds up its whole graph at the next barrier."
	case culpritBinding:
		c.Title = "Threads are put off their CPUs, and not by other processes"
		c.Evidence = append(c.Evidence, fmt.Sprintf("Other programs had %s of these CPUs over the whole trace: too little for it.", spellThree(v.HostLoad.cpusOf(v.HostLoad.Others))))
		r.do = "Look for what keeps the threads off CPUs that are free: several bound to one CPU (taskset, --cpu-mask, --numa)" + v.orALimit() + "."
		r.why = "CPUs were free while threads waited for one."
	case culpritUnknown:
		c.Title = "Threads are put off their CPUs; by whom is not known"
		c.Evidence = append(c.Evidence, "Who had the other CPUs meanwhile was not recorded.")
		c.remedy = &remedy{
			kind: remedyTrace, do: "Trace this process again: who has the other CPUs is recorded by its PID.",
			why: "Other programs on them, a limit of CPU time and too many threads look alike here.", price: "none",
		}
	default:
		return cause{}, false
	}
	return c, true
}

// limit says what the limit of CPU time is, and for how long it held the target up.
func (v *view) limit() string {
	h := v.HostLoad
	cores := "of its control group"
	if h.CPULimit.OK {
		cores += " is " + spellThree(h.CPULimit.V) + " CPUs, and"
	}
	text := fmt.Sprintf("The limit %s stopped it for %s s, added up over CPUs", cores, spellThree(h.Throttled.V))
	if h.ThrottledPeriods.OK {
		text += fmt.Sprintf(", in %s of its periods", spellPercent(h.ThrottledPeriods.V))
	}
	return text + fmt.Sprintf("; lanes waited for %s. Others may have the CPUs then.", spellTime(v.PutOff.Time.D))
}

// orALimit is a limit of CPU time as a suspicion, where there may be one.
func (v *view) orALimit() string {
	if v.HostLoad.Throttled.OK {
		return ""
	}
	return ", or a limit of CPU time (cpu.max of its control group)"
}

// findOversubscribed is more lanes than CPUs. Barriers of GGML spin, so that a lane
// which waits keeps the CPU from the one it waits for.
func findOversubscribed(v *view) (cause, bool) {
	n := v.Target.CPUs
	if n <= 0 || v.lanes <= n {
		return findPutOff(v)
	}
	p := v.interference().lost
	if p.ok && p.max < preemptedLimit {
		return cause{}, false
	}
	evidence := []string{fmt.Sprintf("%s compute, and the target may use %d CPUs.", spellThreads(v.lanes), n)}
	r := &remedy{
		kind: remedyFlag, do: fmt.Sprintf("Run as many threads as there are CPUs: %d instead of %d.", n, v.lanes),
		why: "Threads that wait for each other spin, and keep the CPU from the one that they wait for.", price: "none",
	}
	r.flag, r.value = v.names.spell(optThreads, strconv.Itoa(n))
	r.why += v.names.aside()
	cost := stat.None
	if p.ok {
		cost = stat.Some(p.mean)
		evidence = append(evidence, fmt.Sprintf("The lanes were ready and without a CPU for %s of the time of graphs in the mean.", spellPercent(p.mean)))
		r.gain = gainOf(0, freed(p.mean), freed(p.max))
	}
	return cause{
		Finding: Finding{ID: "oversubscribed", Severity: severityBad, Title: "More threads than CPUs", Evidence: evidence, Cost: cost},
		remedy:  r,
	}, true
}
