package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// answer is the one thing to change, why, what it costs and what it brings.
func (r *tracePage) answer() {
	a := &r.s.Advice
	r.blank()
	if !asked(a) {
		r.noAdvice()
		return
	}
	r.para(0, 2, text{r.mark(r.urgency(), "do"), r.span(strong, " "+a.Do)})
	if a.Flag != "" && !strings.Contains(a.Do, a.Flag) {
		r.command(indent, strings.TrimSpace(a.Flag+" "+a.Value))
	}
	reasons := []struct{ label, text string }{{"because", a.Why}}
	label := "evidence"
	for _, e := range r.evidence() {
		reasons = append(reasons, struct{ label, text string }{label, e})
		label = ""
	}
	for _, f := range append(reasons, []struct{ label, text string }{{"price", a.Price}, {"gain", r.gain()}, {"check", a.Check}}...) {
		if f.text != "" {
			r.row(f.label, r.text(body, f.text))
		}
	}
}

// asked says that there is something to change: advice to leave everything as it is
// follows from no finding.
func asked(a *optrace.Advice) bool { return a.Do != "" && a.Finding != "" }

// tooLittle says that there is no advice because too little was seen, and not because
// all is well.
func tooLittle(a *optrace.Advice) bool { return strings.HasPrefix(a.Do, "Nothing") }

// tooLittleWords are what was seen instead, and what to do.
func tooLittleWords(a *optrace.Advice) string {
	_, seen, _ := strings.Cut(a.Do, ": ")
	return strings.TrimSpace(seen + " " + a.Why)
}

// noAdvice says that there is nothing to change, or that nothing is known.
func (r *tracePage) noAdvice() {
	c := &r.s.Coverage
	if r.s.Empty() {
		why, next := r.nothing()
		r.para(0, 2, text{r.mark(muted, "no figures:"), r.span(strong, " "+why)})
		r.para(indent, indent, r.text(muted, next))
		return
	}
	if len(r.s.Kinds) == 0 {
		r.para(0, 2, text{r.mark(muted, "no recommendation:"), r.span(strong, " no operator was seen, only "+plural(c.Calls, "call"))})
		return
	}
	if tooLittle(&r.s.Advice) {
		r.para(0, 2, append(text{r.mark(muted, "no recommendation")}, r.text(body, after(": ", tooLittleWords(&r.s.Advice)))...))
		return
	}
	r.para(0, 2, append(text{r.mark(ok, "nothing to change")}, r.text(body, after(": ", r.s.Advice.Why))...))
}

// nothing says why there are no figures, and what to do.
func (r *tracePage) nothing() (why, next string) {
	for _, g := range r.s.Gaps {
		if g.What == optrace.GapEnd {
			return g.Why, "no graph is in what there is of it: record it again"
		}
	}
	return "nothing was computed while it was traced", "send the target a request while it is traced"
}

// after is s behind a lead, "" where s is.
func after(lead, s string) string {
	if s == "" {
		return ""
	}
	return lead + s
}

// urgency is the tone of the recommendation: that of its finding.
func (r *tracePage) urgency() tone {
	if f := r.finding(r.s.Advice.Finding); f != nil {
		switch f.Severity {
		case "bad":
			return bad
		case "warn":
			return warn
		}
	}
	return ok
}

func (r *tracePage) finding(id string) *optrace.Finding {
	for i := range r.s.Findings {
		if f := &r.s.Findings[i]; f.ID == id && id != "" {
			return f
		}
	}
	return nil
}

// mostEvidence are the pieces of evidence that the first screen has room for.
const mostEvidence = 2

// evidence is what the recommendation rests on, the first pieces of it.
func (r *tracePage) evidence() []string {
	f := r.finding(r.s.Advice.Finding)
	if f == nil {
		return nil
	}
	list := f.Evidence
	if !r.o.Verbose && len(list) > mostEvidence {
		list = list[:mostEvidence]
	}
	return list
}

// sentences joins pieces of evidence, most of which are sentences.
func sentences(list []string) string {
	out := ""
	for _, s := range list {
		switch {
		case s == "":
			continue
		case out == "":
		case strings.HasSuffix(out, "."):
			out += " "
		default:
			out += "; "
		}
		out += s
	}
	return out
}

