package tui

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Panels that the view Now shows where its columns are empty. Other views have all of their content.

// ranks returns the panel of the data-parallel ranks, empty for a single one.
func (v *nowView) ranks(w int) frame.Panel {
	if v.s.Page == nil || len(v.s.Page.Ranks) < 2 {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Data-parallel ranks", Old: v.old()}
	all := v.u.Lines([]page.Section{{Nodes: []page.Node{tuning.RankTable(v.s.Page)}}}, w+tableIndent)
	q.Add(frame.Block{Lines: all.Height(), Least: 2, Keep: 45, Draw: func(p cell.Pane) { v.u.Text(p, -tableIndent, all.From(0, p.Height())) }})
	return q
}

// gpus returns the panel of the GPUs, a line each.
func (v *nowView) gpus(w int) frame.Panel {
	g := v.s.GPU
	if g == nil {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "GPU", Old: v.old(), Note: page.Toned(cell.Muted, fmt.Sprintf("more in view %d", viewMachine+1))}
	brief := len(g.Devices) > maxCards
	lines := 2
	if brief {
		lines = 1
	}
	for i := range g.Devices {
		if line := gpuLine(v.u, &g.Devices[i], brief, w, lines); brief {
			q.Add(v.u.OneLine(44-min(i, 8), line))
		} else {
			q.Add(frame.Shorten(v.u.Paragraph(w, 44, nil, line), lines))
		}
	}
	return q
}

// gpuLine describes a GPU in lines of w cells: how busy, full, hot and fast it is. If that is too long,
// it leaves out that it is not throttled, then its clock, then its temperature. brief leaves out its
// memory, and throttling unless there is any.
func gpuLine(u *frame.Settings, g *engine.GPU, brief bool, w, lines int) page.Text {
	f := &g.Fields
	var parts []string
	for _, r := range [...]struct{ label, text string }{
		{"busy", figure.Show(f[engine.GPUUtil], "ratio")}, {"memory", ofLimit(f[engine.GPUVRAMUsed], f[engine.GPUVRAMTotal], "B")},
		{"", ofLimit(f[engine.GPUPowerW], f[engine.GPUPowerLimitW], "W")}, {"", ofLimit(f[engine.GPUTemperatureC], f[engine.GPUTemperatureLimitC], "C")}, {"", ofLimit(f[engine.GPUSMClockMHz], f[engine.GPUSMClockMaxMHz], "MHz")},
	} {
		if r.text != figure.Absent && !(brief && r.label == "memory") {
			parts = append(parts, figure.Unbroken(strings.TrimSpace(r.label+" "+r.text)))
		}
	}
	sign, words, t := throttled(u, g)
	if brief && t != cell.Warn {
		sign, words = "", ""
	}
	line := func() page.Text {
		return page.Join(page.Toned(cell.Muted, fmt.Sprintf("%d  ", g.Index)), page.Toned(cell.Body, strings.Join(parts, ", ")+"  "),
			page.Toned(t, figure.Unbroken(strings.TrimSpace(sign+" "+words))))
	}
	fits := func() bool { return len(u.Wrap(line(), w)) <= lines }
	if t == cell.OK && !fits() {
		sign, words = "", ""
	}
	for len(parts) > 2 && !fits() {
		parts = parts[:len(parts)-1]
	}
	return line()
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
