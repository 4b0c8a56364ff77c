package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Options select what the page of a diagnosis shows.
type Options struct {
	Verbose bool // every rule, fact, quantity and device
	Classic bool // the PROFILE ceilings instead of the physical ones
}

// Diagnosis returns the page of a diagnosis: the answer with the recommended change, then its basis.
func Diagnosis(d *engine.Diagnosis, o Options) *page.Page {
	p := &page.Page{Title: "rooftop: " + cmp.Or(d.Target.Model, "a server")}
	add := func(list ...page.Section) { p.Sections = append(p.Sections, list...) }
	if d.Target.Simulated {
		add(page.Section{ID: "simulated", Nodes: []page.Node{simulatedProse()}})
	}
	add(Answer(d), Target(d))
	add(headline(d)...)
	if d.Windows.Active > 0 {
		add(requestTimeSection(d))
		if o.Classic {
			add(classicSection(d))
		} else {
			add(distance(d))
		}
	}
	if o.Verbose {
		add(Rules(d, "every rule, in rank order"))
	} else {
		add(findings(d))
	}
	missing := NotRead(d.Missing)
	if o.Verbose {
		missing = notRead(d.Missing)
	}
	add(rejected(d), missing, lastRawSection(d))
	if o.Verbose {
		add(FactsSection(&d.Facts))
		if !o.Classic {
			add(classicSection(d))
		}
		add(physicalStep(d), measuredSection(d))
		add(devices(d)...)
	}
	add(footer(d, o))
	return p
}

func simulatedProse() page.Prose {
	return page.Paragraph(page.Mark(page.Warn, Simulated+" server:"), page.Toned(page.Body, " "+simulatedRemark))
}

// footer names further output.
func footer(d *engine.Diagnosis, o Options) page.Section {
	sec := page.Section{ID: "more", Terminal: true}
	more := "-v shows every rule, fact and figure with its origin"
	if o.Verbose {
		more = "--json writes the same as a document"
	}
	if r := d.Recommendation; r != nil {
		// A report is longer than a small screen, so the answer is repeated at its end.
		sec.Add(page.Paragraph(page.Toned(page.Strong, "do "), page.Toned(page.Accent, Action(r))))
		more = launch.Line("rooftop", "explain", string(r.Finding)) + ": how it is judged; " + more
	}
	sec.Add(page.Paragraph(page.Toned(page.Muted, more)))
	return sec
}

// block is a titled table of figures.
type block struct {
	d    *engine.Diagnosis
	gaps *page.Gaps
	page.Section
	table *page.Table
}

func newBlock(d *engine.Diagnosis, g *page.Gaps, title string, heads ...string) *block {
	b := &block{d: d, gaps: g, Section: page.Section{ID: strings.ToLower(strings.Fields(title)[0]), Title: title, Beside: true}, table: &page.Table{}}
	for i, h := range heads {
		b.table.Columns = append(b.table.Columns, page.Column{Head: h, Left: i != 1 && h == "", Tone: page.Strong})
	}
	b.table.Columns[0].Tone = page.Body
	b.Add(b.table)
	return b
}

func (b *block) row(cells ...page.Cell) { b.table.Rows = append(b.table.Rows, cells) }

// quantity adds a row of a figure with its unit; tail is appended to the label.
func (b *block) quantity(label, name, tail string) {
	q := Quantity(b.d, name)
	if !q.Value.OK {
		if b.d.Windows.Active > 0 {
			b.gaps.Add(label, q.Reason)
			b.row(page.Cell{Text: label, Tone: page.Muted}, page.Words(""), page.Cell{})
		}
		return
	}
	number, unit := figure.AmountWithin(q.Value.V, q.Bucket.Width(), q.Unit)
	if unit == "req" { // part of the label
		unit = ""
	}
	if strings.HasPrefix(unit, "/") && unit != "/s" {
		number, unit = number+unit, ""
	}
	rest := strings.Join(strings.Fields(strings.Join([]string{unit, tail, b.estimated(q), q.Scope()}, " ")), " ")
	b.row(page.Cell{Text: label}, page.Cell{Text: AtLeast(q) + number}, page.Cell{Text: strings.ReplaceAll(rest, " ,", ","), Tone: page.Body})
}

