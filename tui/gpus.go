package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// maxCards is the largest number of GPUs shown with bars. More of them are shown in a table.
const maxCards = 2

func (m *machineView) gpus() {
	g := m.s.GPU
	if g == nil || len(g.Devices) == 0 {
		m.noGPU()
		m.Space()
		return
	}
	if len(g.Devices) <= maxCards {
		for i := range g.Devices {
			m.card(&g.Devices[i])
			m.Space()
		}
		return
	}
	m.gpuTable(g.Devices)
	m.Space()
}

// noGPU explains why no GPU is readable, and what that switches off.
func (m *machineView) noGPU() {
	u := m.Settings
	m.Title("GPU", nil)
	at, _ := m.state(sourceGPU)
	m.Prose(page.Join(page.Toned(cell.Muted, u.Glyphs.Dash+" No GPU is readable: "), page.Toned(cell.Body, cmp.Or(m.s.GPUWhy, at.Why, "no GPU was found")+".")))
	for _, x := range m.s.Missing {
		if strings.Contains(strings.ToLower(x.What), "gpu") && x.Effect != "" {
			m.Prose(page.Toned(cell.Muted, "Switched off: "+x.Effect+"."))
		}
	}
}

// card shows one GPU with bars.
func (m *machineView) card(g *engine.GPU) {
	u, f := m.Settings, &g.Fields
	m.Title(fmt.Sprintf("GPU %d  %s", g.Index, g.Name), m.ageNote(sourceGPU))
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
	says := page.Text(nil)
	add := func(label string, v stat.Opt, unit string) {
		if len(says) > 0 {
			says = page.Join(says, page.Toned(cell.Muted, ",  "))
		}
		says = page.Join(says, page.Toned(cell.Muted, strings.ReplaceAll(label, " ", figure.NBSP)+figure.NBSP), page.Toned(token, figure.Show(v, unit)))
	}
	// A reading with a limit is a bar, like power; one without is a figure.
	for _, r := range [...]struct {
		bar, label string
		v, limit   engine.GPUField
		unit       string
	}{{"temp", "temperature", engine.GPUTemperatureC, engine.GPUTemperatureLimitC, "C"}, {"clock", "core clock", engine.GPUSMClockMHz, engine.GPUSMClockMaxMHz, "MHz"}} {
		if f[r.limit].Finite().OK {
			m.bar(r.bar, f[r.v], f[r.limit], r.unit)
		} else {
			add(r.label, f[r.v], r.unit)
		}
	}
	add("memory clock", f[engine.GPUMemClockMHz], "MHz")
	if v := f[engine.GPUPCIeRxBps]; v.OK {
		add("PCIe in", v, "B/s")
		add("out", f[engine.GPUPCIeTxBps], "B/s")
	}
	if v := f[engine.GPUNVLinkRxBps]; v.OK {
		add("NVLink in", v, "B/s")
		add("out", f[engine.GPUNVLinkTxBps], "B/s")
	}
	m.Prose(says)
	sign, words, t := throttled(u, g)
	m.Prose(page.Join(page.Toned(cell.Muted, "clocks"+figure.NBSP), page.Toned(t, sign+figure.NBSP+figure.Unbroken(words))))
}

// Columns of a bar: its label, its value, its limit.
const (
	barLabel = 8
	barValue = 16
	barLimit = 28
)

// bar shows a reading against its limit, both in the given unit.
func (m *machineView) bar(label string, v, limit stat.Opt, unit string) {
	u := m.Settings
	m.Row(func(p cell.Pane) {
		p.Text(0, 0, cell.Muted, label)
		x := barLabel
		if !v.Finite().OK {
			p.Right(barValue, 0, cell.Muted, figure.Absent)
			return
		}
		text, small := figure.Amount(v.V, unit)
		p.Right(barValue, 0, m.token(sourceGPU, cell.Strong), text)
		if unit == "ratio" || !limit.Finite().OK {
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
		if w := min(p.Width()-x, 60); w >= 8 && limit.Finite().OK && limit.V > 0 {
			b := lines.Bar{Value: v, Token: m.token(sourceGPU, cell.Accent), Top: limit.V}
			b.Draw(p.Sub(x, 0, w, 1), u.Glyphs)
		}
	})
}

// throttled describes why a GPU's clocks are low.
func throttled(u *frame.Settings, g *engine.GPU) (sign, words string, t cell.Token) {
	if !g.ThrottleOK {
		return u.Glyphs.Dash, "throttle reasons cannot be read", cell.Muted
	}
	words = strings.Join(catalog.ThrottleWords(g.Throttle), ", ")
	switch {
	case g.Throttle&catalog.Harmful != 0:
		return u.Glyphs.Warn, "throttled: " + words, cell.Warn
	case words != "":
		return u.Glyphs.Info, "set by " + words, cell.Body
	case g.Throttle&catalog.Idle != 0:
		return u.Glyphs.Info, "low: idle", cell.Muted
	}
	return u.Glyphs.Good, "not throttled", cell.OK
}

// gpuTable lists GPUs, one per line.
func (m *machineView) gpuTable(devices []engine.GPU) {
	m.Title(figure.Counted(len(devices), "GPU"), m.ageNote(sourceGPU))
	type gpu = engine.GPU
	shown := func(head string, rank int, i engine.GPUField, unit string) page.Field[gpu] {
		return column(head, rank, func(g gpu) page.Cell { return page.Amount(g.Fields[i], unit) })
	}
	limited := func(head string, rank int, i, limit engine.GPUField, unit string) page.Field[gpu] {
		return column(head, rank, func(g gpu) page.Cell { return page.Words(ofLimit(g.Fields[i], g.Fields[limit], unit)) })
	}
	name := leftColumn("GPU", 0, func(g gpu) page.Cell {
		return m.name(fmt.Sprintf("%d %s", g.Index, strings.TrimPrefix(g.Name, "NVIDIA ")))
	})
	fields := []page.Field[gpu]{
		name,
		shown("busy", 0, engine.GPUUtil, "ratio"),
		limited("memory", 1, engine.GPUVRAMUsed, engine.GPUVRAMTotal, "B"),
		limited("power", 2, engine.GPUPowerW, engine.GPUPowerLimitW, "W"),
		limited("temp", 3, engine.GPUTemperatureC, engine.GPUTemperatureLimitC, "C"),
		limited("core clock", 4, engine.GPUSMClockMHz, engine.GPUSMClockMaxMHz, "MHz"),
		leftColumn("clocks", 5, func(g gpu) page.Cell {
			if !g.ThrottleOK {
				return page.Words("")
			}
			sign, words, t := throttled(m.Settings, &g)
			return page.Cell{Text: sign + " " + words, Tone: m.token(sourceGPU, t)}
		}),
		shown("DRAM", 6, engine.GPUDRAMActive, "ratio"),
		shown("tensor", 7, engine.GPUTensorUtil, "ratio"),
	}
	for i := range fields {
		fields[i].Tone = m.token(sourceGPU, cell.Body)
	}
	m.table(page.Tabulate(devices, fields))
}

// ofLimit formats a reading and its limit. If both have the same unit, it appears once.
func ofLimit(v, limit stat.Opt, unit string) string {
	if !v.Finite().OK || !limit.Finite().OK {
		return figure.Show(v.Finite(), unit)
	}
	a, x := figure.Amount(v.V, unit)
	b, y := figure.Amount(limit.V, unit)
	if x != y {
		return a + " " + x + " / " + b + " " + y
	}
	return a + " / " + b + " " + y
}
