package tui

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// machine returns the view of GPUs, the server's processes, and rooftop's own data sources.
func machine(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	left := &machineView{Listing: frame.NewListing(u, width, machineCells), s: s}
	right := left
	wide := width >= frame.ThreeColumns
	if wide {
		left.Listing = frame.NewListing(u, width/2, machineCells)
		right = &machineView{Listing: frame.NewListing(u, width-width/2, machineCells), s: s}
	}
	left.gpus()
	if wide {
		left.history(tallChart)
	}
	right.ranks()
	right.processes()
	right.sources()
	if !wide {
		left.history(lowChart)
		left.Keep(strings.TrimSpace(u.Filter))
		return left
	}
	left.Keep(strings.TrimSpace(u.Filter))
	right.Keep(strings.TrimSpace(u.Filter))
	return frame.Pair{Left: left.Listing, Right: right.Listing}
}

// machineCells is the maximum width of the view: longer bars show no more detail.
const machineCells = 130

// roomyTable is the minimum width for full column names in tables.
const roomyTable = 96

// tableIndent is the indentation that tables of pages have.
const tableIndent = 2

// machineView draws one snapshot.
type machineView struct {
	*frame.Listing
	s *loop.Snapshot
}

// state returns source i, and whether its figures are current.
func (m *machineView) state(i int) (at loop.SourceState, fresh bool) {
	if i >= len(m.s.Sources) {
		return loop.SourceState{}, true
	}
	at = m.s.Sources[i]
	return at, at.State == loop.SourceFresh || at.State == loop.SourceAbsent
}

// Indices of the sources in a snapshot.
const (
	sourceMetrics = iota
	sourceGPU
	sourceProcesses
)

// ageNote returns how old the figures of a source are, nil if they are current.
func (m *machineView) ageNote(i int) page.Text {
	at, fresh := m.state(i)
	if fresh {
		return nil
	}
	return page.Toned(cell.Warn, m.Settings.Glyphs.Warn+" "+figure.Elapsed(m.s.Now-at.Last)+" old")
}

// token returns t, or Muted if the figures of source i are outdated.
func (m *machineView) token(i int, t cell.Token) cell.Token {
	if _, fresh := m.state(i); !fresh {
		return cell.Muted
	}
	return t
}

// table adds a table without indentation.
func (m *machineView) table(t *page.Table) {
	t.KeepEmpty = true
	all := m.Settings.Lines([]page.Section{{Nodes: []page.Node{t}}}, m.Width+tableIndent)
	m.Rows(all.Height(), func(p cell.Pane, i int) { m.Settings.Text(p, -tableIndent, all.From(i, 1)) })
}

// name returns a cell with a name, cut to half of a line.
func (m *machineView) name(s string) page.Cell {
	return page.Words(cell.Cut(m.Settings.Spell(s), max(12, m.Width/2), m.Settings.Glyphs.Ellipsis))
}

// column returns a column of figures. Columns with a larger rank are left out first.
func column[R any](head string, rank int, cellOf func(R) page.Cell) page.Field[R] {
	return page.Field[R]{Column: page.Column{Head: head, Rank: rank}, Cell: cellOf}
}

// leftColumn returns a left-aligned column of words.
func leftColumn[R any](head string, rank int, cellOf func(R) page.Cell) page.Field[R] {
	f := column(head, rank, cellOf)
	f.Left = true
	return f
}

// ranks lists the data-parallel ranks of the server, if there are several.
func (m *machineView) ranks() {
	if m.s.Page == nil || len(m.s.Page.Ranks) < 2 {
		return
	}
	m.Title(figure.Counted(len(m.s.Page.Ranks), "data-parallel rank"), m.ageNote(sourceMetrics))
	m.table(tuning.RankTable(m.s.Page))
	m.Space()
}

// Lines of a chart of the GPUs over time.
const (
	lowChart  = 4
	tallChart = 7
)

// history charts the GPUs over time, each quantity in that many lines.
func (m *machineView) history(lines int) {
	list := measuredOver(m.s, gpuMeasures())
	if len(list) == 0 {
		return
	}
	for i := range list {
		list[i].most = lines
	}
	lines = timeFrame + lines*len(list)
	m.Space()
	m.Title("The GPUs over time", nil)
	m.Block(lines, func(p cell.Pane) { drawTimes(p, m.s, m.Settings, list) })
}

// sources lists rooftop's data sources and their state.
func (m *machineView) sources() {
	m.Title("What rooftop reads", nil)
	type source = loop.SourceState
	read := func(x source) bool { return x.State != loop.SourceAbsent && (x.Last > 0 || x.Took > 0) }
	m.table(page.Tabulate(m.s.Sources, []page.Field[source]{
		leftColumn("source", 0, func(x source) page.Cell { return page.Words(sourceName(x.Name)) }),
		leftColumn("state", 0, func(x source) page.Cell {
			tone := tuning.FreshnessTone(x.State)
			return page.Cell{Text: m.Settings.Sign(tone) + " " + x.State.String(), Tone: tone}
		}),
		column("every", 1, func(x source) page.Cell { return page.Elapsed(x.Interval) }),
		column("last", 2, func(x source) page.Cell {
			if !read(x) {
				return page.Words("")
			}
			return page.Words(figure.Elapsed(max(0, m.s.Now-x.Last)) + " ago")
		}),
		column("took", 3, func(x source) page.Cell {
			return page.Amount(stat.Opt{V: x.Took.Seconds(), OK: read(x)}, "s")
		}),
		column("failures", 4, func(x source) page.Cell { return page.Integer(x.Failures) }),
		column("missed", 5, func(x source) page.Cell { return page.Integer(x.Missed) }),
	}))
	for i := range m.s.Sources {
		if x := &m.s.Sources[i]; x.Why != "" {
			m.Prose(page.Join(page.Toned(cell.Muted, sourceName(x.Name)+": "), page.Toned(cell.Body, figure.Stopped(x.Why))))
		}
	}
}

func sourceName(name string) string {
	words := map[string]string{"metrics": "metrics page", "gpu": "GPUs"}
	return cmp.Or(words[name], name)
}
