package optrace

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// differs are what the two sides do not share, what matters most first.
func (c *comparing) differs() []Difference {
	out := []Difference{}
	add := func(what, a, b string) {
		if a != b {
			out = append(out, Difference{What: what, A: orNone(a), B: orNone(b)})
		}
	}
	a, b := &c.a.Target, &c.b.Target
	add("CPU", a.CPU, b.CPU)
	add("CPUs", strconv.Itoa(a.CPUs), strconv.Itoa(b.CPUs))
	add("model", path.Base(a.Model), path.Base(b.Model))
	add("types of weights", weightTypes(c.a.Summary), weightTypes(c.b.Summary))
	add("runtime", a.Runtime, b.Runtime)
	for _, f := range a.Files {
		if at := slices.IndexFunc(b.Files, func(g File) bool { return g.Role == f.Role }); at >= 0 {
			add("build of "+f.Role, buildOf(f), buildOf(b.Files[at]))
		}
	}
	add("threads", strconv.Itoa(c.a.lanes), strconv.Itoa(c.b.lanes))
	add("command", a.Command, b.Command)
	add("kernel", a.Kernel, b.Kernel)
	add("detail", c.a.Coverage.Detail, c.b.Coverage.Detail)
	add("hook", a.Hook, b.Hook)
	return out
}

func orNone(s string) string {
	if s == "" || s == "." {
		return "not known"
	}
	return s
}

// buildOf tells one build of a file from another: its id, or its name where it has none.
func buildOf(f File) string {
	if f.BuildID == "" {
		return path.Base(f.Path)
	}
	return path.Base(f.Path) + " " + f.BuildID[:min(len(f.BuildID), 12)]
}

// weightTypes are the types of weights that were read, in the order of their names.
func weightTypes(s *Summary) string {
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
	// otherContext and otherBatch are ratios of mean KV lengths, and of tokens in a
	// prefill, from which on the two did different work.
	otherContext = 1.25
	otherBatch   = 1.25
	// otherCost is the difference of what tracing costs both that is worth telling.
	otherCost = 0.02
)

// notes are what to know before the figures are believed.
func (c *comparing) notes() []string {
	var out []string
	if c.a.Target.CPU != c.b.Target.CPU || c.a.Target.CPUs != c.b.Target.CPUs {
		out = append(out, "The two were traced on different machines: every change is also theirs.")
	}
	if c.noise == betweenRuns {
		out = append(out, fmt.Sprintf("Two processes of the same settings differ by up to %s; the intervals hold that.", spellPercent(betweenRuns)))
	}
	if c.a.lanes != c.b.lanes && c.a.lanes > 0 && c.b.lanes > 0 && len(c.a.Steps)+len(c.a.Kinds) > 0 {
		out = append(out, fmt.Sprintf("%s and %s: times of operators are from the first begin on any thread to the last end, so that waits for the slower thread are in them; they are no sums over threads.", spellThreads(c.a.lanes), spellThreads(c.b.lanes)))
	}
	for i, v := range []*view{c.a, c.b} {
		which := [...]string{"first", "second"}[i]
		if p := v.preempted(); p.ok && p.max >= preemptedLimit {
			out = append(out, fmt.Sprintf("In the %s trace a thread was put off its CPU for %s of the time%s.", which, spellPercent(p.max), byWhom(v)))
		}
		if lost := shareOf(float64(v.Coverage.Dropped), float64(v.Coverage.Events)); lost > lostShare {
			out = append(out, fmt.Sprintf("The %s trace lost %s of its events.", which, spellPercent(lost)))
		}
		for _, g := range v.Gaps {
			if g.What == GapEnd {
				out = append(out, fmt.Sprintf("Of the %s trace, %s.", which, g.Why))
			}
		}
	}
	if !c.a.preempted().ok || !c.b.preempted().ok {
		out = append(out, "Whether other programs took the CPU meanwhile was not traced in both (--level sched): a change may be theirs.")
	}
	if a, b := meanContext(c.a.Summary), meanContext(c.b.Summary); farApart(a, b, otherContext) {
		out = append(out, fmt.Sprintf("Contexts are %.0f and %.0f tokens long in the mean: attention does not have the same work.", a, b))
	}
	if a, b := promptGraph(c.a), promptGraph(c.b); farApart(a, b, otherBatch) {
		out = append(out, fmt.Sprintf("Graphs of prefills have %.0f and %.0f tokens in the mean.", a, b))
	}
	if a, b := c.a.Observer.Cost(), c.b.Observer.Cost(); a-b > otherCost || b-a > otherCost {
		out = append(out, fmt.Sprintf("Tracing itself takes %s of the speed of the first and %s of that of the second.", spellPercent(a), spellPercent(b)))
	}
	return out
}

// byWhom says who put lanes off their CPUs, by the judgement of the trace's own findings.
func byWhom(v *view) string {
	i := v.interference()
	switch i.culprit {
	case culpritPrograms:
		top := &i.programs[0]
		if top.part > mainThief {
			return ", mostly by " + top.who()
		}
		return fmt.Sprintf(", the most of any by %s, %s", top.who(), spellPercent(top.part*i.lost.max))
	case culpritReader:
		return ", the most of any by the reader of the trace, " + spellPercent(i.tracer)
	case culpritKernel:
		return ", the most of any by threads of the kernel, " + spellPercent(i.kernel*i.lost.max)
	case culpritLimit:
		return " by a limit of CPU time"
	case culpritItself:
		return " by other threads of the target"
	case culpritBinding:
		return ", and not by other processes"
	case culpritUnknown:
		return "; by whom is not known"
	case culpritNone:
	}
	return ""
}

func farApart(a, b, ratio float64) bool { return a > 0 && b > 0 && (a > ratio*b || b > ratio*a) }

// meanContext is the mean KV length over graphs, 0 unknown.
func meanContext(s *Summary) float64 {
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

// promptGraph is the mean of tokens in a graph of a prefill, 0 unknown.
func promptGraph(v *view) float64 {
	if v.prefill == nil {
		return 0
	}
	return float64(v.prefill.Tokens) / float64(v.prefill.Graph.Count)
}
