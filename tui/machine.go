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
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// drawMachine shows the GPUs, the server's processes and how rooftop's own readings
// come in.
func drawMachine(p cell.Pane, s *engine.Snapshot, u *look) int {
	if s == nil {
		return 0
	}
	p = p.Sub(1, 0, min(p.Width()-2, machineCells), p.Height())
	m := &machineView{s: s, u: u, w: p.Width()}
	m.gpus()
	m.processes()
	m.sources()
	first := max(0, u.scroll[viewMachine])
	for y := range p.Height() {
		if first+y < len(m.rows) {
			m.rows[first+y](p.Sub(0, y, p.Width(), 1))
		}
	}
	return len(m.rows)
}

// machineCells is how wide the view gets: bars say no more when they are longer.
const machineCells = 130

// roomyTable is the width from which tables spell out what they show.
const roomyTable = 96

// machineView collects the lines of the view.
type machineView struct {
	s    *engine.Snapshot
	u    *look
	w    int
	rows []func(cell.Pane)
}

func (m *machineView) row(draw func(p cell.Pane)) { m.rows = append(m.rows, draw) }

func (m *machineView) say(l prose) {
	for _, part := range l.wrap(m.w) {
		m.row(func(p cell.Pane) { part.draw(p, 0, 0) })
	}
}

func (m *machineView) space() { m.row(func(cell.Pane) {}) }

func (m *machineView) title(text string, note prose) {
	q := panel{title: text, note: note}
	m.row(func(p cell.Pane) { m.u.heading(p, &q) })
}

// state is a source, and whether its figures are of now.
func (m *machineView) state(i int) (at engine.SourceState, fresh bool) {
	if i >= len(m.s.Sources) {
		return engine.SourceState{}, true
	}
	at = m.s.Sources[i]
	return at, at.State == engine.SourceFresh || at.State == engine.SourceAbsent
}

// Places of the sources in a snapshot.
const (
	sourceMetrics = iota
	sourceGPU
	sourceProcesses
)

// ageNote says how old the figures of a source are where they are not of now.
func (m *machineView) ageNote(i int) prose {
	at, fresh := m.state(i)
	if fresh {
		return nil
	}
	return m.u.say(cell.Warn, m.u.glyphs.Warn+" "+lasting(m.s.Now-at.Last)+" old")
}

func (m *machineView) token(i int, t cell.Token) cell.Token {
	if _, fresh := m.state(i); !fresh {
		return cell.Muted
	}
	return t
}

// few is how many GPUs are shown with bars; more of them are a table.
const few = 2

func (m *machineView) gpus() {
	g := m.s.GPU
	if g == nil || len(g.Devices) == 0 {
		m.noGPU()
		m.space()
		return
	}
	if len(g.Devices) <= few {
		for i := range g.Devices {
			m.card(&g.Devices[i])
			m.space()
		}
		return
	}
	m.gpuTable(g.Devices)
	m.space()
}

// noGPU says why no GPU is readable, and what that switches off.
func (m *machineView) noGPU() {
	u := m.u
	m.title("GPU", nil)
	at, _ := m.state(sourceGPU)
	m.say(line(u.say(cell.Muted, u.glyphs.Dash+" No GPU is readable: "), u.say(cell.Body, cmp.Or(m.s.GPUWhy, at.Why, "nothing is known of one")+".")))
	for _, x := range m.s.Missing {
		if strings.Contains(strings.ToLower(x.What), "gpu") && x.Effect != "" {
			m.say(u.say(cell.Muted, "Switched off: "+x.Effect+"."))
		}
	}
}

// card is one GPU with bars.
func (m *machineView) card(g *engine.GPU) {
	u, f := m.u, &g.Fields
	m.title(fmt.Sprintf("GPU %d  %s", g.Index, g.Name), m.ageNote(sourceGPU))
	m.bar("busy", f[engine.GPUUtil], stat.Some(1), "ratio")
	m.bar("memory", f[engine.GPUVRAMUsed], f[engine.GPUVRAMTotal], "B")
	m.bar("power", f[engine.GPUPowerW], f[engine.GPUPowerLimitW], "W")
	if v := f[engine.GPUDRAMActive]; v.OK {
		m.bar("DRAM", v, stat.Some(1), "ratio")
	}
	if v := f[engine.GPUTensorUtil]; v.OK {
		m.bar("tensor", v, stat.Some(1), "ratio")
	}
	token := m.token(sourceGPU, cell.Body)
	says := prose(nil)
	add := func(label string, v stat.Opt, unit string) {
		if len(says) > 0 {
			says = line(says, u.say(cell.Muted, ",  "))
		}
		says = line(says, u.say(cell.Muted, strings.ReplaceAll(label, " ", figure.NBSP)+figure.NBSP), u.say(token, figure.Show(v, unit)))
	}
	add("temperature", f[engine.GPUTemperatureC], "C")
	add("core clock", f[engine.GPUSMClockMHz], "MHz")
	add("memory clock", f[engine.GPUMemClockMHz], "MHz")
	if v := f[engine.GPUPCIeRxBps]; v.OK {
		add("PCIe in", v, "B/s")
		add("out", f[engine.GPUPCIeTxBps], "B/s")
	}
	if v := f[engine.GPUNVLinkRxBps]; v.OK {
		add("NVLink in", v, "B/s")
		add("out", f[engine.GPUNVLinkTxBps], "B/s")
	}
	m.say(says)
	sign, words, t := u.throttled(g)
	m.say(line(u.say(cell.Muted, "clocks"+figure.NBSP), u.say(t, sign+figure.NBSP+words)))
}

