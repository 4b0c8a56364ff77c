package tui

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// proof is what a verdict rests on, in the order in which a person doubts it: the
// reason, the picture beside the prediction, what else differed, what was not kept.
func (v *nowView) proof(w int, it *engine.Iteration, brief bool) []block {
	p, ok := engine.ProofOf(it.Delta)
	if !ok {
		return nil
	}
	u := v.u
	var list []block
	warn := func(keep int, word, text string) {
		list = append(list, u.text(w, keep, nil, line(u.say(cell.Warn, u.glyphs.Warn+figure.NBSP+word+": "), u.say(cell.Body, text))))
	}
	if !brief {
		if _, rest := p.Says(); rest != "" {
			list = append(list, u.text(w, 86, nil, u.say(cell.Body, told(rest))))
		}
		list = append(list, v.outcome(it, p)...)
	}
	for _, a := range p.Aims() {
		if a.State == "kept" {
			list = append(list, u.text(w, 71, nil, line(u.say(cell.OK, u.glyphs.Good+figure.NBSP+"objective "), u.say(cell.Body, a.Text))))
			continue
		}
		warn(87, "objective", a.Text)
	}
	if text, changed := it.Canary.Told(); changed {
		warn(85, "answers", text)
	} else if text != "" && !brief {
		list = append(list, u.text(w, 65, nil, u.say(cell.Body, told(text))))
	}
	if shifts := p.Shifts(); len(shifts) > 0 && len(it.Load) == 0 {
		warn(73, "other traffic", strings.Join(shifts, "; "))
	}
	if brief {
		return list
	}
	if text := p.Limited(); text != "" {
		list = append(list, u.text(w, 63, nil, u.say(cell.Muted, told(text))))
	}
	if p.RestartsDominate() {
		list = append(list, u.text(w, 74, nil, u.say(cell.Muted, "Interval "+p.Width()+". "+told(p.Spread()))))
	}
	if text := p.Cause(); text != "" && p.Direction != engine.Better {
		list = append(list, u.text(w, 72, nil, u.say(cell.Muted, "Most likely cause: "+text+".")))
	}
	return list
}

// outcome is the chart of what was measured over what was predicted.
func (v *nowView) outcome(it *engine.Iteration, p engine.Proof) []block {
	interval, mid := stretchOf(p.Result)
	if _, ok := p.Change(); !ok {
		return nil
	}
	row := intervalRow{name: "measured", band: chart.Nothing(), interval: interval, mid: mid, token: cell.Trial}
	if q, ok := engine.PredictionOf(it.Predicted, p.Result.Goal); ok {
		row.band = chart.Stretch{Low: q.Low.V, High: q.High.V}
	}
	return []block{v.u.intervals(82, []intervalRow{row}, []chart.Stretch{row.band, interval})}
}

// intervalOf spells the interval of a metric, or that it lies within the noise; "" where
// nothing is known of it.
func intervalOf(d *engine.Delta, metric string) string {
	p, ok := engine.ProofOf(d)
	if !ok {
		return ""
	}
	m, ok := p.MeasureOf(metric)
	switch {
	case !ok:
		return ""
	case !m.Moved:
		return "within noise"
	}
	return engine.SpellRange(m.Change.Low, m.Change.High)
}

// failure says why a change could not be made or did not last.
func (v *nowView) failure(w int, it *engine.Iteration) block {
	u := v.u
	return u.text(w, 93, nil, line(u.say(cell.Bad, u.glyphs.Bad+figure.NBSP+"FAILED "), u.say(cell.Strong, told(it.Failure))))
}

// changeText says what was changed, and how long the server was away for it.
func changeText(it *engine.Iteration) string {
	text := told(it.Text)
	if it.Downtime > 0 {
		text += " The server was down for " + engine.SpellTime(it.Downtime) + "."
	}
	return text
}
