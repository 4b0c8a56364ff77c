package tui

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// deltaRow is a metric of a verdict, with how long it stays on a small screen.
type deltaRow struct {
	name string
	keep int
}

func deltaRows() []deltaRow {
	return []deltaRow{
		{"generation_tokens_per_s", 82}, {"ttft_p99_s", 79}, {"itl_p99_s", 77}, {"running_mean", 50}, {"waiting_mean", 49},
		{"usd_per_million_tokens", 48}, {"requests_per_s", 36}, {"ttft_mean_s", 35}, {"itl_mean_s", 34}, {"e2e_mean_s", 33}, {"kv_usage_peak", 32},
		{"preemptions_per_s", 31}, {"power_w", 29}, {"tokens_per_watt", 28},
	}
}

// last is the latest iteration, nil where nothing was changed.
func (v *nowView) last() *engine.Iteration {
	if n := len(v.s.Iterations); n > 0 {
		return &v.s.Iterations[n-1]
	}
	return nil
}

// verdict is the panel of what the last change brought, until the next one; short
// where the next one is recommended beside it.
func (v *nowView) verdict(w int, short bool) panel {
	it, u := v.last(), v.u
	if it == nil || it.Delta == nil && it.End == engine.IterationOpen {
		return panel{}
	}
	q := panel{title: "Change " + figure.Whole(float64(it.N)), note: u.say(cell.Muted, v.endWords(it))}
	if it.Failure != "" {
		q.blocks = append(q.blocks, v.failure(w, it))
	}
	if it.Delta == nil && it.Failure != "" {
		q.blocks = append(q.blocks, u.text(w, 78, nil, u.say(cell.Body, changeText(it))))
		if said := expectation(it); said != "" {
			q.blocks = append(q.blocks, u.text(w, 60, nil, u.say(cell.Muted, told(said+", not measured"))))
		}
		return q
	}
	if it.Delta == nil {
		q.blocks = append(q.blocks, u.text(w, 76, nil, line(u.say(cell.Warn, u.glyphs.Warn+figure.NBSP+"no verdict  "), u.say(cell.Body, it.Text+v.broken(it)))))
		return q
	}
	if short {
		says := line(v.direction(it), u.say(cell.Body, ". "+because(it)+told(it.Text)))
		if classic := classicWords(it); classic != "" {
			says = line(says, u.say(cell.Muted, " "+told(classic)))
		}
		q.blocks = append(q.blocks, u.text(w, 92, nil, says))
		q.blocks = append(q.blocks, v.deltaLine(w, it.Delta))
		q.blocks = append(q.blocks, v.proof(w, it, true)...)
	} else {
		q.blocks = append(q.blocks, u.text(w, 92, nil, v.direction(it)))
		q.blocks = append(q.blocks, u.text(w, 78, nil, u.say(cell.Body, changeText(it))))
		q.blocks = append(q.blocks, v.proof(w, it, false)...)
		q.blocks = append(q.blocks, v.deltas(it.Delta, it.Predicted, false)...)
	}
	for _, l := range it.Load {
		q.blocks = append(q.blocks, u.text(w, 73, nil, line(u.say(cell.Warn, u.glyphs.Warn+figure.NBSP+"other load: "), u.say(cell.Body, l))))
	}
	if classic := classicWords(it); classic != "" && !short {
		q.blocks = append(q.blocks, u.text(w, 80, nil, u.say(cell.Muted, told(classic)+" It judges what each request gets of the hardware, rooftop the output.")))
	}
	return q
}

// classicWords is the documented direction with its reason where it is another.
func classicWords(it *engine.Iteration) string {
	d := it.Delta
	if d.Classic == d.Direction || d.Classic == "" || it.End == engine.IterationNoise {
		return ""
	}
	return "classic: " + string(d.Classic) + ", " + figure.Minus(d.ClassicReason)
}

// broken says what is left of a change without a verdict.
func (v *nowView) broken(it *engine.Iteration) string {
	switch it.End {
	case engine.IterationBroken:
		return ": the server was changed or stopped before the measurement was over"
	case engine.IterationReverted:
		return ": put back"
	}
	return ""
}

// because is the rest of a verdict's reason in a sentence with a space behind it, ""
// where the verdict says it all.
func because(it *engine.Iteration) string {
	p, ok := engine.ProofOf(it.Delta)
	if !ok {
		return ""
	}
	_, rest := p.Says()
	if rest == "" {
		return ""
	}
	return told(rest) + " "
}

// endWords says what became of a change.
func (v *nowView) endWords(it *engine.Iteration) string {
	switch it.End {
	case engine.IterationKept:
		return "kept: the new baseline"
	case engine.IterationContinued:
		return "kept by you: the new baseline"
	case engine.IterationReverted:
		return "put back: the baseline is unchanged"
	case engine.IterationNoGain:
		if v.s.Auto {
			return "not kept: goes out with the next change"
		}
		if d := it.Delta; d != nil && d.Direction != engine.Plateau && d.Direction != engine.Worse {
			return "not judged: [m] measures it again"
		}
		if v.s.Can[engine.CommandRevert].OK {
			return "no gain: [r] puts it back, or the next change does"
		}
		return "no gain: goes out with the next change"
	case engine.IterationNoise:
		return "same settings: noise"
	case engine.IterationBroken:
		if it.Failure != "" {
			return "failed: not kept"
		}
		return "not measured to the end"
	}
	return ""
}