// Columns of a bar: its label, its figure, its limit.
const (
	barLabel = 8
	barValue = 16
	barLimit = 28
)

// bar is a reading against its limit, in the unit of the limit.
func (m *machineView) bar(label string, v, limit stat.Opt, unit string) {
	u := m.u
	m.row(func(p cell.Pane) {
		p.Text(0, 0, cell.Muted, label)
		x := barLabel
		if !number(v) {
			p.Right(barValue, 0, cell.Muted, figure.Absent)
			return
		}
		text, small := figure.Amount(v.V, unit)
		p.Right(barValue, 0, m.token(sourceGPU, cell.Strong), text)
		if unit == "ratio" || !number(limit) {
			x = p.Text(barValue+1, 0, cell.Muted, small)
		} else {
			whole, large := figure.Amount(limit.V, unit)
			if small != large {
				p.Text(barValue+1, 0, cell.Muted, small+" of "+whole+" "+large)
			} else {
				p.Text(barValue+1, 0, cell.Muted, "of "+whole+" "+large)
			}
		}
		x = max(x, barLimit) + 2
		if w := min(p.Width()-x, 60); w >= 8 && number(limit) && limit.V > 0 {
			b := chart.Bar{Value: v, Token: m.token(sourceGPU, cell.Accent), Top: limit.V}
			b.Draw(p.Sub(x, 0, w, 1), u.glyphs)
		}
	})
}

// throttled says in words what holds a GPU's clocks back (NVML's clock event
// reasons, nvml.h).
func (u *look) throttled(g *engine.GPU) (sign, words string, t cell.Token) {
	if !g.ThrottleOK {
		return u.glyphs.Dash, "what holds them back cannot be read", cell.Muted
	}
	reasons := []struct {
		bit     uint64
		words   string
		harmful bool
	}{
		{0x4, "the power limit", true}, {0x8, "a hardware slowdown", true}, {0x20, "its temperature (driver)", true},
		{0x40, "its temperature (hardware)", true}, {0x80, "the power supply", true},
		{0x2, "the clocks that applications asked for", false}, {0x10, "clocks kept equal with other GPUs", false}, {0x100, "the display's clocks", false},
	}
	var list []string
	bad := false
	for _, r := range reasons {
		if g.Throttle&r.bit != 0 {
			list = append(list, r.words)
			bad = bad || r.harmful
		}
	}
	switch {
	case bad:
		return u.glyphs.Warn, "held back by " + strings.Join(list, ", "), cell.Warn
	case len(list) > 0:
		return u.glyphs.Info, "set by " + strings.Join(list, ", "), cell.Body
	case g.Throttle&0x1 != 0:
		return u.glyphs.Info, "low: nothing runs", cell.Muted
	}
	return u.glyphs.Good, "not held back", cell.OK
}

// column is one column of a table: cells are set right but in the first.
type column struct {
	head  string
	left  bool
	texts []string
}

// widthOf is the width of a column.
func (c *column) widthOf() int {
	n := cell.Width(c.head)
	for _, t := range c.texts {
		n = max(n, cell.Width(t))
	}
	return n
}

// table draws columns side by side; those at the end that do not fit are left out.
func (m *machineView) table(columns []column, token func(row, col int) cell.Token) {
	rows := 0
	for i := range columns {
		for j, t := range columns[i].texts {
			columns[i].texts[j] = m.u.spell(t)
		}
		rows = max(rows, len(columns[i].texts))
	}
	if len(columns) > 0 { // a first column never takes more than half
		first := &columns[0]
		if most := max(12, m.w/2); first.widthOf() > most {
			for j := range first.texts {
				first.texts[j] = cell.Cut(first.texts[j], most, m.u.glyphs.Ellipsis)
			}
		}
	}
	for row := -1; row < rows; row++ {
		m.row(func(p cell.Pane) {
			x := 0
			for i := range columns {
				c := &columns[i]
				w := c.widthOf()
				if x+w > p.Width() && i > 0 {
					return
				}
				text, t := c.head, cell.Muted
				if row >= 0 {
					text, t = c.texts[row], token(row, i)
				}
				if c.left {
					p.Text(x, 0, t, text)
				} else {
					p.Right(x+w, 0, t, text)
				}
				x += w + 2
			}
		})
	}
}

