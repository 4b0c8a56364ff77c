package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Indexes of the sources in a snapshot.
const (
	sourceMetrics = iota
	sourceGPU
	sourceProcesses
)

// MachineProcesses is the ID of the first section of [Machine] after the GPUs and the ranks.
const MachineProcesses = "processes"

// Machine returns what a server runs on and how it is read: GPUs, data-parallel ranks, processes and sources.
func Machine(s *loop.Snapshot) []page.Section {
	return append(gpus(s), ranks(s), processes(s), sources(s, true))
}

// sourceOf returns the state of a source, and how old its figures are if they are not current, "" if they are.
func sourceOf(s *loop.Snapshot, i int) (at loop.SourceState, old string) {
	if i < len(s.Sources) {
		at = s.Sources[i]
	}
	if at.State == loop.SourceFresh || at.State == loop.SourceAbsent {
		return at, ""
	}
	return at, page.Warn.Sign() + " " + figure.Elapsed(s.Now-at.Last) + " old"
}

// readings adds a table of a source's figures to a section, muted if they are outdated.
func readings(s *loop.Snapshot, source int, sec *page.Section, t *page.Table) {
	t.KeepEmpty = true
	if _, old := sourceOf(s, source); old != "" {
		sec.Note = figure.Joined(", ", sec.Note, old)
		for i := range t.Columns {
			t.Columns[i].Tone = page.Muted
		}
		for _, row := range t.Rows {
			for i := range row {
				row[i].Tone = page.Muted
			}
		}
	}
	sec.Add(t)
}

// gpuCards is the largest number of GPUs shown with a bar for each reading. More of them are shown in a table.
const gpuCards = 2

func gpus(s *loop.Snapshot) []page.Section {
	if s.GPU == nil || len(s.GPU.Devices) == 0 {
		return []page.Section{noGPU(s)}
	}
	if len(s.GPU.Devices) > gpuCards {
		sec := page.Section{ID: "gpus", Title: figure.Counted(len(s.GPU.Devices), "GPU")}
		readings(s, sourceGPU, &sec, GPUTable(s.GPU.Devices))
		return []page.Section{sec}
	}
	var list []page.Section
	for i := range s.GPU.Devices {
		g := &s.GPU.Devices[i]
		sec := page.Section{ID: fmt.Sprintf("gpu-%d", g.Index), Title: fmt.Sprintf("GPU %d", g.Index), Note: g.Name}
		readings(s, sourceGPU, &sec, gpuCard(g))
		tone, words := Throttling(g)
		sec.Add(page.Paragraph(page.Toned(page.Muted, "clocks "), page.Mark(tone, words)))
		list = append(list, sec)
	}
	return list
}

// noGPU explains why no GPU is readable, and what that switches off.
func noGPU(s *loop.Snapshot) page.Section {
	at, _ := sourceOf(s, sourceGPU)
	why := cmp.Or(s.GPUWhy, at.Why, "no GPU was found")
	sec := page.Section{ID: "gpus", Title: "GPU", Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, figure.Absent+" No GPU is readable: "), page.Toned(page.Body, figure.Stopped(why)))}}
	for _, x := range s.Missing {
		if strings.Contains(strings.ToLower(x.What), "gpu") && x.Effect != "" {
			sec.Add(page.Paragraph(page.Toned(page.Muted, "Switched off: "+figure.Stopped(x.Effect))))
		}
	}
	return sec
}

// gpuReading is a reading of a GPU, with the limit that it is compared with.
type gpuReading struct {
	label        string
	value, limit stat.Opt
	unit         string
}

