package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

func (m *machineView) processes() {
	u, s := m.Settings, m.s
	at, _ := m.state(sourceProcesses)
	note := m.ageNote(sourceProcesses)
	m.Title("Processes of the server", note)
	for _, problem := range s.Problems {
		m.Prose(page.Join(page.Toned(cell.Warn, u.Glyphs.Warn+figure.NBSP+"problem: "), page.Toned(cell.Body, problem)))
	}
	if len(s.Processes) == 0 {
		why := cmp.Or(at.Why, "the server's process was not found on this machine")
		m.Prose(page.Join(page.Toned(cell.Muted, u.Glyphs.Dash+" None is readable: "), page.Toned(cell.Body, why+".")))
		if at.State == loop.SourceAbsent && s.Launch == "" {
			m.Prose(page.Toned(cell.Muted, "The launch command, its flags and stuck processes of the server are unknown. The metrics page shows the rest."))
		}
		m.Space()
		return
	}
	cores, waits := "cores", "waits"
	if m.Width >= roomyTable {
		cores, waits = "CPU cores", "waits for a core"
	}
	name := leftColumn("role", 0, m.processName)
	name.Tone = m.token(sourceProcesses, cell.Strong)
	fields := []page.Field[branch]{
		name,
		column("PID", 0, func(b branch) page.Cell { return page.Words(fmt.Sprint(b.process.PID)) }),
		leftColumn("state", 1, func(b branch) page.Cell { return page.Words(processState(b.process.State)) }),
		column(cores, 2, func(b branch) page.Cell { return page.Ratio(b.process.CPU) }),
		column(waits, 3, func(b branch) page.Cell { return page.Share(b.process.RunWait) }),
		column("memory", 4, func(b branch) page.Cell { return page.Amount(stat.Some(float64(b.process.RSSBytes)), "B") }),
		column("threads", 5, func(b branch) page.Cell { return page.Integer(b.process.Threads) }),
		column("age", 6, func(b branch) page.Cell { return page.Words(figure.Elapsed(b.process.Age)) }),
	}
	for i := range fields[1:] {
		fields[i+1].Tone = m.token(sourceProcesses, cell.Body)
	}
	m.table(page.Tabulate(tree(s.Processes), fields))
	m.Space()
}

// processName returns the role of a process, with its place in the tree.
func (m *machineView) processName(b branch) page.Cell {
	p, lead := b.process, ""
	if b.depth > 0 {
		lead = strings.Repeat("  ", b.depth-1) + m.Settings.Glyphs.TeeLeft + " "
		if b.last {
			lead = strings.Repeat("  ", b.depth-1) + m.Settings.Glyphs.BottomLeft + " "
		}
	}
	name := cmp.Or(p.Role, p.Name)
	if p.Name != "" && p.Name != name && m.Width >= roomyTable {
		name += " (" + p.Name + ")"
	}
	return m.name(lead + name)
}

// branch is a process and its place in the tree.
type branch struct {
	process *loop.Process
	depth   int
	last    bool // of its siblings
}

// tree lists processes below their parents, siblings by PID. Processes whose parent is not listed
// are roots. Every process is listed exactly once.
func tree(list []loop.Process) []branch {
	order := make([]*loop.Process, len(list))
	known := map[int]bool{}
	for i := range list {
		order[i] = &list[i]
		known[list[i].PID] = true
	}
	slices.SortStableFunc(order, func(a, b *loop.Process) int { return cmp.Compare(a.PID, b.PID) })
	var out []branch
	done := map[*loop.Process]bool{}
	var add func(p *loop.Process, depth int, last bool)
	add = func(p *loop.Process, depth int, last bool) {
		if done[p] {
			return
		}
		done[p] = true
		out = append(out, branch{p, depth, last})
		var children []*loop.Process
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
	for _, p := range order { // parents in a cycle: the reading is inconsistent
		add(p, 0, false)
	}
	return out
}

// processState returns the word for a state letter of the scheduler.
func processState(letter string) string {
	words := map[string]string{"R": "running", "S": "sleeping", "D": "waits for a device", "T": "stopped", "t": "traced", "Z": "dead, not collected", "X": "dead", "I": "idle"}
	return cmp.Or(words[letter], letter, figure.Absent)
}