// ofLimit adds a row of a figure and its limit, in the unit of the limit.
func (b *block) ofLimit(label, name, limit, tail string) {
	q, of := Quantity(b.d, name), Quantity(b.d, limit)
	if !q.Value.OK || !of.Value.OK || of.Value.V <= 0 {
		b.quantity(label, name, strings.TrimPrefix(tail, ", "))
		return
	}
	number, unit := figure.Amount(q.Value.V, q.Unit)
	whole, wholeUnit := figure.Amount(of.Value.V, of.Unit)
	rest := "of " + whole + " " + wholeUnit + tail
	if unit != wholeUnit {
		rest = unit + " " + rest
	}
	b.row(page.Cell{Text: label}, page.Cell{Text: number}, page.Cell{Text: rest, Tone: page.Body})
}

// estimated returns the mark of an estimate, with the date of the catalog price if it is based on one.
func (b *block) estimated(q engine.Quantity) string {
	f := &b.d.Facts
	if q.Source == engine.Estimate && strings.HasPrefix(q.Unit, "USD") && f.CostEst && f.GPU.Price != nil && f.GPU.Price.AsOf != "" {
		return "(est," + nbsp + f.GPU.Price.AsOf + ")"
	}
	return estimateMark(q.Source)
}

// headline returns the numbers of the run: load, latency, GPU and cost.
func headline(d *engine.Diagnosis) []page.Section {
	g := &page.Gaps{}
	var out []page.Section
	for _, b := range []*block{load(d, g), latency(d, g), machine(d, g)} {
		figures := slices.ContainsFunc(b.table.Rows, func(row []page.Cell) bool { return row[1].Text != figure.Absent })
		if d.Windows.Active > 0 || figures { // an idle server shows only what it has
			out = append(out, b.Section)
		}
	}
	if d.Windows.Active == 0 {
		return out
	}
	return append(out, page.Section{ID: "absent", Nodes: g.Nodes()})
}

func load(d *engine.Diagnosis, g *page.Gaps) *block {
	b := newBlock(d, g, "Load", "", "", "")
	b.quantity("output", Output, "")
	b.quantity("prompt", "prompt_tokens_per_s", "")
	b.quantity("requests", "requests_per_s", "")
	slots := ""
	if n := Slots(&d.Facts); n.OK {
		slots = "of " + figure.Whole(n.V) + " slots"
		if d.Facts.MaxNumSeqsInferred || d.Facts.MaxNumSeqs.Source == engine.FromCatalog {
			slots += " (est)"
		}
	}
	b.quantity("running", "running_mean", slots)
	b.quantity("waiting", "waiting_mean", "")
	mean, peak := Quantity(d, "kv_usage_mean").Value, Quantity(d, "kv_usage_peak").Value
	tail := "full"
	if peak.OK && (peak.V > mean.Or(0)+0.10 || peak.V >= 0.95) {
		tail = ", peak " + figure.Percent(peak.V) + " %"
	}
	b.quantity("KV pool", "kv_usage_mean", tail)
	if Quantity(d, "preemptions_per_s").Value.Or(0) > 0 {
		b.quantity(d.Facts.Spell("preempted"), "preemptions_per_s", "")
	}
	b.quantity("prefix hits", "prefix_hit_rate", "")
	b.quantity("mean prompt", "prompt_tokens_mean", "")
	return b
}

func latency(d *engine.Diagnosis, g *page.Gaps) *block {
	b := newBlock(d, g, "Latency", "", "mean", "p99")
	show := func(label, name string) (page.Cell, engine.Quantity) {
		q := Quantity(d, name)
		if !q.Value.OK {
			g.Add(label, q.Reason)
			return page.Words(""), q
		}
		return page.Cell{Text: Show(q)}, q
	}
	for _, m := range []struct{ label, mean, p99 string }{
		{"TTFT", "ttft_mean_s", "ttft_p99_s"}, {"ITL", "itl_mean_s", "itl_p99_s"}, {"TPOT", "tpot_mean_s", "tpot_p99_s"}, {"end to end", "e2e_mean_s", ""},
	} {
		mean, q := show(m.label, m.mean)
		p99 := page.Cell{}
		if m.p99 != "" {
			p99, _ = show(m.label, m.p99)
		}
		if s := q.Scope(); s != "" && q.Value.OK {
			p99 = page.Cell{Text: s, Tone: page.Muted}
		}
		b.row(page.Cell{Text: m.label}, mean, p99)
	}
	return b
}