// gpuCard returns the readings of one GPU, with bars for those that have a limit. Only the first three are shown
// without a value.
func gpuCard(g *engine.GPU) *page.Table {
	f := &g.Fields
	whole := stat.Some(1)
	list := []gpuReading{
		{"busy", f[engine.GPUUtil], whole, "ratio"},
		{"memory", f[engine.GPUVRAMUsed], f[engine.GPUVRAMTotal], "B"},
		{"power", f[engine.GPUPowerW], f[engine.GPUPowerLimitW], "W"},
		{"DRAM", f[engine.GPUDRAMActive], whole, "ratio"},
		{"tensor", f[engine.GPUTensorUtil], whole, "ratio"},
		{"temperature", f[engine.GPUTemperatureC], f[engine.GPUTemperatureLimitC], "C"},
		{"core clock", f[engine.GPUSMClockMHz], f[engine.GPUSMClockMaxMHz], "MHz"},
		{"memory clock", f[engine.GPUMemClockMHz], stat.None, "MHz"},
		{"PCIe in", f[engine.GPUPCIeRxBps], stat.None, "B/s"},
		{"PCIe out", f[engine.GPUPCIeTxBps], stat.None, "B/s"},
		{"NVLink in", f[engine.GPUNVLinkRxBps], stat.None, "B/s"},
		{"NVLink out", f[engine.GPUNVLinkTxBps], stat.None, "B/s"},
	}
	const always = 3
	list = append(list[:always:always], slices.DeleteFunc(list[always:], func(r gpuReading) bool { return !r.value.Finite().OK })...)
	return page.Tabulate(list, []page.Field[gpuReading]{
		page.Left("", page.Muted, func(r gpuReading) string { return r.label }),
		page.Right("", page.Strong, func(r gpuReading) page.Cell { number, _ := r.text(); return page.Words(number) }),
		page.Notes("", func(r gpuReading) string { _, rest := r.text(); return rest }),
		page.Bars(func(r gpuReading) stat.Opt {
			if !r.limit.Finite().OK {
				return stat.None
			}
			return r.value.Div(r.limit)
		}),
	})
}

// text returns the number of a reading, and its unit with the limit: "71.8" and "of 80.0 GiB".
func (r gpuReading) text() (number, rest string) {
	if !r.value.Finite().OK {
		return "", ""
	}
	number, unit := figure.Amount(r.value.V, r.unit)
	if r.unit == "ratio" || !r.limit.Finite().OK {
		return number, unit
	}
	limit, large := figure.Amount(r.limit.V, r.unit)
	rest = "of " + limit + " " + large
	if unit != large {
		rest = unit + " " + rest
	}
	return number, rest
}

// Throttling describes why the clocks of a GPU are low, with its tone.
func Throttling(g *engine.GPU) (page.Tone, string) {
	if !g.ThrottleOK {
		return page.Muted, "throttle reasons cannot be read"
	}
	words := strings.Join(catalog.ThrottleWords(g.Throttle), ", ")
	switch {
	case g.Throttle&catalog.Harmful != 0:
		return page.Warn, "throttled: " + words
	case words != "":
		return page.Body, "set by " + words
	case g.Throttle&catalog.Idle != 0:
		return page.Muted, "low: idle"
	}
	return page.OK, "not throttled"
}

