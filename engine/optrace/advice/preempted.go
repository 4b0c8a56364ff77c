package advice

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// mostTakers is the number of processes that are named.
	mostTakers = 3
	// partRetaken is the assumed share of a process's CPU time that others take over if the process
	// goes away, for the lower end of a gain.
	partRetaken = 0.5
)

// findPreempted finds other processes on the CPUs of compute threads: interference, not a slow
// operator.
func findPreempted(v *subject) *cause {
	i := v.Interference()
	p := i.Lost
	c := newCause(severityFrom(p.Max, optrace.PreemptedBad), "", stat.Some(p.Max), v.withoutCPU(&i))
	c.Evidence = append(c.Evidence, v.othersElsewhere(&i)...)
	if list := v.takers(&i); list != "" {
		c.Evidence = append(c.Evidence, "The CPU time that the threads lost went to "+list+".")
	}
	if v.ThreadCount > 1 {
		c.Evidence = append(c.Evidence, "The other threads wait at the next barrier for the preempted one, so every operator looks slower.")
	}
	switch i.Culprit {
	case optrace.ByPrograms:
		c.Title = "Another process takes the CPU: interference, not a slow operator"
		c.remedy = v.keepOff(&i)
	case optrace.ByKernel:
		c.Title = "The kernel's own threads take the CPU: interference, not a slow operator"
		c.instead = "kernel threads work for all programs (disks, network, memory); no setting of this runtime stops them"
	default:
		return nil
	}
	return c
}

// withoutCPU describes for how long threads were ready without a CPU, apart from what the
// tracer took.
func (v *subject) withoutCPU(i *optrace.Interference) string {
	text := fmt.Sprintf("Thread %d was ready but had no CPU for %s of the time of graphs", i.Lost.Highest, figure.PercentSign(i.Lost.Max))
	if v.ThreadCount > 1 {
		text += fmt.Sprintf("; the mean of %s is %s", figure.Counted(v.ThreadCount, "thread"), figure.PercentSign(i.Lost.Mean))
	}
	if i.ByTracer >= optrace.LeastShown {
		text += "; the CPU time of rooftop itself is not included, it is a cost of the trace"
	}
	return text + "."
}

// keepOff returns the remedy against other programs. The time that the kernel took cannot be
// saved.
func (v *subject) keepOff(i *optrace.Interference) *remedy {
	p, taker := i.Lost, &i.Programs[0]
	all := min(i.ByAllPrograms, 1)
	// At least one thread regains what was taken from it, unless another process takes that; at
	// most all threads wait for each one that is off its CPU.
	least, most := min(1/float64(max(v.ThreadCount, 1)), partRetaken), all*v.LostByAll(p)
	r := &remedy{kind: remedyHost, price: "the others get less of the machine"}
	if taker.Part < optrace.MainTaker || taker.PID <= 0 {
		r.do = "Give this runtime CPUs of its own (taskset, a cpuset): several processes take turns on them."
		r.why = fmt.Sprintf("No single process takes most of the %s that a thread loses.", figure.PercentSign(p.Max)) + v.fewerMeanwhile(i)
		r.gain = gainOf(freed(partRetaken*all*p.Mean), freed(all*p.Max), freed(most))
		return r
	}
	// A graph is delayed by the thread that loses most in it, which differs from graph to
	// graph.
	took := max(taker.Share.Or(0), taker.Part*p.Max)
	r.do = "Keep " + taker.Describe() + " off the CPUs of this runtime (taskset, a cpuset), lower its priority (nice), or stop it."
	r.why = fmt.Sprintf("It had the CPU for %s of the time that threads lost.", figure.PercentSign(taker.Part))
	if i.Elsewhere*p.Max >= optrace.TakerLimit {
		r.why = fmt.Sprintf("It causes %s of the time that threads lost (est): it had their CPU or another one, so they took turns on the rest.", figure.PercentSign(taker.Part))
	}
	r.why += v.fewerMeanwhile(i)
	r.gain = gainOf(freed(least*took), freed(min(took, most)), freed(most))
	return r
}

// fewerMeanwhile suggests fewer threads while other programs have the CPUs, because threads at
// a barrier spin on the CPU that the awaited one needs. It returns "" if all threads fit the
// remaining CPUs, or little is lost.
func (v *subject) fewerMeanwhile(i *optrace.Interference) string {
	h := v.HostLoad
	if h == nil || h.CPUs <= 0 || v.ThreadCount < 2 || i.Lost.Max < optrace.PreemptedBad {
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

// othersElsewhere describes which programs used the CPUs on which no thread waited, if that cost
// threads time.
func (v *subject) othersElsewhere(i *optrace.Interference) []string {
	h := v.HostLoad
	if h == nil || i.Elsewhere*i.Lost.Max < optrace.TakerLimit {
		return nil
	}
	list := make([]string, 0, mostTakers)
	for k := range h.Processes {
		if p := &h.Processes[k]; len(list) < mostTakers && h.CPUsOf(p.Time) >= optrace.TakerLimit {
			row := optrace.OtherRow{PID: p.PID, Name: p.Name}
			list = append(list, fmt.Sprintf("%s %s", row.Describe(), figure.Significant(h.CPUsOf(p.Time))))
		}
	}
	whose := "other programs used " + figure.Significant(h.CPUsOf(h.Others)) + " CPUs over the whole trace"
	if len(list) > 0 {
		whose += " (" + strings.Join(list, ", ") + ")"
	}
	return []string{fmt.Sprintf("While a thread waited, the target had %s of the %d CPUs that it may use; %s. Its threads took turns on the rest.", figure.Significant(v.Preempted.OwnCPUs.V), h.CPUs, whose)}
}

// takers lists the processes that took most, with their parts of the lost time.
func (v *subject) takers(i *optrace.Interference) string {
	var out []string
	part := v.Parts(i.Lost.Max)
	for _, o := range v.HadTheCPU() {
		if p := part(&o); len(out) < mostTakers && p*i.Lost.Max >= optrace.TakerLimit {
			out = append(out, o.Describe()+" "+figure.PercentSign(p))
		}
	}
	return strings.Join(out, ", ")
}
