package report

import (
	"io"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// peak is a datasheet value; the zero of a catalog entry is unknown.
func peak(v float64) stat.Opt {
	if v == 0 {
		return stat.None
	}
	return stat.Some(v)
}

// plainCell is a right-aligned figure without its unit.
func (p *page) plainCell(v float64) cell {
	if v == 0 {
		return cell{t: p.text(muted, absent), right: true}
	}
	return cell{t: p.text(body, figure.Count(v)), right: true}
}

// kilo is a right-aligned number of tokens in units of 1,024.
func (p *page) kilo(tokens int) cell {
	if tokens == 0 {
		return cell{t: p.text(muted, absent), right: true}
	}
	return cell{t: p.text(body, figure.Count(float64(tokens)/1024)+"k"), right: true}
}

func (p *page) heads(names ...string) []cell {
	var list []cell
	for i, n := range names {
		list = append(list, cell{t: p.text(muted, n), right: i < len(names)-1})
	}
	return list
}

// WriteGPUs lists GPUs: figures first, so that long names stand at the end.
func WriteGPUs(w io.Writer, gpus []catalog.GPU, o Options) error {
	p := newPage(w, o)
	p.title("GPUs", "memory in GiB, bandwidth in GB/s, dense peaks in TFLOPS, price of one for an hour (est)")
	t := &table{}
	t.add(p.heads("GiB", "GB/s", "bf16", "fp8", "W", "$/h", "name")...)
	for i := range gpus {
		g := &gpus[i]
		price := cell{t: p.text(muted, absent), right: true}
		if g.Price != nil && g.Price.OnDemandUSD > 0 {
			price = cell{t: p.text(body, figure.Dollars(g.Price.OnDemandUSD)), right: true}
		}
		t.add(p.plainCell(g.VRAMGiB), p.plainCell(g.MemBandwidthGBs), p.plainCell(g.BF16TFLOPS), p.plainCell(g.FP8TFLOPS), p.plainCell(g.TDPW),
			price, cell{t: p.text(strong, g.Name)})
	}
	p.table(indent, t)
	return p.flush()
}

// WriteModels lists models: figures first, so that long names stand at the end.
func WriteModels(w io.Writer, models []catalog.Model, o Options) error {
	p := newPage(w, o)
	p.title("Models", "parameters in 1e9, context in units of 1,024 tokens")
	t := &table{}
	t.add(p.heads("total", "active", "context", "type", "name")...)
	for i := range models {
		m := &models[i]
		t.add(p.plainCell(m.TotalParams/1e9), p.plainCell(m.ActiveParams/1e9), p.kilo(m.MaxPositions),
			cell{t: p.text(body, string(m.NativeDType)), right: true}, cell{t: p.text(strong, m.ID)})
	}
	p.table(indent, t)
	return p.flush()
}

// WriteGPU writes one GPU with everything known of it and where from.
func WriteGPU(w io.Writer, g catalog.GPU, o Options) error {
	p := newPage(w, o)
	p.entry(g.Name, strings.Join(nonEmpty(g.Vendor, g.Arch), ", "), g.Aliases)
	list := []pair{
		{"memory", "GiB", peak(g.VRAMGiB), ""},
		{"memory bandwidth", "GB/s", peak(g.MemBandwidthGBs), ""},
		{"fp32", "TFLOPS", peak(g.FP32TFLOPS), "not tensor cores; the classic formulas use it"},
		{"tf32", "TFLOPS", peak(g.TF32TFLOPS), "dense"},
		{"bf16, fp16", "TFLOPS", peak(g.BF16TFLOPS), "dense"},
		{"fp8", "TFLOPS", peak(g.FP8TFLOPS), "dense"},
		{"int8", "TOPS", peak(g.INT8TOPS), "dense"},
		{"fp4", "TFLOPS", peak(g.FP4TFLOPS), "dense"},
		{"power limit", "W", peak(g.TDPW), ""},
		{"PCIe generation", "", peak(float64(g.PCIeGen)), ""},
	}
	link := pair{"NVLink", "GB/s", stat.None, ""}
	if g.NVLinkGBs != nil {
		link.v, link.note = stat.Some(*g.NVLinkGBs), "both directions, all links"
	}
	list = append(list, link)
	if g.Price != nil {
		list = append(list, pair{"on demand", "USD/h", peak(g.Price.OnDemandUSD), "one GPU (est), " + g.Price.AsOf},
			pair{"spot", "USD/h", peak(g.Price.SpotUSD), "one GPU (est), " + g.Price.AsOf})
	}
	if a := g.Achieved; a != nil {
		list = append(list,
			pair{"achieved bandwidth", "ratio", peak(a.GEMMBandwidth), "of the peak, weight-bound layers"},
			pair{"", "ratio", peak(a.AttnBandwidth), "of the peak, decode attention"},
			pair{"achieved compute", "ratio", peak(a.GEMMCompute), "of the peak, large layers"},
			pair{"", "ratio", peak(a.PrefillAttn), "of the peak, prefill attention"})
	}
	p.pairs(list)
	p.sources(g.Source, g.Price)
	return p.flush()
}

// entry writes the head of one catalog entry.
func (p *page) entry(name, kind string, aliases []string) {
	p.title(name, kind)
	if len(aliases) > 0 {
		p.para(0, 2, p.text(muted, "also "+strings.Join(aliases, ", ")))
	}
	p.blank()
}

func (p *page) sources(source string, price *catalog.Price) {
	p.blank()
	p.para(indent, indent+2, p.text(muted, "source: "+source))
	if price != nil && price.Source != "" {
		p.para(indent, indent+2, p.text(muted, "price: "+price.Source))
	}
}

// WriteModel writes one model with everything known of its shape and where
// from.
func WriteModel(w io.Writer, m catalog.Model, o Options) error {
	p := newPage(w, o)
	p.entry(m.ID, m.Family, m.Aliases)
	number := func(label string, v int, note string) pair { return pair{label, "", peak(float64(v)), note} }
	p.pairs([]pair{
		{"parameters", "e9", peak(m.TotalParams / 1e9), ""},
		{"of these active", "e9", peak(m.ActiveParams / 1e9), "for one token"},
		number("layers", m.Layers, ""),
		number("hidden", m.Hidden, ""),
		number("heads", m.Heads, strconv.Itoa(m.KVHeads)+" KV heads of "+strconv.Itoa(m.HeadDim)),
		number("FFN width", m.Intermediate, ""),
		number("vocabulary", m.Vocab, map[bool]string{true: "the input table is also the output layer"}[m.TiedEmbeddings]),
		number("experts", m.Experts, ""),
		number("experts of a token", m.ExpertsPerToken, ""),
		number("context", m.MaxPositions, "tokens"),
		number("sliding window", m.SlidingWindow, "tokens"),
	})
	p.line(indent, p.text(body, "attention "+string(m.Attention)+", published as "+string(m.NativeDType)))
	p.sources(m.Source, nil)
	return p.flush()
}