// gain is the expected change of the rate of tokens with its range.
func (r *tracePage) gain() string {
	a := &r.s.Advice
	mid, low, high := finite(a.Gain), finite(a.GainLow), finite(a.GainHigh)
	if !mid.OK {
		return absent + " not predicted"
	}
	s := figure.Change(mid.V) + nbsp + "% tok/s"
	if low.OK && high.OK {
		s += ", " + figure.Change(low.V) + nbsp + "to" + nbsp + figure.Change(high.V) + nbsp + "%"
	}
	return s + " (est)"
}

// glance is what the target does now, in a few lines.
func (r *tracePage) glance() {
	r.blank()
	for _, name := range [...]string{"decode", "prefill", "encode"} {
		if p := r.phase(name); p != nil {
			r.row(name, r.text(strong, strings.Join(phaseGlance(r.s, p), " · ")))
		}
	}
	for i := range r.s.Phases {
		if p := &r.s.Phases[i]; !slices.Contains([]string{"decode", "prefill", "encode"}, p.Phase) {
			r.row(cmp.Or(p.Phase, "unknown"), r.text(strong, strings.Join(phaseGlance(r.s, p), " · ")))
		}
	}
	if len(r.s.Phases) == 0 {
		r.row("tokens", r.text(muted, absent+" no call was seen"))
	}
	r.row("bound", r.text(body, r.boundGlance()))
	r.row("watched", r.text(body, strings.Join(nonEmpty(r.coverageGlance(), r.observerGlance()), " · ")))
}

func (r *tracePage) phase(name string) *optrace.PhaseRow {
	for i := range r.s.Phases {
		if p := &r.s.Phases[i]; p.Phase == name {
			return p
		}
	}
	return nil
}

// ceilingOf is the rate that the roof allows a phase, absent where the roof is only the
// best that was seen, or was measured beside other load.
func ceilingOf(s *optrace.Summary, p *optrace.PhaseRow) stat.Opt {
	if s.Roof.From == optrace.RoofSeen || s.Roof.From == optrace.RoofDisturbed {
		return stat.None
	}
	return finite(p.Ceiling)
}

// phaseGlance is a phase's rate, and its time a token or a call.
func phaseGlance(s *optrace.Summary, p *optrace.PhaseRow) []string {
	rate := absent + " tok/s"
	if v := finite(p.Rate); v.OK {
		rate = figure.Significant(v.V) + nbsp + "tok/s"
		if p.Apart() {
			rate += " in" + nbsp + "calls"
		}
		if c := ceilingOf(s, p); c.OK && c.V >= v.V {
			rate += " of" + nbsp + figure.Significant(c.V) + nbsp + "that the roof allows (est)"
		}
	}
	parts := []string{rate}
	if p.Apart() {
		parts = []string{figure.Significant(p.Paced.V) + nbsp + "tok/s in" + nbsp + "answers", rate}
	}
	if p.Call.Count > 0 {
		what := "a call"
		if p.Phase == "decode" && p.Tokens == int64(p.Calls) {
			what = "a token"
		}
		parts = append(parts, "p50"+nbsp+phaseTime(&p.Call, medianOf)+" "+what+", p95"+nbsp+phaseTime(&p.Call, p95Of))
	} else if p.Graph.Count > 0 {
		parts = append(parts, "p50"+nbsp+phaseTime(&p.Graph, medianOf)+" a graph, p95"+nbsp+phaseTime(&p.Graph, p95Of))
	}
	if p.FirstToken.Count > 0 {
		parts = append(parts, "TTFT p50"+nbsp+phaseTime(&p.FirstToken, medianOf))
	}
	return parts
}

