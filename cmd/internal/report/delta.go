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
	p.para(indent, indent+valueColumn, p.direction(d))
	p.para(indent, indent+valueColumn, p.text(muted, "classic: "+string(d.Classic)+", "+figure.Minus(d.ClassicReason)+" (the documented direction judges what each request gets of the hardware)"))
	p.para(indent, indent+valueColumn, p.text(muted, "One run before and one after: how far repeats of one configuration differ is not in it."))
	p.blank()
	t := &table{}
	head := func(s string) cell { return cell{t: p.text(muted, s), right: true} }
	t.add(cell{}, head("before"), head("after"), cell{}, head("change"))
	if len(predictions) > 0 {
		t.rows[0] = append(t.rows[0], cell{t: p.text(muted, "predicted")})
	}
	for _, row := range deltaRows {
		m, ok := metric(d, row.name)
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
		if len(predictions) > 0 {
			cells = append(cells, cell{t: p.prediction(predictions, m)})
		}
		t.add(cells...)
	}
	if d.Efficiency.OK {
		t.add(
			cell{t: p.text(body, "efficiency")}, cell{}, cell{}, cell{},
			cell{t: p.text(accent, points(d.Efficiency.V)), right: true},
		)
	}
	p.table(indent, t)
	return p.flush()
}

// direction is where a change led.
func (p *page) direction(d *engine.Delta) text {
	tones := map[engine.Direction]tone{engine.Better: ok, engine.Worse: bad, engine.Plateau: warn, engine.Inconclusive: warn, engine.NotComparable: warn}
	return text{p.mark(tones[d.Direction], strings.ToUpper(string(d.Direction))), p.span(body, nbsp+" "+figure.Minus(d.Reason))}
}

func metric(d *engine.Delta, name string) (engine.MetricDelta, bool) {
	for _, m := range d.Metrics {
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
