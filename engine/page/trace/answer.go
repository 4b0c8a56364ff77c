package trace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// mostEvidence is the number of pieces of evidence on the first screen.
const mostEvidence = 2

// recommends reports whether the advice is to change something. Advice to leave everything as it is has
// no finding.
func recommends(a *optrace.Advice) bool { return a.Do != "" && a.Finding != "" }

// answer returns the recommended change, with its reason, cost and gain.
func (b *builder) answer() page.Section {
	a := &b.s.Advice
	out := page.Section{ID: "answer"}
	if !recommends(a) {
		out.Nodes = b.noAdvice()
		return out
	}
	out.Add(page.Prose{Lead: true, Text: page.Join(page.Mark(b.urgency(), "do"), page.Toned(page.Strong, " "+a.Do))})
	if command := Command(a); command != "" {
		out.Add(page.Command(command))
	}
	out.Add(Reasons(b.s))
	return out
}

// Command returns the option that the advice sets, or "" if its sentence contains it.
func Command(a *optrace.Advice) string {
	if a.Flag == "" || strings.Contains(a.Do, a.Flag) {
		return ""
	}
	return strings.TrimSpace(a.Flag + " " + a.Value)
}

// Reasons returns the evidence for the recommendation, its cost and gain, and how to check it.
func Reasons(s *optrace.Summary) page.Facts {
	a := &s.Advice
	var list page.Facts
	list.Add("because", page.Body, a.Why)
	if f := findingOf(s); f != nil {
		for i, e := range f.Evidence {
			label := map[bool]string{true: "evidence"}[i == 0]
			list = append(list, page.Fact{Label: label, Text: page.Toned(page.Body, e), Detail: i >= mostEvidence})
		}
	}
	list.Add("trade-off", page.Body, a.Price)
	list.Add("gain", page.Body, gain(a))
	list.Add("check", page.Body, a.Check)
	return list
}

// findingOf returns the finding behind the recommendation, or nil.
func findingOf(s *optrace.Summary) *optrace.Finding {
	i := slices.IndexFunc(s.Findings, func(f optrace.Finding) bool { return f.ID == s.Advice.Finding && f.ID != "" })
	if i < 0 {
		return nil
	}
	return &s.Findings[i]
}

// gain returns the expected change of the token rate with its range.
func gain(a *optrace.Advice) string {
	mid, low, high := a.Gain.Finite(), a.GainLow.Finite(), a.GainHigh.Finite()
	if !mid.OK {
		return figure.Absent + " not predicted"
	}
	text := figure.ChangeSign(mid.V) + " tok/s"
	if low.OK && high.OK {
		text += ", " + figure.Unbroken(figure.ChangeRange(low.V, high.V))
	}
	return text + " (est)"
}

// noAdvice states that there is nothing to change, or that nothing is known.
func (b *builder) noAdvice() []page.Node {
	a := &b.s.Advice
	lead := func(mark, text page.Text) []page.Node {
		return []page.Node{page.Prose{Lead: true, Text: page.Join(mark, text)}}
	}
	// Advice without a finding states why there is none, or that the trace is too short.
	tooLittle := strings.HasPrefix(a.Do, "Nothing")
	switch {
	case b.s.Empty():
		why, next := "nothing was computed while it was traced", "send the target a request while it is traced"
		if g := b.gap(optrace.GapEnd); g != nil {
			why, next = g.Why, "it holds no graph: record it again"
		}
		nodes := lead(page.Mark(page.Muted, "no figures:"), page.Toned(page.Strong, " "+why))
		return append(nodes, page.Inset(page.Toned(page.Muted, next)))
	case len(b.s.Kinds) == 0:
		return lead(page.Mark(page.Muted, "no recommendation:"), page.Toned(page.Strong, " no operator was traced, only "+figure.Counted(b.s.Coverage.Calls, "call")))
	case tooLittle:
		_, seen, _ := strings.Cut(a.Do, ": ")
		return lead(page.Mark(page.Muted, "no recommendation"), page.Toned(page.Body, prefixed(": ", strings.TrimSpace(seen+" "+a.Why))))
	}
	return lead(page.Mark(page.OK, "nothing to change"), page.Toned(page.Body, prefixed(": ", a.Why)))
}

// urgency returns the tone of the recommendation: that of its finding.
func (b *builder) urgency() page.Tone {
	if f := findingOf(b.s); f != nil {
		if tone, _ := severity(f.Severity); tone == page.Bad || tone == page.Warn {
			return tone
		}
	}
	return page.OK
}

