package comparison

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
)

// differs returns the differences in setup, the most important first.
func (c *comparing) differs() []compare.Difference {
	out := []compare.Difference{}
	add := func(what, a, b string) {
		out = append(out, compare.Difference{What: what, A: orNone(a), B: orNone(b)})
	}
	a, b := &c.a.Target, &c.b.Target
	add("CPU", a.CPU, b.CPU)
	add("CPUs", strconv.Itoa(a.CPUs), strconv.Itoa(b.CPUs))
	add("model", path.Base(a.Model), path.Base(b.Model))
	add("types of weights", weightTypes(c.a.Summary), weightTypes(c.b.Summary))
	add("runtime", a.Runtime, b.Runtime)
	for _, f := range a.Files {
		if at := slices.IndexFunc(b.Files, func(g optrace.File) bool { return g.Role == f.Role }); at >= 0 {
			add("build of "+f.Role, buildOf(f), buildOf(b.Files[at]))
		}
	}
	add("threads", strconv.Itoa(c.a.ThreadCount), strconv.Itoa(c.b.ThreadCount))
	add("command", a.Command, b.Command)
	add("kernel", a.Kernel, b.Kernel)
	add("detail", c.a.Coverage.Detail, c.b.Coverage.Detail)
	add("hook", a.Hook, b.Hook)
	return compare.Differing(out)
}

// orNone returns "unknown" for an empty string.
func orNone(s string) string {
	if s == "" || s == "." {
		return "unknown"
	}
	return s
}

// buildOf identifies the build of a file: its name and build ID, or its name alone.
func buildOf(f optrace.File) string {
	if f.BuildID == "" {
		return path.Base(f.Path)
	}
	return path.Base(f.Path) + " " + f.BuildID[:min(len(f.BuildID), 12)]
}

// weightTypes lists the types of weights that were read, sorted.
func weightTypes(s *optrace.Summary) string {
	var types []string
	for i := range s.Types {
		if t := s.Types[i].Type; t != "" && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return strings.Join(types, ", ")
}

const (
	// otherContext and otherBatch are the ratios of mean KV lengths, and of tokens per prefill
	// graph, from which the two traces did different work.
	otherContext = 1.25
	otherBatch   = 1.25
	// otherCost is the difference between the costs of tracing from which a note is made.
	otherCost = 0.02
)

// notes returns the limitations of the figures.
func (c *comparing) notes() []string {
	var out []string
	if c.a.Target.CPU != c.b.Target.CPU || c.a.Target.CPUs != c.b.Target.CPUs {
		out = append(out, "The traces are from different machines, which may cause any change.")
	}
	if c.noise == betweenRuns {
		out = append(out, fmt.Sprintf("Two processes with the same settings differ by up to %s; the intervals include that.", figure.Count(100*betweenRuns)+figure.NBSP+"%"))
	}
	if c.a.ThreadCount != c.b.ThreadCount && c.a.ThreadCount > 0 && c.b.ThreadCount > 0 && len(c.a.Steps)+len(c.a.Kinds) > 0 {
		out = append(out, fmt.Sprintf("%s and %s: the time of an operator is from its first start on any thread to its last end. It includes waits for the slower thread and is not summed over threads.", figure.Counted(c.a.ThreadCount, "thread"), figure.Counted(c.b.ThreadCount, "thread")))
	}
	for i, v := range []*evidence.View{c.a, c.b} {
		which := sideNames[i]
		if p := v.PreemptedSpread(); p.OK && p.Max >= evidence.PreemptedLimit {
			out = append(out, fmt.Sprintf("In the %s trace a thread was preempted for %s of the time%s.", which, figure.PercentSign(p.Max), byWhom(v)))
		}
		if lost := advice.ShareOf(float64(v.Coverage.Dropped), float64(v.Coverage.Events)); lost > advice.LostShare {
			out = append(out, fmt.Sprintf("The %s trace lost %s of its events.", which, figure.PercentSign(lost)))
		}
		for _, g := range v.Gaps {
			if g.What == optrace.GapEnd {
				out = append(out, fmt.Sprintf("The %s trace is incomplete: %s.", which, g.Why))
			}
		}
	}
	if !c.a.PreemptedSpread().OK || !c.b.PreemptedSpread().OK {
		out = append(out, "Not both traces recorded whether other programs took the CPU (--level sched): they may cause a change.")
	}
	if a, b := meanContext(c.a.Summary), meanContext(c.b.Summary); farApart(a, b, otherContext) {
		out = append(out, fmt.Sprintf("Contexts average %.0f and %.0f tokens: attention does different work.", a, b))
	}
	if a, b := promptGraph(c.a), promptGraph(c.b); farApart(a, b, otherBatch) {
		out = append(out, fmt.Sprintf("Prefill graphs average %.0f and %.0f tokens.", a, b))
	}
	if a, b := c.a.Observer.Cost(), c.b.Observer.Cost(); a-b > otherCost || b-a > otherCost {
		out = append(out, fmt.Sprintf("Tracing itself costs %s of the speed of the first trace and %s of the second.", figure.PercentSign(a), figure.PercentSign(b)))
	}
	return out
}

// byWhom describes the cause of the preemption, by the same judgement as the trace's findings.
func byWhom(v *evidence.View) string {
	i := v.Interference()
	switch i.Culprit {
	case evidence.ByPrograms:
		top := &i.Programs[0]
		if top.Part > evidence.MainTaker {
			return ", mostly by " + top.Describe()
		}
		return fmt.Sprintf(", the largest share by %s, %s", top.Describe(), figure.PercentSign(top.Part*i.Lost.Max))
	case evidence.ByReader:
		return ", the largest share by rooftop itself, " + figure.PercentSign(i.ByTracer)
	case evidence.ByKernel:
		return ", the largest share by kernel threads, " + figure.PercentSign(i.ByKernelThreads*i.Lost.Max)
	case evidence.ByLimit:
		return " by a limit of CPU time"
	case evidence.ByItself:
		return " by other threads of the target"
	case evidence.ByBinding:
		return ", and not by other processes"
	case evidence.ByUnknown:
		return "; the cause is unknown"
	case evidence.NoCulprit:
	}
	return ""
}

func farApart(a, b, ratio float64) bool { return a > 0 && b > 0 && (a > ratio*b || b > ratio*a) }

// meanContext returns the mean KV length over graphs, 0 if unknown.
func meanContext(s *optrace.Summary) float64 {
	var sum, graphs float64
	for i := range s.Context {
		sum += float64(s.Context[i].Length) * float64(s.Context[i].Graphs)
		graphs += float64(s.Context[i].Graphs)
	}
	if graphs <= 0 {
		return 0
	}
	return sum / graphs
}

// promptGraph returns the mean number of tokens in a prefill graph, 0 if unknown.
func promptGraph(v *evidence.View) float64 {
	if v.Prefill == nil {
		return 0
	}
	return float64(v.Prefill.Tokens) / float64(v.Prefill.Graph.Count)
}
