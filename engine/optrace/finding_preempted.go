package optrace

import (
	"fmt"
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
	// thiefLimit is the share that other processes must have had: without one to name,
	// the lanes took the CPUs from each other.
	thiefLimit = 0.01
	// mainThief is the share of what the lanes lose that one process must have taken to
	// be the one to stop.
	mainThief = 0.5
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
	p := v.preempted()
	takers := v.takers()
	if !p.ok || p.max < preemptedLimit || len(takers) == 0 || takers[0].Share.Or(0) < thiefLimit || v.putOffByItself(p) {
		return cause{}, false
	}
	thief := mainTaker(takers)
	severity := severityWarn
	if p.max >= preemptedBad {
		severity = severityBad
	}
	without := fmt.Sprintf("Lane %d was ready and without a CPU for %s of the time of graphs", p.most, spellPercent(p.max))
	if v.lanes > 1 {
		without += fmt.Sprintf(", the mean of %s is %s", spellThreads(v.lanes), spellPercent(p.mean))
	}
	evidence := []string{
		without + ".",
		"Of the time of graphs the CPU went to " + thieves(takers) + ".",
	}
	if v.lanes > 1 {
		evidence = append(evidence, "The other lanes wait at the next barrier for the one that was put off, so that every operator looks slower.")
	}
	c := cause{Finding: Finding{ID: "preempted", Severity: severity, Title: "Another process takes the CPU: interference, not a slow operator", Evidence: evidence, Cost: stat.Some(p.max)}}
	if thief.Name == OwnName {
		c.Title = "The reader of this trace takes the CPU: interference, not a slow operator"
		c.remedy = &remedy{
			kind: remedyTrace, do: "Trace with less detail, or leave rooftop a CPU of its own.", flag: levelFlag, value: v.lighter(),
			why: "The reader of the trace itself takes the CPU from the lanes.", price: "fewer figures",
		}
		return c, true
	}
	c.remedy = &remedy{kind: remedyHost, price: "the others get less of the machine"}
	// One lane at least gets back what is taken from it, as far as no other process takes
	// that; at most all wait for each that is off.
	least, most := min(1/float64(max(v.lanes, 1)), remains), v.lostByAll(p)
	if thief.Share.V >= mainThief*p.max {
		expected := min(thief.Share.V, most)
		c.remedy.do = "Keep " + thief.who() + " off the CPUs of this runtime (taskset, a cpuset), or stop it."
		c.remedy.why = fmt.Sprintf("It had a lane's CPU for %s of the time of graphs.", spellPercent(thief.Share.V))
		c.remedy.gain = gainOf(freed(least*thief.Share.V), freed(expected), freed(most))
	} else {
		c.remedy.do = "Give this runtime CPUs of its own (taskset, a cpuset): several processes take turns on them."
		c.remedy.why = fmt.Sprintf("No single one takes most of the %s that a lane loses.", spellPercent(p.max))
		c.remedy.gain = gainOf(freed(remains*p.mean), freed(p.max), freed(most))
	}
	return c, true
}

// takers are the processes that are known to have had a lane's CPU, the one that traced
// among them, those that took most first.
func (v *view) takers() []OtherRow {
	list := slices.DeleteFunc(slices.Clone(v.Others), func(o OtherRow) bool { return o.Name == UntoldName })
	if r := v.Observer.Reader; r.Or(0) > 0 {
		at := slices.IndexFunc(list, func(o OtherRow) bool { return o.Time < v.Observer.ReaderTime })
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, OtherRow{Name: OwnName, Time: v.Observer.ReaderTime, Share: r})
	}
	return list
}

// mainTaker is the process that took most beside the one that traces, and that one where
// no other took enough to name.
func mainTaker(list []OtherRow) *OtherRow {
	for i := range list {
		if o := &list[i]; o.Name != OwnName && o.Share.Or(0) >= thiefLimit {
			return o
		}
	}
	return &list[0]
}

// who is a process with its name.
func (o *OtherRow) who() string {
	name := o.Name
	if name == "" {
		name = "a process"
	}
	if o.PID <= 0 || name == OwnName {
		return name
	}
	return fmt.Sprintf("%s (PID %d)", name, o.PID)
}

// thieves are the processes that took most, with their shares.
func thieves(list []OtherRow) string {
	var out []string
	for i := range list {
		if o := &list[i]; i < mostThieves && o.Share.Or(0) >= thiefLimit {
			out = append(out, o.who()+" "+spellPercent(o.Share.V))
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

// untold is the part of what lanes lose that other processes must not have had at least,
// for the target itself or its limits to be the cause.
const untold = 0.5

// putOffByItself says that what lanes lose is hardly due to other processes.
func (v *view) putOffByItself(p spread) bool {
	return p.ok && p.max >= preemptedBad && v.othersShare() <= (1-untold)*p.max
}

// findThrottled is the part of findOversubscribed with no more lanes than CPUs: lanes that are put off their CPUs while no other process has these:
// other threads of the target do, or nobody does, since it used up a limit of CPU time.
func findThrottled(v *view) (cause, bool) {
	p := v.preempted()
	if !v.putOffByItself(p) {
		return cause{}, false
	}
	evidence := []string{
		fmt.Sprintf("Lane %d was ready and without a CPU for %s of the time of graphs.", p.most, spellPercent(p.max)),
		fmt.Sprintf("Other processes had its CPU for %s of it.", spellPercent(v.othersShare())),
	}
	if n := v.Target.CPUs; n > 0 {
		evidence = append(evidence, fmt.Sprintf("%s compute a graph, and the target may use %d CPUs.", spellThreads(v.lanes), n))
	}
	return cause{
		Finding: Finding{ID: "oversubscribed", Severity: severityBad, Title: "Threads are put off their CPUs, and not by other processes", Evidence: evidence, Cost: stat.Some(p.max)},
		remedy: &remedy{
			kind: remedyHost, do: "Look for contexts that compute at once with more threads than CPUs together, and for a limit of CPU time (cpu.max of its cgroup, --cpus of a container): one thread for each CPU that it has.",
			why:   "Either the runtime's own threads take the CPUs from each other, or a limit stops them; both hold up the whole graph at the next barrier.",
			price: "none where threads wait for each other; a higher limit takes CPU time from others",
			gain:  gainOf(0, freed(p.mean)/2, freed(p.max)),
		},
	}, true
}

// findOversubscribed is more lanes than CPUs. Barriers of GGML spin, so that a lane
// which waits keeps the CPU from the one it waits for.
func findOversubscribed(v *view) (cause, bool) {
	n := v.Target.CPUs
	if n <= 0 || v.lanes <= n {
		return findThrottled(v)
	}
	p := v.preempted()
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