// boundGlance says what bounds each phase, and how close to the roof it comes.
func (r *tracePage) boundGlance() string {
	var parts []string
	for _, name := range [...]string{"decode", "prefill", "encode"} {
		p := r.phase(name)
		if p == nil {
			continue
		}
		b, share, from := boundOf(r.s.Kinds, name)
		if b == optrace.BoundUnknown {
			continue
		}
		if share < leastBound {
			why := "the rest is faster than memory (caches), estimated, or may have been held up by others on the CPUs"
			if without := r.unshaped(name); without >= leastBound {
				why = "shapes of operators were not read, which memory and compute are told by"
			}
			parts = append(parts, name+" not known: "+figure.Percent(share)+nbsp+"% of its time has a bound, "+why)
			continue
		}
		s := name + " by " + boundWords(b)
		switch {
		case strings.Contains(from, "est"):
			s += nbsp + "(est)"
		case from != "" && b != optrace.BoundWaiting:
			s += " (" + from + ")"
		}
		s += " for " + figure.Percent(share) + nbsp + "% of its time"
		parts = append(parts, s+after(": ", r.ofRoof(p, b)))
	}
	if len(parts) == 0 {
		for _, name := range [...]string{"decode", "prefill", "encode"} {
			if r.phase(name) != nil && r.unshaped(name) >= leastBound {
				return absent + " not judged: shapes of operators were not read, which memory and compute are told by (--level tensor reads them)"
			}
		}
		if len(r.s.Kinds) > 0 && (r.s.Roof.From == optrace.RoofSeen || r.s.Roof.From == "") {
			if without := r.s.WithoutCPU(); r.s.Roof.From == "" && without.OK {
				return absent + " not judged: the threads had no CPU for " + percent(without) + " of the time, and the machine's roof was not measured ('rooftop trace roof' measures it)"
			}
			if slices.ContainsFunc(r.s.Gaps, func(g optrace.Gap) bool { return g.What == optrace.GapRoof }) {
				return absent + " not judged: the machine's roof could not be measured (see Not known)"
			}
			return absent + " not judged: the machine's roof was not measured ('rooftop trace roof' measures it)"
		}
		return absent + " no operator could be classified"
	}
	return strings.Join(parts, " · ")
}

// leastBound is the share of a phase's time that a bound has to hold for to be named.
const leastBound = 0.1

// unshaped is the share of a phase's time in operators whose bytes and operations are not
// known, of all of them without either.
func (r *tracePage) unshaped(phase string) float64 {
	var all, without time.Duration
	for i := range r.s.Kinds {
		k := &r.s.Kinds[i]
		if k.Phase != phase || k.Time <= 0 {
			continue
		}
		all += k.Time
		if !k.Bytes.OK && !k.Flops.OK {
			without += k.Time
		}
	}
	if all <= 0 {
		return 0
	}
	return without.Seconds() / all.Seconds()
}

// boundWords is a bound in a sentence.
func boundWords(b optrace.Bound) string {
	switch b {
	case optrace.BoundMixed:
		return "memory and compute alike"
	case optrace.BoundNeither:
		return "neither memory nor compute"
	case optrace.BoundWaiting:
		return "waits of its threads, for each other or for a CPU,"
	}
	return string(b)
}

// ofRoof is the rate of a phase against the roof that bounds it, "" where none does.
func (r *tracePage) ofRoof(p *optrace.PhaseRow, b optrace.Bound) string {
	if b == optrace.BoundNeither || b == optrace.BoundWaiting {
		return ""
	}
	rate, roof, unit, of := finite(p.BytesRate), r.s.Roof.BytesPerSecond, "GB/s", ""
	if b == optrace.BoundCompute {
		weights := weightsOf(r.s.Kinds, p.Phase)
		rate, unit = finite(p.FlopsRate), "GFLOP/s"
		var int8 bool
		roof, int8 = r.s.Roof.Computing(weights, rate.V)
		switch {
		case int8:
			of = " (int8)"
		case optrace.Quantised(weights) && r.s.Roof.From != optrace.RoofSeen:
			of = " (f32)"
		}
	}
	if !rate.OK {
		return ""
	}
	s := inBillions(rate)
	if roof > 0 && r.s.Roof.From != optrace.RoofDisturbed && finite(stat.Some(roof)).OK {
		return s + " of" + nbsp + inBillions(stat.Some(roof)) + nbsp + unit + of + ", " + percent(stat.Some(rate.V/roof)) + " of " + roofName(&r.s.Roof)
	}
	return s + nbsp + unit
}

// weightsOf is the type of weights that takes most of a phase's time: it decides which
// operations bound it.
func weightsOf(rows []optrace.OperatorRow, phase string) string {
	var most *optrace.OperatorRow
	for i := range rows {
		if k := &rows[i]; k.Phase == phase && k.Type != "" && (most == nil || k.Time > most.Time) {
			most = k
		}
	}
	if most == nil {
		return ""
	}
	return most.Type
}

// roofName says which roof a share is of.
func roofName(r *optrace.Roof) string {
	switch r.From {
	case "":
		return "the roof"
	case optrace.RoofSeen:
		return "the best that was seen"
	}
	return "the roof, " + r.Origin()
}