func machine(d *engine.Diagnosis, g *page.Gaps) *block {
	title := "GPU, cost"
	if d.Target.Simulated {
		title = "GPU (simulated), cost"
	}
	b := newBlock(d, g, title, "", "", "")
	known := func(name string) bool { return Quantity(d, name).Value.OK }
	switch {
	case known("gpu_util") || known("power_w") || known("vram_used_bytes"):
		b.quantity("GPU busy", "gpu_util", "")
		if known("dram_util") {
			b.quantity("DRAM", "dram_util", "of peak bandwidth")
		}
		b.ofLimit("power", "power_w", "power_limit_w", "")
		tail := ""
		if peak := Quantity(d, "vram_peak_bytes").Value.Div(Quantity(d, "vram_total_bytes").Value); peak.OK && peak.V >= 0.9 {
			tail = ", peak " + figure.Percent(peak.V) + " %"
		}
		b.ofLimit("VRAM", "vram_used_bytes", "vram_total_bytes", tail)
		if Quantity(d, "temperature_c").Value.Or(0) >= 80 {
			b.quantity("hottest", "temperature_c", "")
		}
		if Quantity(d, "throttled").Value.Or(0) > 0 {
			tail := ""
			if f := d.Finding(engine.PowerLimit); f == nil || !f.Significant {
				tail = "at times: too few to act on"
			}
			b.quantity("throttled", "throttled", tail)
		}
	default:
		g.Add("GPU", Quantity(d, "gpu_util").Reason)
		b.row(page.Cell{Text: "GPU", Tone: page.Muted}, page.Words(""), page.Cell{})
	}
	b.quantity("$/1M output", "usd_per_million_tokens", "")
	if known("joules_per_token") {
		b.quantity("energy", "joules_per_token", "per output token")
	}
	return b
}

// requestTimeSection shows how the mean request's time is divided, as a timeline.
func requestTimeSection(d *engine.Diagnosis) page.Section {
	sec := page.Section{ID: "request-time", Title: "Where a request's time goes"}
	r := NewRequestTime(d)
	if r.Total <= 0 {
		sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" request times: "+r.Why)))
		return sec
	}
	sec.Note = "mean " + figure.Value(r.Total, "s")
	if e2e := Quantity(d, "e2e_mean_s"); e2e.Scope() != "" && e2e.Value.Or(r.Total) < r.Total {
		sec.Note += ", the sum of its parts"
	}
	sec.Add(r.Table())
	return sec
}

// distance shows how far the server is below the limits of its hardware, and what limits it.
func distance(d *engine.Diagnosis) page.Section {
	sec := page.Section{ID: "ceiling", Title: "How far from the hardware"}
	c, out := &d.Ceiling, Quantity(d, Output).Value
	if c.Impossible != "" {
		sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" no distance is shown: model, GPU, dtype or TP is misread (above)")))
		return sec
	}
	p := c.Physical
	if p == nil {
		sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" "+cmp.Or(c.PhysicalReason, "not computed"))))
		return sec
	}
	sec.Add(Levels(d), page.Paragraph(BoundByShares(p)))
	if rate, words := BestAllowed(out, p); rate != "" {
		if longer := p.Calibration; longer.Or(0) > 1.03 && p.BestTokensPerS.V < p.AchievableTokensPerS.V {
			words += ": below achievable, as a step takes " + figure.Significant(longer.V) + " times the achievable one"
		}
		sec.Add(page.Paragraph(page.Toned(page.Body, "server's best "), page.Toned(page.Strong, rate), page.Toned(page.Body, words)))
	}
	if h := &d.Headroom; h.Mid.OK || h.Reason != "" {
		sec.Add(page.Paragraph(headroom(h)))
	}
	return sec
}