// currentState returns what the target does now, in a few lines.
func (b *builder) currentState() page.Section {
	var list page.Facts
	for _, p := range inOrder(b.s.Phases) {
		list.Add(cmp.Or(p.Phase, "unknown"), page.Strong, figure.Joined(" · ", Rates(b.s, p)...))
	}
	if len(b.s.Phases) == 0 {
		list.Add("tokens", page.Muted, figure.Absent+" no call was traced")
	}
	list.Add("bound", page.Body, b.bounds())
	list.Add("tracing", page.Body, figure.Joined(" · ", covered(&b.s.Coverage), overhead(&b.s.Observer)))
	return page.Section{ID: "glance", Nodes: []page.Node{list}}
}

// mainPhases are the phases that every model has, by importance.
var mainPhases = [...]string{"decode", "prefill", "encode"}

// inOrder returns the phases, main phases first.
func inOrder(rows []optrace.PhaseRow) []*optrace.PhaseRow {
	var list []*optrace.PhaseRow
	rank := func(p *optrace.PhaseRow) int {
		if i := slices.Index(mainPhases[:], p.Phase); i >= 0 {
			return i
		}
		return len(mainPhases)
	}
	for i := range rows {
		list = append(list, &rows[i])
	}
	slices.SortStableFunc(list, func(a, b *optrace.PhaseRow) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

func (b *builder) phase(name string) *optrace.PhaseRow {
	for i := range b.s.Phases {
		if p := &b.s.Phases[i]; p.Phase == name {
			return p
		}
	}
	return nil
}

// Ceiling returns the rate that the machine peak allows a phase. It is absent if the peak is only the
// best rate seen.
func Ceiling(s *optrace.Summary, p *optrace.PhaseRow) stat.Opt {
	if s.Peak.From == optrace.PeakSeen {
		return stat.None
	}
	return p.Ceiling.Finite()
}

// Rates returns a phase's rate, and its time per token or call, as separate texts.
func Rates(s *optrace.Summary, p *optrace.PhaseRow) []string {
	rate := figure.Show(p.Rate.Finite(), "tok/s")
	if v := p.Rate.Finite(); v.OK {
		if p.PaceDiffers() {
			rate += " in" + figure.NBSP + "calls"
		}
		if c := Ceiling(s, p); c.OK && c.V >= v.V {
			rate += " of" + figure.NBSP + figure.Significant(c.V) + figure.NBSP + "that the machine peak allows (est)"
		}
	} else {
		rate += " tok/s"
	}
	parts := []string{rate}
	if p.PaceDiffers() {
		parts = []string{figure.Show(p.Paced, "tok/s") + " in" + figure.NBSP + "answers", rate}
	}
	return append(parts, Times(p)...)
}

// Times returns the time per token, or per call if a call has several tokens, and the time to first
// token.
func Times(p *optrace.PhaseRow) []string {
	var parts []string
	d, what := &p.Call, "a call"
	switch {
	case d.Count <= 0:
		d, what = &p.Graph, "a graph"
	case p.Phase == "decode" && p.Tokens == int64(p.Calls):
		what = "a token"
	case p.Tokens > 0 && p.Calls > 0:
		tokens := figure.Count(float64(p.Tokens) / float64(p.Calls))
		what = "a call of " + tokens + " token" + map[bool]string{false: "s"}[tokens == "1"]
	}
	if d.Count > 0 {
		what = figure.Unbroken(what)
		parts = append(parts, "p50"+figure.NBSP+figure.Duration(d.P50)+" "+what+", p95"+figure.NBSP+figure.Duration(d.P95))
	}
	if p.FirstToken.Count > 0 {
		parts = append(parts, "TTFT p50"+figure.NBSP+figure.Duration(p.FirstToken.P50))
	}
	return parts
}

// leastBound is the least share of a phase's time for a bound to be named.
const leastBound = 0.1

const noShapes = "operator shapes were not read, so memory-bound and compute-bound operators look the same"

// bounds returns what limits each phase, and how close to the machine peak it comes.
func (b *builder) bounds() string {
	var parts []string
	for _, name := range mainPhases {
		if p := b.phase(name); p != nil {
			parts = append(parts, b.bound(p))
		}
	}
	if text := figure.Joined(" · ", parts...); text != "" {
		return text
	}
	for _, name := range mainPhases {
		if b.phase(name) != nil && unshaped(b.s, name) >= leastBound {
			return figure.Absent + " unknown: " + noShapes + " (--level tensor reads them)"
		}
	}
	const noPeak = "the machine peak is not in the catalog (--catalog takes the CPU's data sheet)"
	from := b.s.Peak.From
	switch without := optrace.MaxPreempted(b.s); {
	case len(b.s.Kinds) == 0 || from != optrace.PeakSeen && from != "":
		return figure.Absent + " no operator could be classified"
	case from == "" && without.OK:
		return figure.Absent + " unknown: the threads had no CPU for " + figure.PercentSign(without.V) + " of the time, and " + noPeak
	}
	return figure.Absent + " unknown: " + noPeak
}

// bound returns what limits a phase, or "" if unknown.
func (b *builder) bound(p *optrace.PhaseRow) string {
	limit, share, from := boundOf(b.s.Kinds, p.Phase)
	if limit == optrace.BoundUnknown {
		return ""
	}
	if share < leastBound {
		why := "the rest is faster than memory (caches), estimated, or may have been held up by other processes"
		if unshaped(b.s, p.Phase) >= leastBound {
			why = noShapes
		}
		return p.Phase + " unknown: " + figure.PercentSign(share) + " of its time has a bound, " + why
	}
	text := p.Phase + " by " + boundWords(limit)
	switch {
	case strings.Contains(from, "est"):
		text += figure.NBSP + "(est)"
	case from != "" && limit != optrace.BoundWaiting:
		text += " (" + from + ")"
	}
	return text + " for " + figure.PercentSign(share) + " of its time" + prefixed(": ", b.peakShareText(p, limit))
}

// unshaped returns the share of a phase's time in operators with unknown bytes and operations.
func unshaped(s *optrace.Summary, phase string) float64 {
	var all, without time.Duration
	for i := range s.Kinds {
		k := &s.Kinds[i]
		if k.Phase != phase || k.Time <= 0 {
			continue
		}
		all += k.Time
		if !k.Bytes.OK && !k.Flops.OK {
			without += k.Time
		}
	}
	return stat.Ratio(without, all).Or(0)
}

// boundWords returns a bound in words.
func boundWords(b optrace.Bound) string {
	switch b {
	case optrace.BoundMixed:
		return "both memory and compute"
	case optrace.BoundNeither:
		return "neither memory nor compute"
	case optrace.BoundWaiting:
		return "threads that wait, for each other or for a CPU,"
	}
	return string(b)
}

// peakShareText returns the rate of a phase relative to the peak that limits it, or "" if none does.
func (b *builder) peakShareText(p *optrace.PhaseRow, limit optrace.Bound) string {
	if limit == optrace.BoundNeither || limit == optrace.BoundWaiting {
		return ""
	}
	r := &b.s.Peak
	rate, peak, unit, of := p.BytesRate.Finite(), r.BytesPerSecond, "GB/s", ""
	if limit == optrace.BoundCompute {
		weights := weightsOf(b.s.Kinds, p.Phase)
		rate, unit = p.FlopsRate.Finite(), "GFLOP/s"
		var int8 bool
		peak, int8 = r.ComputeRate(weights, rate.V)
		switch {
		case int8:
			of = " (int8)"
		case optrace.Quantised(weights) && r.From != optrace.PeakSeen:
			of = " (f32)"
		}
	}
	if !rate.OK {
		return ""
	}
	text := billions(rate)
	if peak > 0 && stat.IsFinite(peak) {
		return text + " of" + figure.NBSP + billions(stat.Some(peak)) + figure.NBSP + unit + of + ", " + figure.PercentSign(rate.V/peak) + " of " + peakName(r)
	}
	return text + figure.NBSP + unit
}

// weightsOf returns the type of weights with most of a phase's time. It determines the limiting compute
// peak.
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

// peakName returns the name of the peak.
func peakName(r *optrace.Peak) string {
	switch r.From {
	case "":
		return "the machine peak"
	case optrace.PeakSeen:
		return "the best that was seen"
	}
	return "the machine peak, " + r.From
}

// boundOf returns the bound of most of the time of a phase's operators, its share of that time, and its
// source.
func boundOf(rows []optrace.OperatorRow, phase string) (b optrace.Bound, share float64, from string) {
	times := map[optrace.Bound]time.Duration{}
	var all time.Duration
	for i := range rows {
		if k := &rows[i]; k.Phase == phase && k.Time > 0 {
			all += k.Time
			times[k.Bound] += k.Time
		}
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

// billions formats a rate in 10⁹ per second without its unit. Rates below a thousandth of that are
// negligible.
func billions(o stat.Opt) string {
	const least = 1e-3
	v := o.Times(1e-9).Finite()
	switch {
	case !v.OK:
		return figure.Absent
	case v.V > 0 && v.V < least:
		return "<" + figure.Significant(least)
	}
	return figure.Significant(v.V)
}
