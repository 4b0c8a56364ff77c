package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

func (m *machineView) processes() {
	u, s := m.u, m.s
	at, _ := m.state(sourceProcesses)
	note := m.ageNote(sourceProcesses)
	m.title("Processes of the server", note)
	for _, problem := range s.Problems {
		m.say(line(u.say(cell.Warn, u.glyphs.Warn+figure.NBSP+"problem: "), u.say(cell.Body, problem)))
	}
	if len(s.Processes) == 0 {
		why := cmp.Or(at.Why, "the server's process was not found on this machine")
		m.say(line(u.say(cell.Muted, u.glyphs.Dash+" None is readable: "), u.say(cell.Body, why+".")))
		if at.State == engine.SourceAbsent && s.Launch == "" {
			m.say(u.say(cell.Muted, "Switched off: the launch command and its flags, and what stands still in the server's tree. The metrics page tells the rest."))
		}
		m.space()
		return
	}
	columns := []column{
		{head: "role", left: true}, {head: "PID"}, {head: "state", left: true}, {head: "cores"}, {head: "waits"}, {head: "memory"}, {head: "threads"}, {head: "age"},
	}
	if m.w >= roomyTable {
		columns[3].head, columns[4].head = "CPU cores", "waits for a core"
	}
	for _, b := range tree(s.Processes) {
		p := b.process
		lead := ""
		if b.depth > 0 {
			branch := u.glyphs.TeeLeft
			if b.last {
				branch = u.glyphs.BottomLeft
			}
			lead = strings.Repeat("  ", b.depth-1) + branch + " "
		}
		name := cmp.Or(p.Role, p.Name)
		if p.Name != "" && p.Name != name && m.w >= roomyTable {
			name += " (" + p.Name + ")"
		}
		addRow(columns, lead+name, fmt.Sprint(p.PID), processState(p.State), cores(p.CPU), figure.Show(finite(p.RunWait), "ratio"),
			figure.Show(stat.Some(float64(p.RSSBytes)), "B"), figure.Whole(float64(p.Threads)), lasting(p.Age))
	}
	m.table(columns, func(_, col int) cell.Token {
		if col == 0 {
			return m.token(sourceProcesses, cell.Strong)
		}
		return m.token(sourceProcesses, cell.Body)
	})
	m.space()
}

func cores(v stat.Opt) string {
	if !number(v) {
		return figure.Absent
	}
	return figure.Significant(v.V)
}

// branch is a process at its place in the tree.
type branch struct {
	process *engine.Process
	depth   int
	last    bool // of its siblings
}

// tree lists processes below their parents, each generation by PID. Those whose
// parent is not among them are roots; none is left out or listed twice.
func tree(list []engine.Process) []branch {
	order := make([]*engine.Process, len(list))
	known := map[int]bool{}
	for i := range list {
		order[i] = &list[i]
		known[list[i].PID] = true
	}
	slices.SortStableFunc(order, func(a, b *engine.Process) int { return cmp.Compare(a.PID, b.PID) })
	var out []branch
	done := map[*engine.Process]bool{}
	var add func(p *engine.Process, depth int, last bool)
	add = func(p *engine.Process, depth int, last bool) {
		if done[p] {
			return
		}
		done[p] = true
		out = append(out, branch{p, depth, last})
		var children []*engine.Process
		for _, c := range order {
			if c.PPID == p.PID && !done[c] {
				children = append(children, c)
			}
		}
		for i, c := range children {
			add(c, depth+1, i == len(children)-1)
		}
	}
	for _, p := range order {
		if !known[p.PPID] || p.PPID == p.PID {
			add(p, 0, false)
		}
	}
	for _, p := range order { // parents in a circle: the reading is torn
		add(p, 0, false)
	}
	return out
}

// processState spells the scheduler's letter.
func processState(letter string) string {
	words := map[string]string{"R": "running", "S": "sleeping", "D": "waits for a device", "T": "stopped", "t": "traced", "Z": "dead, not collected", "X": "dead", "I": "idle"}
	return cmp.Or(words[letter], letter, figure.Absent)
}