// boundOf is what bounds most of the time of a phase's operators: its share of the
// time that could be classified, and by what.
func boundOf(rows []optrace.OperatorRow, phase string) (b optrace.Bound, share float64, from string) {
	times := map[optrace.Bound]time.Duration{}
	var all time.Duration
	for i := range rows {
		k := &rows[i]
		if k.Phase != phase || k.Time <= 0 {
			continue
		}
		all += k.Time
		times[k.Bound] += k.Time
	}
	for _, x := range [...]optrace.Bound{optrace.BoundMemory, optrace.BoundCompute, optrace.BoundMixed, optrace.BoundNeither, optrace.BoundWaiting} {
		if times[x] > times[b] || b == optrace.BoundUnknown && times[x] > 0 {
			b = x
		}
	}
	if b == optrace.BoundUnknown || all <= 0 {
		return optrace.BoundUnknown, 0, ""
	}
	for i := range rows {
		if k := &rows[i]; k.Phase == phase && k.Bound == b && k.BoundFrom != "" {
			from = k.BoundFrom
			break
		}
	}
	return b, times[b].Seconds() / all.Seconds(), from
}

// coverageGlance says how much of the work is in the figures.
func (r *tracePage) coverageGlance() string {
	c := &r.s.Coverage
	s := ""
	if v := finite(c.OpShare); v.OK {
		s = figure.Percent(v.V) + nbsp + "% of graph time, "
	}
	return s + plural(int(c.Dropped), "event") + " lost"
}

// observerGlance is what watching costs.
func (r *tracePage) observerGlance() string {
	o := &r.s.Observer
	switch {
	case o.Windows > 0 && finite(stat.Some(o.Measured)).OK:
		return "costs the target " + figure.Percent(o.Measured) + nbsp + "% of its speed (" + figure.Percent(o.MeasuredLow) + nbsp + "to" + nbsp + figure.Percent(o.MeasuredHigh) + nbsp + "%), measured" + after(", ", o.OverLimit())
	case o.Expected > 0 && finite(stat.Some(o.Expected)).OK:
		return "costs the target " + expectedCost(o)
	}
	return ""
}

// expectedCost is what watching is reckoned to cost: the probes, and what rooftop itself had
// of the target's CPUs.
func expectedCost(o *optrace.Observer) string {
	of := " of its speed (est)"
	if o.TookCPU() {
		of = " of its speed (est: probes " + percent(stat.Some(o.Expected)) + ", rooftop's own CPU " + percent(o.Reader) + ")"
	}
	return percent(stat.Some(o.ExpectedCost())) + of + after(" by its median token, ", meanShare(o)) + after(", ", o.OverLimit())
}

// meanShare is what tracing takes of the mean token, "" where the median one says it too.
func meanShare(o *optrace.Observer) string {
	share := finite(o.OfMean())
	if !share.OK {
		return ""
	}
	return percent(share) + " of its mean one of " + shownTime(o.MeanGraph)
}

// findings lists all that costs time, that of the recommendation included, and what
// was considered and not taken.
func (r *tracePage) findings() {
	if len(r.s.Findings) > 0 {
		r.section("Findings", "")
	}
	for i := range r.s.Findings {
		f := &r.s.Findings[i]
		t, word := severityTone(f.Severity)
		line := text{r.span(strong, f.Title)}
		if v := finite(f.Cost); v.OK {
			line = append(line, r.span(accent, " · "+figure.Percent(v.V)+nbsp+"% of graph time"))
		}
		if f.ID != "" && f.ID == r.s.Advice.Finding {
			line = append(line, r.span(accent, " → recommended"))
		}
		mark := text{r.mark(t, word)}
		if t == body {
			mark = r.text(muted, nbsp+nbsp+word)
		}
		r.define(indent, traceColumn, mark, line)
		for _, e := range f.Evidence {
			r.para(traceColumn, traceColumn+2, r.text(muted, "· "+e))
		}
	}
	if len(r.s.Advice.Rejected) > 0 {
		r.section("Considered and not taken", "")
		for _, x := range r.s.Advice.Rejected {
			r.para(indent, indent+2, r.text(body, "· "+x))
		}
	}
}

func severityTone(s string) (tone, string) {
	switch s {
	case "bad":
		return bad, "bad"
	case "warn":
		return warn, "warn"
	case "good":
		return ok, "good"
	}
	return body, cmp.Or(s, "info")
}

// unknown lists what is not known, why and what to do about it.
func (r *tracePage) unknown() {
	if len(r.s.Gaps) == 0 {
		return
	}
	r.section("Not known", "")
	for _, g := range r.s.Gaps {
		t := text{r.span(strong, cmp.Or(g.What, "something")), r.span(body, after(": ", g.Why))}
		if g.Next != "" {
			t = append(t, r.span(muted, " → "+g.Next))
		}
		r.para(indent, indent+2, t)
	}
}
