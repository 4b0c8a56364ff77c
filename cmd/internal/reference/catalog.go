// Package reference builds the pages of rooftop catalog and rooftop explain: data of GPUs, CPUs and
// models, and the meaning of findings, words and metrics.
package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// peak returns a datasheet value; zero is unknown.
func peak(v float64) stat.Opt { return stat.Opt{V: v, OK: v != 0} }

// count returns a column of numbers without units.
func count[R any](head string, cellOf func(*R) float64) page.Field[R] {
	return page.Field[R]{Column: page.Column{Head: head}, Cell: func(r R) page.Cell {
		v := cellOf(&r)
		if v == 0 {
			return page.Words("")
		}
		return page.Words(figure.Count(v))
	}}
}

// name returns the name column. It is the last one, so that long names do not shift the figures.
func name[R any](cellOf func(*R) string) page.Field[R] {
	return page.Field[R]{Column: page.Column{Head: "name", Left: true, Tone: page.Strong}, Cell: func(r R) page.Cell { return page.Words(cellOf(&r)) }}
}

func listing[R any](title, note string, rows []R, fields ...page.Field[R]) *page.Page {
	return &page.Page{Title: title, Sections: []page.Section{{ID: "list", Title: title, Note: note, Nodes: []page.Node{page.Tabulate(rows, fields)}}}}
}

// GPUs returns the page that lists GPUs.
func GPUs(gpus []catalog.GPU) *page.Page {
	price := page.Field[catalog.GPU]{Column: page.Column{Head: "$/h"}, Cell: func(g catalog.GPU) page.Cell {
		if g.Price == nil || g.Price.OnDemandUSD <= 0 {
			return page.Words("")
		}
		return page.Words(figure.Dollars(g.Price.OnDemandUSD))
	}}
	return listing("GPUs", "memory in GiB, bandwidth in GB/s, dense peaks in TFLOPS, price of one for an hour (est)", gpus,
		count("GiB", func(g *catalog.GPU) float64 { return g.VRAMGiB }), count("GB/s", func(g *catalog.GPU) float64 { return g.MemBandwidthGBs }),
		count("bf16", func(g *catalog.GPU) float64 { return g.BF16TFLOPS }), count("fp8", func(g *catalog.GPU) float64 { return g.FP8TFLOPS }),
		count("W", func(g *catalog.GPU) float64 { return g.TDPW }), price, name(func(g *catalog.GPU) string { return g.Name }))
}

// Models returns the page that lists models.
func Models(models []catalog.Model) *page.Page {
	return listing("Models", "parameters in 1e9, context in units of 1,024 tokens", models,
		count("total", func(m *catalog.Model) float64 { return m.TotalParams / 1e9 }), count("active", func(m *catalog.Model) float64 { return m.ActiveParams / 1e9 }),
		page.Field[catalog.Model]{Column: page.Column{Head: "context"}, Cell: func(m catalog.Model) page.Cell {
			if m.MaxPositions == 0 {
				return page.Words("")
			}
			return page.Words(figure.Count(float64(m.MaxPositions)/1024) + "k")
		}},
		page.Field[catalog.Model]{Column: page.Column{Head: "type"}, Cell: func(m catalog.Model) page.Cell { return page.Words(string(m.NativeDType)) }},
		name(func(m *catalog.Model) string { return m.ID }))
}

// CPUs returns the page that lists CPUs.
func CPUs(cpus []catalog.CPU) *page.Page {
	return listing("CPUs", "memory of a socket in GB/s, operations of a core in a cycle, highest clock in GHz", cpus,
		count("GB/s", func(c *catalog.CPU) float64 { return c.MemBandwidth() / 1e9 }), count("channels", func(c *catalog.CPU) float64 { return float64(c.MemChannels) }),
		count("MT/s", func(c *catalog.CPU) float64 { return c.TransferMTs }), count("f32", func(c *catalog.CPU) float64 { return float64(c.FP32PerCycle) }),
		count("int8", func(c *catalog.CPU) float64 { return float64(c.INT8PerCycle) }), count("GHz", func(c *catalog.CPU) float64 { return c.MaxGHz }),
		name(func(c *catalog.CPU) string { return c.Name }))
}

// value is one row of an entry.
type value struct {
	label, unit string
	v           stat.Opt
	note        string
}

// entry returns the page of one catalog entry with all values and their sources.
func entry(title, kind string, aliases []string, values []value, source string, price *catalog.Price, more ...string) *page.Page {
	sec := page.Section{ID: "entry", Title: title, Note: kind}
	if len(aliases) > 0 {
		sec.Add(page.Prose{Text: page.Toned(page.Muted, "also "+strings.Join(aliases, ", "))})
	}
	sec.Add(page.Tabulate(values, []page.Field[value]{
		{Column: page.Column{Left: true}, Cell: func(x value) page.Cell { return page.Cell{Text: x.label} }},
		{Column: page.Column{Tone: page.Strong}, Cell: func(x value) page.Cell { return page.Amount(x.v, x.unit) }},
		{Column: page.Column{Left: true, Tone: page.Muted}, Cell: func(x value) page.Cell {
			if !x.v.OK {
				return page.Cell{}
			}
			return page.Cell{Text: x.note}
		}},
	}))
	for _, line := range more {
		sec.Add(page.Prose{Text: page.Toned(page.Body, line)})
	}
	from := page.Section{ID: "source", Nodes: []page.Node{page.Prose{Text: page.Toned(page.Muted, "source: "+source), Inset: true}}}
	if price != nil && price.Source != "" {
		from.Add(page.Prose{Text: page.Toned(page.Muted, "price: "+price.Source), Inset: true})
	}
	return &page.Page{Title: title, Sections: []page.Section{sec, from}}
}

