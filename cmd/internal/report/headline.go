package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// gaps collects what is absent from the headline, by reason.
type gaps struct {
	reasons []string
	labels  map[string][]string
}

func (g *gaps) add(label, reason string) {
	reason = cmp.Or(reason, "not measured")
	if g.labels == nil {
		g.labels = map[string][]string{}
	}
	if !slices.Contains(g.reasons, reason) {
		g.reasons = append(g.reasons, reason)
	}
	if !slices.Contains(g.labels[reason], label) {
		g.labels[reason] = append(g.labels[reason], label)
	}
}

// block is a table whose first row is its title, beside others on the page.
type block struct {
	table
	figures int // values that are there
}

// titled starts a block; heads stand over the columns after the labels.
func (r *plain) titled(title string, heads ...string) *block {
	row := []cell{{t: r.text(strong, title)}}
	for _, h := range heads {
		row = append(row, cell{t: r.text(muted, nbsp+h), right: true})
	}
	for len(row) < 2 { // a single cell would not count as a column
		row = append(row, cell{})
	}
	return &block{table: table{rows: [][]cell{row}, gap: 1}}
}

// label is the first cell of a row, set in under its block's title.
func (r *plain) label(t tone, s string) cell {
	return cell{t: r.text(t, strings.Repeat(nbsp, indent)+s+nbsp)}
}

// headline writes the numbers of the run in one, two or three columns.
func (r *plain) headline() {
	var g gaps
	load, latency, machine := r.load(&g), r.latency(&g), r.machine(&g)
	const gutter = 3
	columns := [][]*block{{load}, {latency}, {machine}}
	switch {
	case r.d.Windows.Active == 0: // nothing but what an idle server shows too
		columns = nil
		for _, b := range []*block{load, latency, machine} {
			if b.figures > 0 {
				columns = append(columns, []*block{b})
			}
		}
		g = gaps{}
	case r.width < 116:
		columns = [][]*block{{load}, {latency, machine}}
	}
	if len(columns) == 0 {
		return
	}
	r.blank()
	widths, total := make([]int, len(columns)), -gutter
	for i, column := range columns {
		for _, b := range column {
			widths[i] = max(widths[i], b.natural())
		}
		widths[i] += gutter
		total += widths[i]
	}
	if total > r.width || r.width < 76 {
		columns, widths = [][]*block{slices.Concat(columns...)}, []int{r.width + gutter}
	} else if spare := r.width - total; len(columns) > 1 {
		for i := range len(columns) - 1 { // spread, but keep columns close enough to read across
			widths[i] += min(spare/(len(columns)-1), 6)
		}
	}
	var sides [][]text
	for i, column := range columns {
		var side []text
		for j, b := range column {
			if j > 0 {
				side = append(side, nil)
			}
			side = append(side, b.lines(widths[i]-gutter)...)
		}
		sides = append(sides, side)
	}
	r.beside(0, widths, sides...)
	for _, reason := range g.reasons {
		r.para(0, 2, r.text(muted, absent+" "+strings.Join(g.labels[reason], ", ")+": "+reason))
	}
}

// put adds a row "label  figure  unit tail" for a quantity, or a dash.
func (r *plain) put(b *block, g *gaps, label, name, tail string) {
	q := r.value(name)
	if !q.Value.OK {
		if r.d.Windows.Active == 0 {
			return
		}
		g.add(label, q.Reason)
		b.add(r.label(muted, label), cell{t: r.text(muted, absent), right: true}, cell{})
		return
	}
	figure, unit := figure.Amount(q.Value.V, q.Unit)
	if unit == "req" { // running and waiting are requests by their label
		unit = ""
	}
	if strings.HasPrefix(unit, "/") && unit != "/s" {
		figure, unit = figure+unit, ""
	}
	rest := strings.Join([]string{unit, tail, r.estimated(q), sinceStart(q)}, " ")
	rest = strings.ReplaceAll(strings.Join(strings.Fields(rest), " "), " ,", ",")
	b.figures++
	b.add(r.label(body, label), cell{t: r.text(strong, atLeast(q)+figure), right: true}, cell{t: r.text(body, rest)})
}

// estimated is the mark of an estimate; one that rests on a catalog price has
// the price's date.
func (r *plain) estimated(q engine.Quantity) string {
	f := &r.d.Facts
	if q.Source == engine.Estimate && strings.HasPrefix(q.Unit, "USD") && f.CostEst && f.GPU.Price != nil && f.GPU.Price.AsOf != "" {
		return "(est," + nbsp + f.GPU.Price.AsOf + ")"
	}
	return est(q.Source)
}

// sinceStart labels a cumulative mean that stands in for a run without an
// observation.
func sinceStart(q engine.Quantity) string {
	if strings.Contains(q.Note, "since start") {
		return "since start"
	}
	return ""
}

