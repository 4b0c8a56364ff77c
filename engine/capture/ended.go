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

// servingRoles are the roles without which a server no longer answers, or has less capacity.
// Launchers are not included: a shell around a server may end before it does.
var servingRoles = []string{"server", "api-server", "engine-core", "worker", "coordinator", "detokenizer"}

// ending is the end of a process during a run.
type ending struct {
	process *Process
	at      time.Duration // of the first sample in which it is dead or gone
}

// endings warns if a part of the server ended during the run, because later measurements describe a
// different server.
func endings(c *Capture) []Warning {
	ends := c.Tree.ends()
	allEnded := len(ends) == len(c.Tree.Processes)
	ends = slices.DeleteFunc(ends, func(e ending) bool { return !c.serves(e.process, allEnded) })
	if len(ends) == 0 {
		return nil
	}
	slices.SortStableFunc(ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	first := ends[0]
	text := fmt.Sprintf("%s %d (%s) ended %s", cmp.Or(first.process.Role, "process"), first.process.PID, name(*first.process), c.when(first.at))
	if n := len(ends) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more processes of the server with it or after it", n)
	}
	text += ": later figures describe the remaining processes; check its log, and dmesg | grep -i 'killed process' for an out-of-memory kill"
	return []Warning{{ID: "server-ended", Text: text}}
}

// serves reports whether a process belongs to the server: the requested one, the listening one, and
// those that existed at the beginning of the run with a serving role. Processes that start and end
// during the run are helpers. A requested launcher counts only if none of its processes is left.
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

// unloaded reports whether a process is one that Ollama starts for a model and ends with it. If a
// request failed, it may have crashed instead.
func (c *Capture) unloaded(p *Process) bool {
	if p.Role != "worker" || slices.ContainsFunc(c.Requests, func(r Request) bool { return r.Error != "" }) {
		return false
	}
	return slices.ContainsFunc(c.Tree.Processes, func(up Process) bool {
		return up.PID == p.PPID && strings.HasPrefix(up.Comm, "ollama")
	})
}

// ends returns the processes that ended between two samples. A dead process that its parent has not
// waited for is still in the tree, without threads.
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

// when describes a time relative to the beginning of the run.
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
