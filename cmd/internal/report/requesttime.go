package report

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// requestTime shows where the mean request's time goes, as a line of time.
func (r *plain) requestTime() {
	if r.d.Windows.Active == 0 {
		return
	}
	parts := []struct{ label, name string }{
		{"front end", "front_end_mean_s"},
		{"queue", "queue_mean_s"},
		{"prefill", "prefill_mean_s"},
		{"decode", "decode_mean_s"},
	}
	total, known := 0.0, false
	for _, part := range parts {
		if v := r.value(part.name).Value; v.OK {
			total, known = total+max(v.V, 0), true
		}
	}
	total = max(total, r.value("e2e_mean_s").Value.Or(0))
	lost := r.value("preemption_lost_s")
	if !known || total <= 0 {
		r.heading("Where a request's time goes", "")
		r.line(indent, r.text(muted, absent+" request times: "+cmp.Or(r.value("decode_mean_s").Reason, "no request finished during the run")))
		return
	}
	figure, unit := figure.Seconds(total)
	r.heading("Where a request's time goes", "mean "+figure+nbsp+unit)
	cells := max(10, min(r.width-44, 60))
	t := &table{}
	at := 0.0
	for _, part := range parts {
		q := r.value(part.name)
		if !q.Value.OK {
			t.add(r.timeGap(part.label, q.Reason)...)
			continue
		}
		v := max(q.Value.V, 0)
		bar := segment(at/total, v/total, cells, "█")
		t.add(r.timeRow(part.label, q, total, bar)...)
		at += v
	}
	// Preempted work is done again while a request decodes: the end of decode.
	switch v := min(max(lost.Value.V, 0), r.value("decode_mean_s").Value.Or(0)); {
	case !lost.Value.OK:
		t.add(r.timeGap(nbsp+nbsp+"lost to preemption", lost.Reason)...)
	default:
		t.add(r.timeRow(nbsp+nbsp+"lost to preemption", lost, total, segment((at-v)/total, v/total, cells, "░"))...)
	}
	r.table(indent, t)
}

func (r *plain) timeRow(label string, q engine.Quantity, total float64, bar string) []cell {
	return []cell{
		{t: r.text(body, label)},
		{t: r.text(strong, shown(q)), right: true},
		{t: r.text(body, strings.TrimSpace(figure.Percent(q.Value.V/total)+nbsp+"%")), right: true},
		{t: text{r.span(accent, bar), r.span(muted, " "+sinceStart(q))}},
	}
}

// timeGap is a row whose time is not known.
func (r *plain) timeGap(label, reason string) []cell {
	return []cell{{t: r.text(muted, label)}, {t: r.text(muted, absent), right: true}, {}, {t: r.text(muted, reason)}}
}

// segment draws a share of a line of cells that starts at from; what is there
// is at least one cell.
func segment(from, share float64, cells int, glyph string) string {
	if !(share > 0) {
		return ""
	}
	start := min(max(int(from*float64(cells)+0.5), 0), cells-1)
	end := min(max(int((from+share)*float64(cells)+0.5), start+1), cells)
	return strings.Repeat(nbsp, start) + strings.Repeat(glyph, end-start)
}