// gpuTable is many GPUs, a line each.
func (m *machineView) gpuTable(devices []engine.GPU) {
	m.title(counted(len(devices), "GPU"), m.ageNote(sourceGPU))
	columns := []column{
		{head: "GPU", left: true}, {head: "busy"}, {head: "memory"}, {head: "power"}, {head: "temp"}, {head: "core clock"},
		{head: "clocks", left: true}, {head: "DRAM"}, {head: "tensor"},
	}
	for i := range devices {
		g := &devices[i]
		f := &g.Fields
		sign, words, _ := m.u.throttled(g)
		if sign == m.u.glyphs.Dash {
			words = figure.Absent
			sign = ""
		}
		for c, text := range [...]string{
			fmt.Sprintf("%d %s", g.Index, strings.TrimPrefix(g.Name, "NVIDIA ")), figure.Show(f[engine.GPUUtil], "ratio"),
			ofLimit(f[engine.GPUVRAMUsed], f[engine.GPUVRAMTotal], "B"), ofLimit(f[engine.GPUPowerW], f[engine.GPUPowerLimitW], "W"),
			figure.Show(f[engine.GPUTemperatureC], "C"), figure.Show(f[engine.GPUSMClockMHz], "MHz"),
			strings.TrimSpace(sign + " " + words), figure.Show(f[engine.GPUDRAMActive], "ratio"), figure.Show(f[engine.GPUTensorUtil], "ratio"),
		} {
			columns[c].texts = append(columns[c].texts, text)
		}
	}
	m.table(columns, func(row, col int) cell.Token {
		if col == 6 {
			_, _, t := m.u.throttled(&devices[row])
			return m.token(sourceGPU, t)
		}
		return m.token(sourceGPU, cell.Body)
	})
}

// ofLimit spells a reading and its limit, the unit once where it is one.
func ofLimit(v, limit stat.Opt, unit string) string {
	if !number(v) || !number(limit) {
		return figure.Show(finite(v), unit)
	}
	a, x := figure.Amount(v.V, unit)
	b, y := figure.Amount(limit.V, unit)
	if x != y {
		return a + " " + x + " / " + b + " " + y
	}
	return a + " / " + b + " " + y
}

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
		if at.State == engine.SourceAbsent {
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
		for c, text := range [...]string{
			lead + name, fmt.Sprint(p.PID), processState(p.State), cores(p.CPU), figure.Show(finite(p.RunWait), "ratio"),
			figure.Show(stat.Some(float64(p.RSSBytes)), "B"), figure.Whole(float64(p.Threads)), lasting(p.Age),
		} {
			columns[c].texts = append(columns[c].texts, text)
		}
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

// sources is how rooftop's own readings come in.
func (m *machineView) sources() {
	m.title("What rooftop reads", nil)
	columns := []column{{head: "source", left: true}, {head: "state", left: true}, {head: "every"}, {head: "last"}, {head: "took"}, {head: "failures"}, {head: "missed"}}
	for i := range m.s.Sources {
		x := &m.s.Sources[i]
		sign, word, _ := m.u.freshness(x.State)
		last, took, every := figure.Absent, figure.Absent, figure.Absent
		if x.State != engine.SourceAbsent && (x.Last > 0 || x.Took > 0) {
			last, took = lasting(max(0, m.s.Now-x.Last))+" ago", figure.Show(stat.Some(x.Took.Seconds()), "s")
		}
		if x.Interval > 0 {
			every = figure.Show(stat.Some(x.Interval.Seconds()), "s")
		}
		for c, text := range [...]string{sourceName(x.Name), sign + " " + word, every, last, took, figure.Whole(float64(x.Failures)), figure.Whole(float64(x.Missed))} {
			columns[c].texts = append(columns[c].texts, text)
		}
	}
	m.table(columns, func(row, col int) cell.Token {
		if col == 1 {
			_, _, t := m.u.freshness(m.s.Sources[row].State)
			return t
		}
		return cell.Body
	})
	for i := range m.s.Sources {
		if x := &m.s.Sources[i]; x.Why != "" {
			m.say(line(m.u.say(cell.Muted, sourceName(x.Name)+": "), m.u.say(cell.Body, sentence(x.Why))))
		}
	}
}

func sourceName(name string) string {
	words := map[string]string{"metrics": "metrics page", "gpu": "GPUs"}
	return cmp.Or(words[name], name)
}

// freshness is how a source is, in a sign, a word and a colour.
func (u *look) freshness(f engine.Freshness) (sign, word string, t cell.Token) {
	switch f {
	case engine.SourceFresh:
		return u.glyphs.Good, "fresh", cell.OK
	case engine.SourceLate:
		return u.glyphs.Warn, "late", cell.Warn
	case engine.SourceFailing:
		return u.glyphs.Bad, "failing", cell.Bad
	}
	return u.glyphs.Dash, "absent", cell.Muted
}