// told begins a sentence with a capital letter, except where it begins with a flag,
// and ends it.
func told(s string) string {
	if s = sentence(s); s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// direction is the verdict in a word with its figure.
func (v *nowView) direction(it *engine.Iteration) prose {
	u := v.u
	sign, word, token := u.verdictSign(it)
	says := figure.Minus(it.Delta.Reason)
	if p, ok := engine.ProofOf(it.Delta); ok {
		says, _ = p.Says()
	}
	head := line(u.say(token, sign+figure.NBSP+strings.ReplaceAll(strings.ToUpper(word), " ", figure.NBSP)), u.say(cell.Strong, " "+says))
	if said := expectation(it); said != "" {
		head = line(head, u.say(cell.Muted, "; "+said))
	}
	return head
}

// deltaLine is a verdict's figures in one line.
func (v *nowView) deltaLine(w int, d *engine.Delta) block {
	u := v.u
	var parts prose
	metrics := d.MeasuredMetrics()
	for _, r := range deltaRows()[:4] {
		for _, m := range metrics {
			if m.Name != r.name || !number(m.Before.Value) || !number(m.After.Value) {
				continue
			}
			before, after, unit := bothShown(m.Before, m.After)
			text := strings.TrimSpace(before + " → " + after + " " + unit)
			next := line(u.say(cell.Muted, metricName(m.Name)+" "), u.say(cell.Body, text))
			if len(parts) > 0 {
				next = line(u.say(cell.Muted, ", "), next)
			}
			if parts.width()+next.width() <= w {
				parts = line(parts, next)
			}
		}
	}
	return u.one(79, parts)
}

// deltas are the rows before → after with the change in percent, and of what was
// predicted whether it came so. A sound change of latency is as green as one of
// throughput; what is no quality (running, power) has no colour.
func (v *nowView) deltas(d *engine.Delta, predicted []engine.Prediction, soFar bool) []block {
	u := v.u
	var rows []block
	var cells [4]int
	type row struct {
		deltaRow
		name, before, after, unit string
		change                    stat.Opt
		interval                  string
		held                      prose
	}
	var list []row
	metrics := d.MeasuredMetrics()
	for _, r := range deltaRows() {
		for _, m := range metrics {
			if m.Name != r.name || !number(m.Before.Value) && !number(m.After.Value) || stayedZero(m) {
				continue
			}
			next := row{deltaRow: r, name: metricName(m.Name), change: m.Change, interval: u.spell(intervalOf(d, m.Name)), held: u.held(predicted, m, soFar)}
			next.before, next.after, next.unit = bothShown(m.Before, m.After)
			list = append(list, next)
			for i, text := range [...]string{next.name, next.before, next.after, next.unit} {
				cells[i] = max(cells[i], cell.Width(u.spell(text)))
			}
		}
	}
	intervals := 0
	for _, r := range list {
		intervals = max(intervals, cell.Width(r.interval))
	}
	arrow := u.spell("→")
	for _, r := range list {
		token := cell.Body
		if number(r.change) && (r.change.V > 0.02 || r.change.V < -0.02) {
			token = u.toneOf(r.deltaRow.name, r.change.V)
		}
		rows = append(rows, block{lines: 1, keep: r.keep, draw: func(p cell.Pane) {
			x := 2
			p.Text(x, 0, cell.Muted, r.name)
			x += cells[0] + 2 + cells[1]
			p.Right(x, 0, cell.Baseline, r.before)
			x = p.Text(x+1, 0, cell.Muted, arrow) + 1 + cells[2]
			p.Right(x, 0, cell.Trial, r.after)
			p.Text(x+1, 0, cell.Muted, r.unit)
			x += 1 + cells[3] + 2 + 7
			if number(r.change) {
				p.Right(x, 0, token, figure.Change(r.change.V)+figure.NBSP+"%")
			}
			if intervals > 0 && x+2+intervals <= p.Width() {
				p.Text(x+2, 0, cell.Muted, r.interval)
				x += 2 + intervals
			}
			if x += 2; x+r.held.width() <= p.Width() {
				r.held.draw(p, x, 0)
			} else if soFar {
				u.say(cell.Muted, "so far").draw(p, x, 0)
			}
		}})
	}
	return rows
}

// stayedZero says that there was nothing of it before or after.
func stayedZero(m engine.MetricDelta) bool {
	return m.Before.Value == stat.Some(0) && m.After.Value == stat.Some(0)
}

// held says whether a prediction came true; nothing where there was none.
func (u *look) held(list []engine.Prediction, m engine.MetricDelta, soFar bool) prose {
	for _, p := range list {
		if p.Metric != m.Name {
			continue
		}
		_, between := predictedChange(p)
		said := u.say(cell.Muted, "predicted "+strings.Trim(between, "()"))
		switch held, known := p.Held(m.Change); {
		case !known || soFar:
			return said
		case held:
			return line(said, u.say(cell.OK, ": held"))
		}
		return line(said, u.say(cell.Warn, ": missed"))
	}
	return nil
}

// toneOf colours a change by what it means for those who use the server.
func (u *look) toneOf(metric string, change float64) cell.Token {
	switch metric {
	case "running_mean", "waiting_mean", "kv_usage_peak", "power_w":
		return cell.Body
	}
	if rising(metric) == (change > 0) {
		return cell.OK
	}
	return cell.Bad
}

// bothShown spells two values of one unit, which stands behind them once where
// both are shown in it.
func bothShown(before, after engine.Quantity) (b, a, unit string) {
	show := func(q engine.Quantity) string {
		if !number(q.Value) {
			return figure.Absent
		}
		return overLimit(q) + figure.Show(q.Value, q.Unit)
	}
	if !number(before.Value) || !number(after.Value) {
		return show(before), show(after), ""
	}
	x, unitX := figure.Amount(before.Value.V, before.Unit)
	y, unitY := figure.Amount(after.Value.V, after.Unit)
	if unitX != unitY {
		return show(before), show(after), ""
	}
	if unitX == "req" {
		unitX = ""
	}
	return overLimit(before) + x, overLimit(after) + y, unitX
}