// Levels returns the table of measured, achievable and ideal output of a diagnosis with a physical ceiling.
func Levels(d *engine.Diagnosis) *page.Table {
	p, out := d.Ceiling.Physical, Quantity(d, Output).Value
	ideal := p.IdealTokensPerS.Finite()
	type level struct {
		label string
		rate  stat.Opt
		note  string
	}
	levels := []level{
		{"measured", out, aboveRange(out, p)},
		{"achievable", p.AchievableTokensPerS.Finite(), AchievableRange(p) + " (est)"},
		{"ideal", ideal, "at " + figure.Count(Quantity(d, "running_mean").Value.Or(p.Batch)) + " running (est)"},
	}
	share := func(l level) stat.Opt { return l.rate.Div(ideal).Finite() }
	return page.Tabulate(levels, []page.Field[level]{
		page.Left("", page.Body, func(l level) string { return l.label }),
		page.Right("", page.Strong, func(l level) page.Cell { return page.Amount(l.rate, "tok/s") }),
		{Cell: func(l level) page.Cell { return page.Share(share(l)) }},
		page.Bars(share).Ranked(0),
		page.Notes("", func(l level) string { return l.note }),
	})
}

// headroom returns how many more requests a server takes, in one line.
func headroom(h *engine.Headroom) page.Text {
	const label = "headroom "
	switch {
	case !h.Mid.OK:
		return page.Toned(page.Muted, label, "unknown: ", h.Reason)
	case h.Reason != "":
		return page.Join(page.Toned(page.Body, label), page.Toned(page.Strong, "none"), page.Toned(page.Body, ": "+h.Reason))
	}
	low, high := figure.Compared(h.Low.V, h.High.V, "req/s")
	if h.Limit == engine.LimitObjective {
		return page.Join(page.Toned(page.Body, label), page.Toned(page.Strong, strings.TrimSuffix(low, nbsp+"req/s"), " to ", high),
			page.Toned(page.Body, " more of this kind hold "+h.Objective+" with these settings (est), with "+figure.Count(h.Running.V)+" running"))
	}
	full := map[engine.HeadroomLimit]string{
		engine.LimitSlots: "the slots are full with %s running", engine.LimitPool: "the KV pool is full with %s running", engine.LimitOutput: "output does not grow beyond %s running",
	}[h.Limit]
	return page.Join(page.Toned(page.Body, label), page.Toned(page.Strong, strings.TrimSuffix(low, nbsp+"req/s"), " to ", high), page.Toned(page.Body, " more of this kind before some wait with these settings (est): "+fmt.Sprintf(full, figure.Count(h.Running.V))))
}

// aboveRange notes an output above the achievable range, or "".
func aboveRange(out stat.Opt, o *roofline.Operating) string {
	if out.OK && o.AchievableUpper.OK && out.V > o.AchievableUpper.V {
		return "above the estimate"
	}
	return ""
}

// BoundByShares returns what binds, with the shares of a step's time.
func BoundByShares(o *roofline.Operating) page.Text { return boundBy(o.Binding, stepShares(o.TermsS)) }

func boundBy(term, shares string) page.Text {
	t := page.Join(page.Toned(page.Body, "bound by "), page.Toned(page.Strong, BoundBy(term)))
	if shares != "" {
		t = page.Join(t, page.Toned(page.Body, ": "+shares+" of a step"))
	}
	return t
}

// findings lists the fired rules by rank, and names the others by state.
func findings(d *engine.Diagnosis) page.Section {
	sec := page.Section{ID: "findings", Title: "Findings"}
	var list page.Findings
	others := map[string][]string{}
	for i := range d.Findings {
		f := &d.Findings[i]
		name := string(f.ID)
		switch f.State {
		case engine.Fired:
			list = append(list, firedFinding(d, f))
			continue
		case engine.Suppressed:
			name += " (" + cmp.Or(f.Reason, "by "+f.SuppressedBy) + ")"
		case engine.NotEvaluable:
			// A missing input is worth naming only if the user can give it; -v lists all.
			if len(f.Missing) > 0 && f.Rule != "beyond" && f.ID != engine.OOMRisk {
				name += " (needs " + strings.Join(f.Missing, ", ") + ")"
			}
		case engine.NotFired:
			if f.Undecided() {
				name += fmt.Sprintf(" (judged %d of %d windows)", f.Judged, f.Evaluable)
			}
		}
		_, word := State(f)
		others[word] = append(others[word], name)
	}
	for _, s := range []struct {
		tone page.Tone
		word string
	}{{page.OK, "not fired"}, {page.Muted, "suppressed"}, {page.Muted, "not judged"}} {
		if ids := others[s.word]; len(ids) > 0 {
			list = append(list, page.Finding{Tone: s.tone, Word: s.word, Title: page.Toned(page.Muted, strings.Join(ids, ", "))})
		}
	}
	if len(list) == 0 {
		sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" no rule was run")))
		return sec
	}
	sec.Add(list)
	return sec
}

