package tui

import (
	"cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawMachine shows the GPUs, the server's processes and how rooftop's own readings
// come in.
func drawMachine(p cell.Pane, s *engine.Snapshot, u *look) int {
	if s == nil {
		return 0
	}
	p = p.Sub(1, 0, min(p.Width()-2, machineCells), p.Height())
	m := &machineView{listing: listing{u: u, w: p.Width()}, s: s}
	m.gpus()
	m.processes()
	m.sources()
	return m.draw(p, u.scroll[viewMachine])
}

// machineCells is how wide the view gets: bars say no more when they are longer.
const machineCells = 130

// roomyTable is the width from which tables spell out what they show.
const roomyTable = 96

// machineView draws one snapshot.
type machineView struct {
	listing
	s *engine.Snapshot
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
		addRow(columns, sourceName(x.Name), sign+" "+word, every, last, took, figure.Whole(float64(x.Failures)), figure.Whole(float64(x.Missed)))
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