// GPUTable lists GPUs, one per line.
func GPUTable(devices []engine.GPU) *page.Table {
	type gpu = engine.GPU
	shown := func(head string, i engine.GPUField, unit string) page.Field[gpu] {
		return page.Right(head, page.Body, func(g gpu) page.Cell { return page.Amount(g.Fields[i], unit) })
	}
	limited := func(head string, i, limit engine.GPUField, unit string) page.Field[gpu] {
		return page.Right(head, page.Body, func(g gpu) page.Cell { return page.Words(OfLimit(g.Fields[i], g.Fields[limit], unit)) })
	}
	rank := 1
	if slices.ContainsFunc(devices, func(g gpu) bool { return g.ThrottleOK && g.Throttle&catalog.Harmful != 0 }) {
		rank = 0 // a throttled GPU says so on any page
	}
	return page.Tabulate(devices, []page.Field[gpu]{
		page.Name("GPU", func(g gpu) string { return fmt.Sprintf("%d %s", g.Index, strings.TrimPrefix(g.Name, "NVIDIA ")) }),
		shown("busy", engine.GPUUtil, "ratio"),
		limited("memory", engine.GPUVRAMUsed, engine.GPUVRAMTotal, "B").Ranked(2),
		limited("power", engine.GPUPowerW, engine.GPUPowerLimitW, "W").Ranked(3),
		limited("temp", engine.GPUTemperatureC, engine.GPUTemperatureLimitC, "C").Ranked(4),
		limited("core clock", engine.GPUSMClockMHz, engine.GPUSMClockMaxMHz, "MHz").Ranked(5),
		shown("DRAM", engine.GPUDRAMActive, "ratio").Ranked(6),
		shown("tensor", engine.GPUTensorUtil, "ratio").Ranked(7),
		{Column: page.Column{Head: "clocks", Left: true, Rank: rank}, Cell: func(g gpu) page.Cell {
			if !g.ThrottleOK {
				return page.Words("")
			}
			tone, words := Throttling(&g)
			return page.Cell{Text: page.Mark(tone, words).String(), Tone: tone}
		}},
	})
}

// OfLimit formats a reading and its limit. If both have the same unit, it appears once.
func OfLimit(v, limit stat.Opt, unit string) string {
	if !v.Finite().OK || !limit.Finite().OK {
		return figure.Show(v.Finite(), unit)
	}
	a, x := figure.Amount(v.V, unit)
	b, y := figure.Amount(limit.V, unit)
	if x != y {
		a += " " + x
	}
	return a + " / " + b + " " + y
}

// ranks lists the data-parallel ranks of the server, if there are several.
func ranks(s *loop.Snapshot) page.Section {
	sec := page.Section{ID: "ranks"}
	if s.Page != nil && len(s.Page.Ranks) > 1 {
		sec.Title = figure.Counted(len(s.Page.Ranks), "data-parallel rank")
		readings(s, sourceMetrics, &sec, RankTable(s.Page))
	}
	return sec
}

// processes returns the processes of the server as a tree, or why there are none.
func processes(s *loop.Snapshot) page.Section {
	sec := page.Section{ID: MachineProcesses, Title: "Processes of the server"}
	for _, problem := range s.Problems {
		sec.Add(page.Paragraph(page.Mark(page.Warn, "problem: "), page.Toned(page.Body, problem)))
	}
	if len(s.Processes) == 0 {
		at, _ := sourceOf(s, sourceProcesses)
		why := cmp.Or(at.Why, "the server's process was not found on this machine")
		sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" None is readable: "), page.Toned(page.Body, figure.Stopped(why))))
		if at.State == loop.SourceAbsent && s.Launch == "" {
			sec.Add(page.Paragraph(page.Toned(page.Muted, "The launch command, its flags and stuck processes of the server are unknown. The metrics page shows the rest.")))
		}
		return sec
	}
	readings(s, sourceProcesses, &sec, page.Tabulate(tree(s.Processes), []page.Field[branch]{
		page.Left("role", page.Strong, branch.role),
		page.Right("PID", page.Body, func(b branch) page.Cell { return page.Words(strconv.Itoa(b.PID)) }),
		page.Left("state", page.Body, func(b branch) string { return processState(b.State) }).Ranked(1),
		page.Right("cores", page.Body, func(b branch) page.Cell { return page.Ratio(b.CPU) }).Ranked(2),
		page.Right("waits", page.Body, func(b branch) page.Cell { return page.Share(b.RunWait) }).Ranked(3),
		page.Right("memory", page.Body, func(b branch) page.Cell { return page.Amount(stat.Some(float64(b.RSSBytes)), "B") }).Ranked(4),
		page.Right("threads", page.Body, func(b branch) page.Cell { return page.Integer(b.Threads) }).Ranked(5),
		page.Right("age", page.Body, func(b branch) page.Cell { return page.Words(figure.Elapsed(b.Age)) }).Ranked(6),
		page.Notes("name", func(b branch) string { return b.Name }).Ranked(7),
	}))
	return sec
}