func kind(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// GPU returns the page of one GPU.
func GPU(g catalog.GPU) *page.Page {
	list := []value{
		{"memory", "GiB", peak(g.VRAMGiB), ""},
		{"memory bandwidth", "GB/s", peak(g.MemBandwidthGBs), ""},
		{"fp32", "TFLOPS", peak(g.FP32TFLOPS), "not tensor cores; the PROFILE formulas use it"},
		{"tf32", "TFLOPS", peak(g.TF32TFLOPS), "dense"},
		{"bf16, fp16", "TFLOPS", peak(g.BF16TFLOPS), "dense"},
		{"fp8", "TFLOPS", peak(g.FP8TFLOPS), "dense"},
		{"int8", "TOPS", peak(g.INT8TOPS), "dense"},
		{"fp4", "TFLOPS", peak(g.FP4TFLOPS), "dense"},
		{"power limit", "W", peak(g.TDPW), ""},
		{"PCIe generation", "", peak(float64(g.PCIeGen)), ""},
	}
	link := value{"NVLink", "GB/s", stat.None, "both directions, all links"}
	if g.NVLinkGBs != nil {
		link.v = stat.Some(*g.NVLinkGBs)
	}
	list = append(list, link)
	if g.Price != nil {
		note := "one GPU (est), " + g.Price.AsOf
		list = append(list, value{"on demand", "USD/h", peak(g.Price.OnDemandUSD), note}, value{"spot", "USD/h", peak(g.Price.SpotUSD), note})
	}
	if a := g.Achieved; a != nil {
		list = append(list,
			value{"achieved bandwidth", "ratio", peak(a.GEMMBandwidth), "of the peak, weight-bound layers"},
			value{"", "ratio", peak(a.AttnBandwidth), "of the peak, decode attention"},
			value{"achieved compute", "ratio", peak(a.GEMMCompute), "of the peak, large layers"},
			value{"", "ratio", peak(a.PrefillAttn), "of the peak, prefill attention"})
	}
	return entry(g.Name, kind(g.Vendor, g.Arch), g.Aliases, list, g.Source, g.Price)
}

// Model returns the page of one model.
func Model(m catalog.Model) *page.Page {
	number := func(label string, v int, note string) value { return value{label, "", peak(float64(v)), note} }
	return entry(m.ID, m.Family, m.Aliases, []value{
		{"parameters", "e9", peak(m.TotalParams / 1e9), ""},
		{"of these active", "e9", peak(m.ActiveParams / 1e9), "for one token"},
		number("layers", m.Layers, ""),
		number("hidden", m.Hidden, ""),
		number("heads", m.Heads, kvHeads(&m)),
		number("FFN width", m.Intermediate, ""),
		number("vocabulary", m.Vocab, map[bool]string{true: "the input table is also the output layer"}[m.TiedEmbeddings]),
		number("experts", m.Experts, ""),
		number("experts of a token", m.ExpertsPerToken, ""),
		number("context", m.MaxPositions, "tokens"),
		number("sliding window", m.SlidingWindow, "tokens"),
	}, m.Source, nil, "attention "+string(m.Attention)+", published as "+string(m.NativeDType))
}

// kvHeads describes what attention caches of a token: heads, or one latent vector for all of them.
func kvHeads(m *catalog.Model) string {
	switch {
	case m.KVLoraRank > 0:
		return fmt.Sprintf("a latent KV vector of %d + %d for all heads", m.KVLoraRank, m.QKRopeHeadDim)
	case m.HeadDim > 0:
		return fmt.Sprintf("%d KV heads of %d", m.KVHeads, m.HeadDim)
	}
	return fmt.Sprintf("%d KV heads", m.KVHeads)
}

// CPU returns the page of one CPU.
func CPU(c catalog.CPU) *page.Page {
	bits := c.ChannelBits
	if bits == 0 {
		bits = 64
	}
	return entry(c.Name, kind(c.Vendor, c.Arch), c.Models, []value{
		{"memory bandwidth", "GB/s", peak(c.MemBandwidth() / 1e9), "of a socket, all channels"},
		{"channels", "", peak(float64(c.MemChannels)), fmt.Sprintf("of %d bits", bits)},
		{"transfers", "e6/s", peak(c.TransferMTs), "the fastest memory that is supported"},
		{"f32", "", peak(float64(c.FP32PerCycle)), "operations of a core in a cycle"},
		{"int8", "", peak(float64(c.INT8PerCycle)), "operations of a core in a cycle"},
		{"clock", "GHz", peak(c.MaxGHz), "the highest boost of its models"},
	}, c.Source, nil)
}
