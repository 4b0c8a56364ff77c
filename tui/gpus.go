package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

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
		addRow(columns, fmt.Sprintf("%d %s", g.Index, strings.TrimPrefix(g.Name, "NVIDIA ")), figure.Show(f[engine.GPUUtil], "ratio"),
			ofLimit(f[engine.GPUVRAMUsed], f[engine.GPUVRAMTotal], "B"), ofLimit(f[engine.GPUPowerW], f[engine.GPUPowerLimitW], "W"),
			figure.Show(f[engine.GPUTemperatureC], "C"), figure.Show(f[engine.GPUSMClockMHz], "MHz"),
			strings.TrimSpace(sign+" "+words), figure.Show(f[engine.GPUDRAMActive], "ratio"), figure.Show(f[engine.GPUTensorUtil], "ratio"))
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
