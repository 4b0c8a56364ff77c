package tuning

import (
	"cmp"
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// pairs are labels with optional values.
type pairs []pair

type pair struct {
	label string
	value stat.Opt
	unit  string
	note  string
}

func (l *pairs) add(label string, value stat.Opt, unit, note string) {
	value = value.Finite()
	if !value.OK {
		note = ""
	}
	*l = append(*l, pair{label, value, unit, note})
}

func (l pairs) table() *page.Table {
	return page.Tabulate(l, []page.Field[pair]{
		page.Left("", page.Body, func(p pair) string { return p.label }),
		page.Right("", page.Strong, func(p pair) page.Cell { return page.Amount(p.value, p.unit) }),
		page.Notes("", func(p pair) string { return p.note }),
	})
}

// classicSection returns the PROFILE formulas, as estimates.
func classicSection(d *engine.Diagnosis) page.Section {
	sec := page.Section{ID: "classic", Title: "PROFILE ceilings", Note: "by the documented formulas, for one replica (est)"}
	c := d.Ceiling.Classic
	if c == nil {
		sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" "+cmp.Or(d.Ceiling.ClassicReason, "not computed"))))
		return sec
	}
	list := classicPairs(c)
	list.add("decode × running", c.AggregateTokensPerS, "tok/s", "")
	list.add("efficiency", c.Efficiency, "ratio", "of decode × running")
	list.add("not used", c.Headroom, "ratio", "1 − efficiency, PROFILE's headroom")
	if d.Recommendation != nil {
		list.add("recoverable", c.RecoverableUSDPerHour, "USD/h", "PROFILE's cost × (1 − efficiency), not a predicted saving")
	}
	sec.Add(list.table())
	if c.Caveat != "" {
		sec.Add(page.Paragraph(page.Toned(page.Warn, c.Caveat)))
	}
	if ended, most := Quantity(d, "requests_per_s").Value, c.PrefillUpper.Times(float64(max(1, d.Ranks))); ended.OK && most.Finite().OK && ended.V > most.V {
		sec.Add(page.Paragraph(page.Toned(page.Warn, fmt.Sprintf("prefill does not limit this run, in which %s requests end a second: PROFILE takes six operations for each parameter and token, at the FP32 peak", figure.Count(ended.V)))))
	}
	return sec
}

// classicPairs returns the PROFILE figures that need no running server.
func classicPairs(c *roofline.Classic) pairs {
	band := func(low, high stat.Opt) string {
		if !low.Finite().OK || !high.Finite().OK {
			return ""
		}
		return figure.Significant(low.V) + " to " + figure.Significant(high.V)
	}
	var list pairs
	list.add("decode, one sequence", c.DecodeTokensPerS, "tok/s", band(c.DecodeLower, c.DecodeUpper))
	list.add("prefill", c.PrefillTokensPerS, "prompts/s", band(c.PrefillLower, c.PrefillUpper))
	list.add("ridge batch", c.RidgeBatch, "", "by the FP32 peak; that of a step by the matrix units")
	list.add("weights", c.WeightGB.Times(1e9), "B", figure.Significant(c.BytesPerParam.Or(0))+" bytes per parameter, from "+cmp.Or(c.BytesPerParamFrom, "nowhere"))
	list.add("left for KV", c.KVHeadroomGB.Times(1e9), "B", "of each GPU")
	list.add("TPOT floor", c.TPOTFloorS, "s", "")
	list.add("prefill floor", c.PrefillFloorS, "s", "")
	return list
}

// physicalStep returns the terms of the modelled step.
func physicalStep(d *engine.Diagnosis) page.Section {
	p := d.Ceiling.Physical
	if p == nil {
		return page.Section{ID: "step"}
	}
	sec := page.Section{
		ID: "step", Title: "One engine step", Note: "physical model at " + figure.Count(p.Batch) + " running, " + figure.Count(p.Context) + " tokens each (est)",
	}
	var list pairs
	list.add("ideal", stat.Some(p.StepIdealS), "s", "")
	list.add("achievable", stat.Some(p.StepAchievableS), "s", "")
	list.add("measured", Quantity(d, "step_time_s").Value, "s", "")
	list.add("measured/achievable", p.CalibrationRaw, "x", "predictions use it within 0.4 to 3")
	list.add("tokens of a step", stat.Some(p.StepTokens), "tok", "bound by compute above "+figure.Count(p.RidgeTokens))
	sec.Add(list.table(), termTable(p.TermsS, p.IdealTermsS))
	assumptions(&sec, p.Assumptions)
	return sec
}

