package capture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// servingRoles are the roles without which a server no longer answers, or answers less.
// Launchers are not among them: a shell around a server may well end before it does.
var servingRoles = []string{"server", "api-server", "engine-core", "worker", "coordinator", "detokenizer"}

// ending is the end of a process during a run.
type ending struct {
	of *Process
	at time.Duration // of the first look that it was dead at, or gone
}

// endings says which part of the server ended during the run: what was measured
// afterwards is not of the server that was there before.
func (c *Capture) endings() []Warning {
	ends := c.Tree.ends()
	allEnded := len(ends) == len(c.Tree.Processes)
	ends = slices.DeleteFunc(ends, func(e ending) bool { return !c.serves(e.of, allEnded) })
	if len(ends) == 0 {
		return nil
	}
	slices.SortStableFunc(ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	first := ends[0]
	text := fmt.Sprintf("%s %d (%s) ended %s", cmp.Or(first.of.Role, "process"), first.of.PID, name(*first.of), c.when(first.at))
	if n := len(ends) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more of the server with it or after it", n)
	}
	text += ": figures from then on are of what was left; its log says why, and dmesg | grep -i 'killed process' whether the kernel did it for want of memory"
	return []Warning{{ID: "server-ended", Text: text}}
}

// serves tells whether a process counts as the server's: the one that was asked for, the
// one that listens, and those that were there at the begin with a role that serves. What
// comes later and goes is a helper, or looks like one. A launcher that was asked for
// counts where nothing of what it started is left.
func (c *Capture) serves(p *Process, allEnded bool) bool {
	switch {
	case p.Role == "launcher" && !allEnded:
		return false
	case p.PID == c.Tree.Root || p.PID == c.Tree.Listener.PID:
		return true
	case c.unloaded(p):
		return false
	}
	return slices.Contains(servingRoles, p.Role) && (p.Joined <= c.Begin || p.Earlier)
}

// unloaded tells whether a process is one of those that Ollama starts for a model and
// ends with it; where a request failed it may have crashed instead.
func (c *Capture) unloaded(p *Process) bool {
	if p.Role != "worker" || slices.ContainsFunc(c.Requests, func(r Request) bool { return r.Error != "" }) {
		return false
	}
	return slices.ContainsFunc(c.Tree.Processes, func(up Process) bool {
		return up.PID == p.PPID && strings.HasPrefix(up.Comm, "ollama")
	})
}

// ends lists the processes that ended between two looks. One that is dead and that its
// parent has not waited for is still in the tree, without a thread.
func (t *Tree) ends() []ending {
	lived, dead := make([]bool, len(t.Processes)), make([]*time.Duration, len(t.Processes))
	for i := range t.Samples {
		look := &t.Samples[i]
		for _, s := range look.Processes {
			switch {
			case s.Threads > 0:
				lived[s.Process], dead[s.Process] = true, nil
			case lived[s.Process] && dead[s.Process] == nil:
				dead[s.Process] = &look.At
			}
		}
	}
	var out []ending
	for i := range t.Processes {
		switch p := &t.Processes[i]; {
		case dead[i] != nil:
			out = append(out, ending{p, *dead[i]})
		case p.Gone:
			out = append(out, ending{p, p.Left})
		}
	}
	return out
}

// when places a moment by the begin of the run.
func (c *Capture) when(at time.Duration) string {
	begin := "the first send"
	if c.Kind == Observation {
		begin = "the window began"
	}
	if at <= c.Begin {
		return "before " + begin
	}
	return figure.Show(stat.Some((at-c.Begin).Seconds()), "s") + " after " + begin
}