// branch is a process and its place in the tree.
type branch struct {
	*loop.Process
	depth int
}

// role returns the role of a process, indented below its parent.
func (b branch) role() string { return strings.Repeat(nbsp+nbsp, b.depth) + cmp.Or(b.Role, b.Name) }

// tree lists processes below their parents, siblings by PID. Processes whose parent is not listed
// are roots. Every process is listed exactly once.
func tree(list []loop.Process) []branch {
	order := pointers(list)
	slices.SortStableFunc(order, func(a, b *loop.Process) int { return cmp.Compare(a.PID, b.PID) })
	var out []branch
	done := map[*loop.Process]bool{}
	var add func(p *loop.Process, depth int)
	add = func(p *loop.Process, depth int) {
		if done[p] {
			return
		}
		done[p] = true
		out = append(out, branch{p, depth})
		for _, c := range order {
			if c.PPID == p.PID {
				add(c, depth+1)
			}
		}
	}
	for _, p := range order {
		if p.PPID == p.PID || !slices.ContainsFunc(list, func(other loop.Process) bool { return other.PID == p.PPID }) {
			add(p, 0)
		}
	}
	for _, p := range order { // parents in a cycle: the reading is inconsistent
		add(p, 0)
	}
	return out
}

// processState returns the word for a state letter of the scheduler.
func processState(letter string) string {
	words := map[string]string{"R": "running", "S": "sleeping", "D": "waits for a device", "T": "stopped", "t": "traced", "Z": "dead, not collected", "X": "dead", "I": "idle"}
	return cmp.Or(words[letter], letter)
}

// sources lists the data sources of rooftop and their state: how old the last reading of each is or, in a report that
// is read later, at what time of the run it was.
func sources(s *loop.Snapshot, live bool) page.Section {
	sec := page.Section{ID: "sources", Title: "What rooftop reads"}
	read := func(x loop.SourceState) bool { return x.State != loop.SourceAbsent && (x.Last > 0 || x.Took > 0) }
	sec.Add(page.Tabulate(s.Sources, []page.Field[loop.SourceState]{
		page.Left("source", page.Body, func(x loop.SourceState) string { return sourceTitle(x.Name) }),
		{Column: page.Column{Head: "state", Left: true}, Cell: func(x loop.SourceState) page.Cell {
			tone := FreshnessTone(x.State)
			return page.Cell{Text: page.Mark(tone, x.State.String()).String(), Tone: tone}
		}},
		page.Right("every", page.Body, func(x loop.SourceState) page.Cell { return page.Elapsed(x.Interval) }).Ranked(1),
		page.Right("last", page.Body, func(x loop.SourceState) page.Cell {
			if !read(x) {
				return page.Words("")
			}
			if !live {
				return page.Words("at " + figure.Clock(x.Last))
			}
			return page.Words(figure.Elapsed(max(0, s.Now-x.Last)) + " ago")
		}).Ranked(2),
		page.Right("took", page.Body, func(x loop.SourceState) page.Cell {
			return page.Amount(stat.Opt{V: x.Took.Seconds(), OK: read(x)}, "s")
		}).Ranked(3),
		page.Right("failures", page.Body, func(x loop.SourceState) page.Cell { return page.Integer(x.Failures) }).Ranked(4),
		page.Right("missed", page.Body, func(x loop.SourceState) page.Cell { return page.Integer(x.Missed) }).Ranked(5),
	}))
	for i := range s.Sources {
		if x := &s.Sources[i]; x.Why != "" {
			sec.Add(page.Paragraph(page.Toned(page.Muted, sourceTitle(x.Name)+": "), page.Toned(page.Body, figure.Stopped(x.Why))))
		}
	}
	return sec
}

func sourceTitle(name string) string {
	return cmp.Or(map[string]string{"metrics": "metrics page", "gpu": "GPUs"}[name], name)
}