func firedFinding(d *engine.Diagnosis, f *engine.Finding) page.Finding {
	tone, word := State(f)
	title := page.Join(page.Toned(page.Strong, string(f.ID)), page.Toned(page.Muted, " ("+f.Rule+"), "+firedIn(f)))
	if rank := Rank(d, f.ID); rank != "" {
		title = page.Join(title, page.Toned(page.Accent, " → "+rank))
	}
	out := page.Finding{ID: string(f.ID), Tone: tone, Word: word, Title: title}
	out.Evidence = append(out.Evidence, cmp.Or(DecidedBy(f), f.Title))
	if f.Fix != nil && f.Fix.Withheld != "" {
		out.Evidence = append(out.Evidence, "listed, not recommended: "+f.Fix.Withheld)
	}
	return out
}

// Rules returns every rule with its state, how often it fired, and the deciding figures.
func Rules(d *engine.Diagnosis, note string) page.Section {
	sec := page.Section{ID: "rules", Title: "Findings", Note: note}
	var list page.Findings
	for i := range d.Findings {
		list = append(list, ruleFinding(d, &d.Findings[i]))
	}
	sec.Add(list)
	return sec
}

// ruleFinding returns one rule with all of its evidence.
func ruleFinding(d *engine.Diagnosis, f *engine.Finding) page.Finding {
	tone, word := State(f)
	name := string(f.ID) + ", " + string(f.Group)
	if f.Rule != "" && f.Rule != "beyond" {
		name = f.Rule + ", " + name
	}
	out := page.Finding{ID: string(f.ID), Tone: tone, Word: word, Title: page.Join(page.Toned(page.Strong, f.Title), page.Toned(page.Muted, " ("+name+")"))}
	if rank := Rank(d, f.ID); rank != "" {
		out.Title = page.Join(out.Title, page.Toned(page.Accent, " → "+rank))
	}
	how := ""
	switch {
	case f.State == engine.Fired:
		how = firedIn(f) + ", " + Score(f)
	case f.Judged > 0:
		how = firedIn(f)
	}
	if text := strings.TrimPrefix(how+": "+DecidedBy(f), ": "); strings.TrimSuffix(text, ": ") != "" {
		out.Evidence = append(out.Evidence, strings.TrimSuffix(text, ": "))
	}
	out.Evidence = append(out.Evidence, remainder(f)...)
	for _, e := range f.Evidence {
		text := e.Name + " " + EvidenceText(e)
		if e.Text != "" {
			text += ": " + e.Text
		}
		if e.Source != "" {
			text += " (" + SourceName(e.Source) + ")"
		}
		out.Evidence = append(out.Evidence, text)
	}
	return out
}

// rejected returns the remedies that were considered and rejected. Withheld fixes are listed with
// their findings.
func rejected(d *engine.Diagnosis) page.Section {
	sec := page.Section{ID: "rejected", Title: "Considered, not recommended"}
	if d.Recommendation == nil {
		return sec
	}
	for _, x := range d.Recommendation.Rejected {
		if !slices.ContainsFunc(d.Findings, func(f engine.Finding) bool { return f.Fix != nil && f.Fix.Withheld == x.Why }) {
			sec.Add(page.Paragraph(page.Toned(page.Body, x.What), page.Toned(page.Muted, ": "+x.Why)))
		}
	}
	return sec
}

// NotRead returns what could not be read, and the features this disables.
func NotRead(list []engine.Missing) page.Section {
	sec := page.Section{ID: "not-read", Title: "Not read", Note: "and what that disables"}
	for _, m := range list {
		t := page.Join(page.Toned(page.Strong, m.What), page.Toned(page.Body, ": "+m.Reason))
		if m.Effect != "" {
			t = page.Join(t, page.Toned(page.Muted, " → "+m.Effect))
		}
		sec.Add(page.Paragraph(t))
	}
	return sec
}

// notRead returns NotRead, or a statement that everything was read.
func notRead(list []engine.Missing) page.Section {
	sec := NotRead(list)
	if len(list) == 0 {
		sec.Note = ""
		sec.Add(page.Paragraph(page.Toned(page.Muted, "Everything that could be read was read.")))
	}
	return sec
}
