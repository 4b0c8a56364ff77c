package tuning

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// The basis of a diagnosis: facts, figures and devices, with their origin.

func lastRawSection(d *engine.Diagnosis) page.Section {
	sec := page.Section{ID: "last-raw", Title: "Last raw window", Note: "not evaluable, shown as it was read"}
	w := LastRaw(d)
	if w == nil {
		return sec
	}
	var f pairs
	f.add("polls answered", stat.Some(float64(w.Polls)), "", "")
	f.add("polls failed", stat.Some(float64(w.Failed)), "", "")
	f.add("running", w.Running, "req", "")
	f.add("waiting", w.Waiting, "req", "")
	f.add("KV pool", w.KV, "ratio", "")
	f.add("output", w.Rate[engine.CounterGenerationTokens], "tok/s", "")
	f.add("prompt", w.Rate[engine.CounterPromptTokens], "tok/s", "")
	sec.Add(f.table())
	return sec
}

// FactsSection returns the facts with their sources. Unknown ones are only named.
func FactsSection(f *engine.Facts) page.Section {
	sec := page.Section{ID: "facts", Title: "Facts", Note: "known before measuring, with their sources"}
	t := &page.Table{Columns: []page.Column{
		{Head: "fact", Left: true}, {Head: "value", Left: true, Tone: page.Strong}, {Head: "source", Left: true}, {Head: "note", Left: true, Tone: page.Muted},
	}}
	var long page.Facts
	var unknown []string
	for _, x := range Facts(f) {
		if name, inverted, ok := f.Dialect().Argument(x.Name); ok && !inverted {
			x.Name = name
		}
		value := f.Spell(x.String())
		switch {
		case x.Value == nil && x.Note == NotKnown:
			unknown = append(unknown, x.Name)
		case len(value) > 30:
			long.Add(x.Name, page.Strong, value+" ("+strings.TrimSuffix(SourceName(x.Source)+", "+x.Note, ", ")+")")
		default:
			t.Rows = append(t.Rows, []page.Cell{page.Words(x.Name), page.Words(value), {Text: SourceName(x.Source)}, {Text: x.Note}})
		}
	}
	sec.Add(t, long)
	if len(unknown) > 0 {
		sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" "+strings.Join(unknown, ", ")+": "+NotKnown)))
	}
	for _, c := range f.Conflicts {
		sec.Add(page.Paragraph(page.Mark(page.Warn, "conflict:"), page.Toned(page.Body, " "+c)))
	}
	return sec
}

// measuredSection returns every quantity with its origin, or the reason for its absence.
func measuredSection(d *engine.Diagnosis) page.Section {
	return page.Section{ID: "measured", Title: "Measured", Nodes: []page.Node{page.Tabulate(Quantities(d), []page.Field[engine.NamedQuantity]{
		page.Left("quantity", page.Body, func(q engine.NamedQuantity) string { return q.Name }),
		page.Right("value", page.Strong, func(q engine.NamedQuantity) page.Cell { return page.Words(Show(q.Quantity)) }),
		{Column: page.Column{Head: "origin", Left: true}, Cell: func(q engine.NamedQuantity) page.Cell {
			if !q.Value.OK {
				return page.Cell{}
			}
			return page.Words(string(q.Source))
		}},
		page.Notes("note", func(q engine.NamedQuantity) string { return cmp.Or(q.Reason, q.Note) }),
	})}}
}

// devices returns every reading of every GPU with its peak.
func devices(d *engine.Diagnosis) []page.Section {
	var out []page.Section
	for i := range d.GPUs {
		g := &d.GPUs[i]
		sec := page.Section{ID: fmt.Sprintf("gpu-%d", g.Index), Title: fmt.Sprintf("GPU %d", g.Index), Note: strings.TrimSpace(g.Name + " " + g.UUID)}
		t := &page.Table{Columns: []page.Column{{Left: true}, {Head: "run", Tone: page.Strong}, {Head: "peak"}, {Left: true, Tone: page.Muted}}}
		var unread []string
		for _, f := range engine.GPUFields() {
			v, kind := Reading(g, f)
			peak := g.Peak[f].Finite()
			if !v.OK && !peak.OK {
				unread = append(unread, f.Key())
				continue
			}
			t.Rows = append(t.Rows, []page.Cell{page.Words(f.Key()), page.Amount(v, f.Unit()), page.Amount(peak, f.Unit()), page.Words(kind)})
		}
		sec.Add(t)
		switch {
		case !g.ThrottleOK:
			unread = append(unread, "throttle reasons")
		case g.Throttle == 0:
			sec.Add(page.Paragraph(page.Toned(page.Body, "throttle reasons: none")))
		default:
			sec.Add(page.Paragraph(page.Toned(page.Warn, "throttle reasons: "+strings.Join(catalog.ThrottleKeys(g.Throttle), ", "))))
		}
		if len(unread) > 0 {
			sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" "+strings.Join(unread, ", ")+": not read on this device")))
		}
		out = append(out, sec)
	}
	return out
}

// Reading returns the value of a GPU's field over a run, and its kind: the last reading of a state such
// as a clock, or the mean of a varying quantity.
func Reading(g *engine.GPUSummary, f engine.GPUField) (v stat.Opt, kind string) {
	switch f {
	case engine.GPUPowerLimitW, engine.GPUEnergyJ, engine.GPUVRAMTotal, engine.GPUVRAMUsed, engine.GPUTemperatureC, engine.GPUSMClockMHz, engine.GPUMemClockMHz,
		engine.GPUSMClockMaxMHz, engine.GPUTemperatureLimitC:
		return g.Last[f].Finite(), "last"
	}
	return g.Mean[f].Finite(), "mean"
}