func assumptions(sec *page.Section, list []string) {
	for _, a := range list {
		sec.Add(page.Paragraph(page.Toned(page.Muted, "assumed: "+a)))
	}
}

// termTable returns a table of the terms of a step.
func termTable(achievable, ideal roofline.Terms) *page.Table {
	t := &page.Table{Columns: []page.Column{{Head: "term", Left: true}, {Head: "achievable", Tone: page.Strong}, {Head: "ideal", Tone: page.Strong}}}
	for _, x := range []struct {
		label string
		a, b  float64
	}{
		{"weights", achievable.Weights, ideal.Weights}, {"KV reads", achievable.KV, ideal.KV}, {"linear compute", achievable.Compute, ideal.Compute},
		{"prefill attention", achievable.Attention, ideal.Attention}, {"collectives", achievable.Collectives, ideal.Collectives},
		{"fixed costs", achievable.Fixed, ideal.Fixed},
	} {
		t.Rows = append(t.Rows, []page.Cell{page.Words(x.label), page.Amount(stat.Some(x.a), "s"), page.Amount(stat.Some(x.b), "s")})
	}
	return t
}

// mostTP is the largest degree tried by roofline.Config.MinTP: two nodes of eight GPUs.
const mostTP = 16

// Ceiling returns the page of the hardware's limits without a server: whether the model fits, the limits of
// decode and prefill, and the binding term.
func Ceiling(c *HardwareCeiling, o Options) *page.Page {
	sections := []page.Section{ceilingHead(c), ceilingFit(c), ceilingRates(c)}
	if o.Verbose || o.Classic {
		sec := page.Section{ID: "classic", Title: "PROFILE ceilings", Note: "by the documented formulas, for comparison"}
		if c.Classic == nil {
			sec.Add(page.Paragraph(page.Toned(page.Muted, figure.Absent+" "+cmp.Or(c.ClassicReason, "not computed"))))
		} else {
			sec.Add(classicPairs(c.Classic).table())
		}
		sections = append(sections, sec)
	}
	if o.Verbose {
		sec := page.Section{ID: "inputs", Title: "Inputs"}
		sec.Add(page.Tabulate(c.Inputs, []page.Field[Fact]{
			page.Left("", page.Body, func(f Fact) string { return f.Name }),
			page.Left("", page.Muted, func(f Fact) string { return SourceName(f.Source) }),
			page.Left("", page.Strong, func(f Fact) string { return f.valueText() }),
		}), termTable(c.Physical.TermsS, c.Physical.IdealTermsS))
		assumptions(&sec, c.Physical.Assumptions)
		sections = append(sections, sec)
	}
	return &page.Page{Title: "rooftop: a ceiling", Sections: sections}
}

func ceilingHead(c *HardwareCeiling) page.Section {
	name := c.Input("model") + " on " + c.Input("tensor_parallel_size") + nbsp + "×" + nbsp + c.Input("gpu")
	shape := "weights" + nbsp + c.Input("weight_dtype") + nbsp + "· KV" + nbsp + c.Input("kv_cache_dtype") + nbsp + "· " +
		sequences(c.Input("batch")) + nbsp + "of" + nbsp + c.Input("context_tokens") + nbsp + "tokens" + nbsp + "· prompts" + nbsp + "of" + nbsp + c.Input("prompt_tokens") + nbsp + "tokens"
	return page.Section{ID: "configuration", Nodes: []page.Node{
		page.Paragraph(page.Toned(page.Strong, name), page.Toned(page.Muted, nbsp+" all figures (est)")), page.Paragraph(page.Toned(page.Muted, shape)),
	}}
}

func sequences(n string) string {
	if n == "1" {
		return n + nbsp + "sequence"
	}
	return n + nbsp + "sequences"
}

