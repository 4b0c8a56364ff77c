package report

import (
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// WriteAnswer writes the first part of WritePlain alone: what limits the server
// and the one change to make.
func WriteAnswer(w io.Writer, d *engine.Diagnosis, o Options) error {
	r := &plain{page: newPage(w, o), d: d}
	r.verdict()
	return r.flush()
}

// deltaRows are the quantities of a delta that a person sees, where both runs
// have them.
var deltaRows = []struct{ name, label string }{
	{"generation_tokens_per_s", "output"},
	{"requests_per_s", "requests"},
	{"running_mean", "running"},
	{"waiting_mean", "waiting"},
	{"kv_usage_peak", "KV peak"},
	{"preemptions_per_s", "preempted"},
	{"prefix_hit_rate", "prefix hits"},
	{"ttft_mean_s", "TTFT"},
	{"ttft_p99_s", "TTFT p99"},
	{"itl_mean_s", "ITL"},
	{"itl_p99_s", "ITL p99"},
	{"power_w", "power"},
	{"tokens_per_watt", "tok/W"},
	{"usd_per_million_tokens", "$/1M tok"},
}

// WriteDelta writes a change as two runs show it: before, after, difference,
// what was predicted, and where it led, with the documented direction beside.
func WriteDelta(w io.Writer, d *engine.Delta, predictions []engine.Prediction, o Options) error {
	p := newPage(w, o)
	p.para(indent, indent+valueColumn, append(p.direction(d), p.foretold(d, predictions)...))
	p.proof(d, true)
	p.blank()
	t := p.deltaTable(d, predictions, true, true)
	for _, v := range [...]struct{ interval, whole bool }{{true, false}, {false, true}, {false, false}} {
		if t.natural() <= p.width-indent {
			break
		}
		t = p.deltaTable(d, predictions, v.interval, v.whole)
	}
	p.table(indent, t)
	p.blank()
	p.proof(d, false)
	p.para(indent, indent+valueColumn, p.text(muted, classicRemark(d)))
	return p.flush()
}

// classicRemark is the documented direction with its reason.
func classicRemark(d *engine.Delta) string {
	return "classic: " + string(d.Classic) + ", " + figure.Minus(d.ClassicReason) + " (the documented direction judges what each request gets of the hardware)"
}

// deltaTable are the quantities before and after. Of what was predicted, the whole
// range or only whether it held; the intervals where there are any and they are asked
// for.
func (p *page) deltaTable(d *engine.Delta, predictions []engine.Prediction, intervals, whole bool) *table {
	proof, judged := engine.ProofOf(d)
	judged = judged && intervals
	t := &table{}
	head := func(s string) cell { return cell{t: p.text(muted, s), right: true} }
	t.add(cell{}, head("before"), head("after"), cell{}, head("change"))
	if judged {
		t.rows[0] = append(t.rows[0], head("95"+nbsp+"% interval"))
	}
	if len(predictions) > 0 {
		t.rows[0] = append(t.rows[0], cell{t: p.text(muted, "predicted")})
	}
	metrics := d.MeasuredMetrics()
	for _, row := range deltaRows {
		m, ok := metric(metrics, row.name)
		if !ok || !m.Before.Value.OK && !m.After.Value.OK {
			continue
		}
		before, after, unit := bothShown(finiteQuantity(m.Before), finiteQuantity(m.After))
		cells := []cell{
			{t: p.text(body, row.label)},
			{t: p.text(body, before), right: true},
			{t: p.text(strong, after), right: true},
			{t: p.text(muted, unit)},
			{t: p.text(accent, changed(m.Change)), right: true},
		}
		if judged {
			cells = append(cells, cell{t: p.text(muted, intervalText(proof, row.name)), right: true})
		}
		if said := p.prediction(predictions, m); len(predictions) > 0 {
			if !whole && len(said) > 1 {
				said = text{{strings.TrimSpace(said[len(said)-1].s), said[len(said)-1].t}}
			}
			cells = append(cells, cell{t: said})
		}
		t.add(cells...)
	}
	if d.Efficiency.OK {
		t.add(
			cell{t: p.text(body, "efficiency")}, cell{}, cell{}, cell{},
			cell{t: p.text(accent, points(d.Efficiency.V)), right: true},
		)
	}
	return t
}

// direction is where a change led.
func (p *page) direction(d *engine.Delta) text {
	tones := map[engine.Direction]tone{engine.Better: ok, engine.Worse: bad, engine.Plateau: warn, engine.Inconclusive: warn, engine.NotComparable: warn}
	says := figure.Minus(d.Reason)
	if proof, ok := engine.ProofOf(d); ok {
		head, rest := proof.Says()
		says = joinSentences(head, rest)
	}
	return text{p.mark(tones[d.Direction], strings.ToUpper(string(d.Direction))), p.span(body, nbsp+" "+says)}
}

// foretold says what was predicted of the goal, and whether it came so; nothing where
// the verdict has no interval, or nothing was predicted.
func (p *page) foretold(d *engine.Delta, predictions []engine.Prediction) text {
	proof, judged := engine.ProofOf(d)
	if !judged {
		return nil
	}
	q, foretold := engine.PredictionOf(predictions, proof.Result.Goal)
	if !foretold {
		return nil
	}
	said := text{p.span(muted, "; predicted "+engine.SpellRange(q.Low.V, q.High.V))}
	switch _, _, held, known := proof.Outcome(predictions); {
	case !known:
		return said
	case held:
		return append(said, p.span(ok, ": held"))
	}
	return append(said, p.span(warn, ": missed"))
}

// proof says what a verdict rests on, a sentence a line: the warnings, or the rest. Of
// a verdict without an interval it is that it has none.
func (p *page) proof(d *engine.Delta, warnings bool) {
	for _, r := range proofRemarks(d) {
		if r.warn != warnings {
			continue
		}
		mark := text{}
		if r.warn {
			mark = text{p.mark(warn, r.label+":"), p.span(body, " ")}
		}
		t := muted
		if r.warn {
			t = body
		}
		p.para(indent, indent+valueColumn, append(mark, p.span(t, r.text)))
	}
}

// proofRemark is a sentence about a verdict.
type proofRemark struct {
	label string // of a warning
	text  string
	warn  bool
}

// proofRemarks are what a verdict rests on, the same in every form of a report.
func proofRemarks(d *engine.Delta) []proofRemark {
	proof, ok := engine.ProofOf(d)
	if !ok {
		return []proofRemark{{text: "One run before and one after: how far repeats of one configuration differ is not in it."}}
	}
	var list []proofRemark
	add := func(label, text string) {
		if text != "" {
			if label == "" {
				text = sentence(text)
			}
			list = append(list, proofRemark{label, text, label != ""})
		}
	}
	for _, a := range proof.Aims() {
		if a.State == "kept" {
			add("", "objective "+a.Text)
		} else {
			add("objective", a.Text)
		}
	}
	add("other traffic", strings.Join(proof.Shifts(), "; "))
	add("", proof.Limited())
	if proof.Direction != engine.Better {
		if cause := proof.Cause(); cause != "" {
			add("", "most likely cause: "+cause)
		}
	}
	if moved := proof.Moved(rowNames()...); len(moved) > 0 {
		add("", "beyond noise moved also: "+strings.Join(moved, ", "))
	}
	if width := proof.Width(); width != "" {
		add("", joinSentences("interval "+width, proof.Spread()))
	}
	return list
}

// rowNames are the quantities of deltaRows: the table has their intervals.
func rowNames() []string {
	var list []string
	for _, r := range deltaRows {
		list = append(list, r.name)
	}
	return list
}

// sentence begins a text with a capital letter and ends it.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	if s[0] >= 'a' && s[0] <= 'z' && !strings.Contains(strings.SplitN(s, " ", 2)[0], "_") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

// intervalText is the interval of a quantity, or that it lies within the noise.
func intervalText(proof engine.Proof, name string) string {
	m, ok := proof.MeasureOf(name)
	switch {
	case !ok:
		return ""
	case !m.Moved:
		return "within noise"
	}
	return engine.SpellRange(m.Change.Low, m.Change.High)
}

func metric(list []engine.MetricDelta, name string) (engine.MetricDelta, bool) {
	for _, m := range list {
		if m.Name == name {
			return m, true
		}
	}
	return engine.MetricDelta{}, false
}

func changed(ratio stat.Opt) string {
	if !finite(ratio).OK {
		return ""
	}
	return figure.Change(ratio.V) + nbsp + "%"
}

// bothShown writes two values of one unit, which stands behind them once where
// both are shown in it.
func bothShown(before, after engine.Quantity) (a, b, unit string) {
	if !before.Value.OK || !after.Value.OK {
		return shown(before), shown(after), ""
	}
	a, unitA := figure.Amount(before.Value.V, before.Unit)
	b, unitB := figure.Amount(after.Value.V, after.Unit)
	if unitA != unitB {
		return shown(before), shown(after), ""
	}
	return atLeast(before) + a, atLeast(after) + b, unitA
}

// points formats a difference of two ratios in percentage points.
func points(difference float64) string {
	s := strings.TrimSuffix(figure.Significant(difference*100), ".0")
	if difference > 0 {
		s = "+" + s
	}
	return s + nbsp + "pp"
}

// prediction says what was expected of a metric, and whether it came so.
func (p *page) prediction(list []engine.Prediction, m engine.MetricDelta) text {
	for _, e := range list {
		if e.Metric != m.Name {
			continue
		}
		words := predictedChange(e.Metric, finite(e.Low), finite(e.Mid), finite(e.High), e.Unit)
		said := p.text(muted, strings.TrimSpace(words[0]+" "+words[1]))
		held, known := e.Held(m.Change)
		switch {
		case !known:
			return said
		case held:
			return append(said, p.span(ok, " held"))
		}
		return append(said, p.span(warn, " missed"))
	}
	return nil
}