func (r *plain) load(g *gaps) *block {
	b := r.titled("Load")
	r.put(b, g, "output", "generation_tokens_per_s", "")
	r.put(b, g, "prompt", "prompt_tokens_per_s", "")
	r.put(b, g, "requests", "requests_per_s", "")
	seats := ""
	if f := r.d.Facts.MaxNumSeqs; f.Known {
		ranks := 1
		if dp := r.d.Facts.DataParallel; dp.Known && dp.Value > 1 {
			ranks = dp.Value
		}
		seats = "of " + figure.Whole(float64(f.Value)*float64(ranks)) + " seats"
		if f.Source == engine.FromCatalog || f.Source == engine.FromDerived {
			seats += " (est)"
		}
	}
	r.put(b, g, "running", "running_mean", seats)
	r.put(b, g, "waiting", "waiting_mean", "")
	mean, peak := r.value("kv_usage_mean").Value, r.value("kv_usage_peak").Value
	tail := "full"
	if peak.OK && (peak.V > mean.Or(0)+0.10 || peak.V >= 0.95) {
		tail = ", peak " + figure.Percent(peak.V) + " %"
	}
	r.put(b, g, "KV pool", "kv_usage_mean", tail)
	if p := r.value("preemptions_per_s").Value; p.OK && p.V > 0 {
		r.put(b, g, "preempted", "preemptions_per_s", "")
	}
	r.put(b, g, "prefix hits", "prefix_hit_rate", "")
	r.put(b, g, "mean prompt", "prompt_tokens_mean", "")
	return b
}

func (r *plain) latency(g *gaps) *block {
	b := r.titled("Latency", "mean", "p99")
	for _, m := range []struct{ label, mean, p99 string }{
		{"TTFT", "ttft_mean_s", "ttft_p99_s"},
		{"ITL", "itl_mean_s", "itl_p99_s"},
		{"TPOT", "tpot_mean_s", "tpot_p99_s"},
		{"end to end", "e2e_mean_s", ""},
	} {
		mean := r.value(m.mean)
		row := []cell{r.label(body, m.label), r.figure(b, g, m.label, mean), {}}
		if m.p99 != "" {
			label := m.label + " p99"
			if !mean.Value.OK {
				label = m.label
			}
			row[2] = r.figure(b, g, label, r.value(m.p99))
		}
		if s := sinceStart(mean); s != "" && mean.Value.OK {
			row[2] = cell{t: r.text(muted, nbsp+s)}
		}
		b.rows = append(b.rows, row)
	}
	return b
}

// figure is a value with its unit in one right-aligned cell.
func (r *plain) figure(b *block, g *gaps, label string, q engine.Quantity) cell {
	if !q.Value.OK {
		g.add(label, q.Reason)
		return cell{t: r.text(muted, absent), right: true}
	}
	b.figures++
	return cell{t: r.text(strong, nbsp+shown(q)), right: true}
}

func (r *plain) machine(g *gaps) *block {
	title := "GPU, cost"
	if r.d.Target.Simulated {
		title = "GPU (simulated), cost"
	}
	b := r.titled(title)
	if r.anyGPU() {
		r.put(b, g, "GPU busy", "gpu_util", "")
		if r.value("dram_util").Value.OK {
			r.put(b, g, "DRAM", "dram_util", "of peak bandwidth")
		}
		r.putOf(b, g, "power", "power_w", "power_limit_w", "")
		tail := ""
		if peak := r.value("vram_peak_bytes").Value.Div(r.value("vram_total_bytes").Value); peak.OK && peak.V >= 0.9 {
			tail = ", peak " + figure.Percent(peak.V) + " %"
		}
		r.putOf(b, g, "VRAM", "vram_used_bytes", "vram_total_bytes", tail)
		if c := r.value("temperature_c").Value; c.OK && c.V >= 80 {
			r.put(b, g, "hottest", "temperature_c", "")
		}
		if t := r.value("throttled").Value; t.OK && t.V > 0 {
			r.put(b, g, "throttled", "throttled", "")
		}
	} else {
		why := r.value("gpu_util").Reason
		if width(why) > 26 {
			g.add("GPU", why)
			why = ""
		}
		b.add(r.label(muted, "GPU"), cell{t: r.text(muted, absent), right: true}, cell{t: r.text(muted, why)})
	}
	r.put(b, g, "$/1M tok", "usd_per_million_tokens", "")
	if r.value("joules_per_token").Value.OK {
		r.put(b, g, "energy", "joules_per_token", "per token")
	}
	return b
}

// anyGPU says whether any reading of a device is there.
func (r *plain) anyGPU() bool {
	for _, name := range []string{"gpu_util", "power_w", "vram_used_bytes"} {
		if r.value(name).Value.OK {
			return true
		}
	}
	return false
}

// putOf adds a row "label  figure  of limit unit": both in the unit of the
// limit.
func (r *plain) putOf(b *block, g *gaps, label, name, limit, tail string) {
	q, of := r.value(name), r.value(limit)
	if !q.Value.OK || !of.Value.OK || of.Value.V <= 0 {
		r.put(b, g, label, name, strings.TrimPrefix(tail, ", "))
		return
	}
	number, unit := figure.Amount(q.Value.V, q.Unit)
	whole, unitOfWhole := figure.Amount(of.Value.V, of.Unit)
	rest := "of " + whole + " " + unitOfWhole + tail
	if unit != unitOfWhole {
		rest = unit + " " + rest
	}
	b.figures++
	b.add(r.label(body, label), cell{t: r.text(strong, number), right: true}, cell{t: r.text(body, rest)})
}
