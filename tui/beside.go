package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Panels that the view Now shows where its columns are empty. Other views have all of their content.

// tableIndent is the indentation that tables of pages have.
const tableIndent = 2

// table returns a panel with a table of a page, empty for nil. Its block is shortened to least lines.
func (v *nowView) table(w int, title, note string, keep, least int, t *page.Table) frame.Panel {
	if t == nil {
		return frame.Panel{}
	}
	q := frame.Panel{Title: title, Note: page.Toned(cell.Muted, note), Old: v.old()}
	all := v.u.Lines([]page.Section{{Nodes: []page.Node{t}}}, w+tableIndent)
	q.Add(frame.Block{Lines: all.Height(), Least: least, Keep: keep, Draw: func(p cell.Pane) { v.u.Text(p, -tableIndent, all.From(0, p.Height())) }})
	return q
}

// tableRows returns a block for each row of a table without headings.
func tableRows(u *frame.Settings, w int, t *page.Table, keep func(i int) int) []frame.Block {
	all := u.Lines([]page.Section{{Nodes: []page.Node{t}}}, w+tableIndent)
	rows := make([]frame.Block, len(t.Rows))
	for i := range rows {
		rows[i] = frame.Block{Lines: 1, Keep: keep(i), Draw: func(p cell.Pane) { u.Text(p, -tableIndent, all.From(i, 1)) }}
	}
	return rows
}

// ranks returns the panel of the data-parallel ranks, empty for a single one.
func (v *nowView) ranks(w int) frame.Panel {
	var t *page.Table
	if v.s.Page != nil && len(v.s.Page.Ranks) > 1 {
		t = tuning.RankTable(v.s.Page)
	}
	return v.table(w, "Data-parallel ranks", "", 45, 2, t)
}

// gpus returns the panel of the GPUs, a line each.
func (v *nowView) gpus(w int) frame.Panel {
	var t *page.Table
	if v.s.GPU != nil && len(v.s.GPU.Devices) > 0 {
		t = tuning.GPUTable(v.s.GPU.Devices)
	}
	return v.table(w, "GPU", fmt.Sprintf("more in view %d", viewMachine+1), 44, 2, t)
}

// requestTime returns the panel of where the mean request's time goes. It is empty without a finished request.
func (v *nowView) requestTime(w int) frame.Panel {
	r, ok := timeOfRequest(v.latest())
	if !ok {
		return frame.Panel{}
	}
	t := r.Table()
	t.Rows = t.Rows[:len(r.Parts)] // without what is lost, which is a part of decode
	return v.table(w, "Where a request's time goes", "mean "+figure.Value(r.Total, "s"), 36, 0, t)
}

// timeOfRequest returns how the mean request's time is divided, and false if no request finished.
func timeOfRequest(d *engine.Diagnosis) (r tuning.RequestTime, ok bool) {
	if d == nil || d.Windows.Active == 0 {
		return r, false
	}
	r = tuning.NewRequestTime(d)
	return r, r.Total > 0
}

// timeShares returns the parts of the mean request's time, the largest first.
func timeShares(d *engine.Diagnosis) []string {
	r, ok := timeOfRequest(d)
	if !ok {
		return nil
	}
	slices.SortStableFunc(r.Parts, func(a, b tuning.TimePart) int { return cmp.Compare(b.Share(), a.Share()) })
	var shares []string
	for _, part := range r.Parts {
		if part.Share() > 0 {
			shares = append(shares, part.Label+" "+figure.PercentSign(part.Share()))
		}
	}
	return shares
}

// drawShares draws as many shares as fit, and a mark if some are left out.
func drawShares(p cell.Pane, u *frame.Settings, shares []string) {
	x := p.Text(0, 0, cell.Muted, "Request time ") + 1
	for n := len(shares); n > 0; n-- {
		text := strings.Join(shares[:n], ", ")
		if n < len(shares) {
			text += ", …"
		}
		if text = u.Spell(text); n == 1 || x+cell.Width(text) <= p.Width() {
			p.Text(x, 0, cell.Body, text)
			return
		}
	}
}

// latestEvents is the maximum number of entries of the journal beside the figures.
const latestEvents = 8

// events returns the panel of the latest entries of the journal, the newest first.
func (v *nowView) events(w int) frame.Panel {
	list := v.s.Journal
	if len(list) == 0 {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Latest events", Note: page.Toned(cell.Muted, fmt.Sprintf("all in view %d", viewLog+1))}
	for i := range min(latestEvents, len(list)) {
		e := &list[len(list)-1-i]
		tone := tuning.LevelTone(e.Level)
		head := page.Join(page.Toned(cell.Muted, figure.Clock(e.T)+" "), page.Toned(tone, v.u.Sign(tone)+" "))
		q.Add(frame.Shorten(v.u.Paragraph(w, 19-i, head, page.Toned(cell.Body, e.Text)), 2))
	}
	return q
}