// leastTP returns the least tensor parallelism that fits if it differs from the requested one, with the
// result of the documented rule if that differs.
func leastTP(c *HardwareCeiling) string {
	p, s := &c.Physical, ""
	switch {
	case p.MinTP.OK && figure.Count(p.MinTP.V) != c.Input("tensor_parallel_size"):
		s = "; the least that fits is TP " + figure.Count(p.MinTP.V)
	case !p.MinTP.OK:
		s = "; no tensor parallelism up to " + figure.Count(mostTP) + " fits"
	}
	if c.ClassicMinTP.OK && c.ClassicMinTP != p.MinTP {
		s += " (the documented rule says TP " + figure.Count(c.ClassicMinTP.V) + ")"
	}
	return s
}

// ceilingFit returns whether the weights leave room for a cache, and how much.
func ceilingFit(c *HardwareCeiling) page.Section {
	sec := page.Section{ID: "fit"}
	p := &c.Physical
	weights := figure.Show(stat.Finite(p.WeightBytes), "B")
	say := func(t page.Tone, word, text string, inset bool) {
		line := page.Toned(page.Body, text)
		if word != "" {
			line = page.Join(page.Mark(t, word), page.Toned(page.Body, " "+text))
		}
		sec.Add(page.Prose{Text: line, Inset: inset})
	}
	capacity, most := p.KVCapacityTokens.Finite(), p.MaxSequences.Finite()
	switch {
	case !capacity.OK:
		say(page.Muted, "unknown", "whether it fits: the catalog does not have the memory of this GPU; the weights need "+weights, false)
		return sec
	case !p.Fits:
		say(page.Bad, "does not fit:", "the weights need "+weights+" and leave no room for a KV cache"+leastTP(c), false)
		return sec
	}
	say(page.OK, "fits:", "the weights need "+weights+leastTP(c), false)
	s := "the KV pool holds about " + figure.Significant(capacity.V) + nbsp + "tokens"
	if p.KVCapacityLow.OK && p.KVCapacityHigh.OK {
		s += " (" + figure.Significant(p.KVCapacityLow.V) + " to " + figure.Significant(p.KVCapacityHigh.V) + ")"
	}
	if most.OK {
		s += ": " + sequences(figure.Whole(min(most.V, 1<<40))) + " of that context"
	}
	each, unit := figure.Memory(p.KVBytesPerToken)
	say(page.Body, "", s+"; "+each+nbsp+unit+" a token", true)
	switch {
	case most.OK && most.V < 1:
		say(page.Bad, "too long:", "the pool does not hold one sequence of that context, and vLLM does not start with such a --max-model-len; the figures below are for a pool that holds one", false)
	case most.OK && most.V < c.Batch:
		say(page.Warn, "too many:", "the figures below are for "+sequences(c.Input("batch"))+", which the pool does not hold at that context: the server would preempt", false)
	}
	return sec
}

// ceilingRates compares ideal and achievable rates.
func ceilingRates(c *HardwareCeiling) page.Section {
	p := &c.Physical
	sec := page.Section{ID: "rates", Title: "Ceiling"}
	t := &page.Table{Columns: []page.Column{{Left: true}, {Head: "ideal", Tone: page.Strong}, {Head: "achievable", Tone: page.Strong}, {Left: true, Tone: page.Muted}}}
	add := func(label, unit string, ideal, achievable stat.Opt, note string) {
		t.Rows = append(t.Rows, []page.Cell{page.Words(label), page.Amount(ideal, unit), page.Amount(achievable, unit), {Text: note}})
	}
	band := ""
	if p.DecodeAchievableUpper > 0 {
		band = figure.Significant(p.DecodeAchievableLower) + " to " + figure.Significant(p.DecodeAchievableUpper)
	}
	add("decode", "tok/s", stat.Some(p.DecodeIdealTokensPerS), stat.Some(p.DecodeAchievableTokensPerS), band)
	add("decode step", "s", stat.Some(p.StepIdealS), stat.Some(p.StepAchievableS), "= ITL")
	add("prefill", "tok/s", p.PrefillIdealTokensPerS, p.PrefillAchievableTokensS, "")
	sec.Add(t, page.Paragraph(boundBy(p.Binding, stepShares(p.TermsS))))
	if p.RidgeTokens.OK {
		sec.Add(page.Paragraph(page.Toned(page.Body, "bound by compute above "+figure.Count(p.RidgeTokens.V)+" tokens a step")))
	}
	return sec
}
