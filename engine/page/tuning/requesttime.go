package tuning

import (
	"cmp"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TimePart is a part of the mean request's time, as an interval between 0 and 1.
type TimePart struct {
	Label    string
	Quantity engine.Quantity // absent with a reason
	From, To float64
}

// RequestTime is how the mean request's time is divided, in order.
type RequestTime struct {
	Total float64 // seconds, 0 if unknown
	Why   string  // why it is unknown
	Parts []TimePart
	// Lost is the time of recomputation after a preemption, at the end of decode.
	Lost TimePart
}

// NewRequestTime divides the mean request's time.
func NewRequestTime(d *engine.Diagnosis) RequestTime {
	r := RequestTime{Why: cmp.Or(d.Quantity("decode_mean_s").Reason, "no request finished during the run")}
	decode := stat.None
	for _, part := range [...]struct{ label, name string }{
		{"front end", "front_end_mean_s"}, {"queue", "queue_mean_s"}, {"own prefill", "prefill_mean_s"}, {"decode", "decode_mean_s"},
	} {
		q := Quantity(d, part.name)
		p := TimePart{Label: part.label, Quantity: q, From: r.Total, To: r.Total + max(q.Value.Or(0), 0)}
		r.Parts, r.Total, decode = append(r.Parts, p), p.To, q.Value
	}
	end := r.Total
	if end > 0 {
		r.Total = max(end, Quantity(d, "e2e_mean_s").Value.Or(0))
	}
	lost := Quantity(d, "preemption_lost_s")
	r.Lost = TimePart{Label: d.Facts.Spell("lost to preemption"), Quantity: lost, From: end - min(max(lost.Value.Or(0), 0), decode.Or(0)), To: end}
	for i := range r.Parts {
		r.Parts[i].scale(r.Total)
	}
	r.Lost.scale(r.Total)
	return r
}

func (p *TimePart) scale(total float64) {
	if total > 0 {
		p.From, p.To = p.From/total, p.To/total
	}
}

// Share returns the part's share of the total.
func (p TimePart) Share() float64 { return p.To - p.From }

// Table returns the parts with their shares, as a timeline; the last is the time lost to preemption.
func (r *RequestTime) Table() *page.Table {
	return page.Tabulate(append(slices.Clip(r.Parts), r.Lost), []page.Field[TimePart]{
		page.Left("", page.Body, func(p TimePart) string { return p.Label }),
		page.Right("", page.Strong, func(p TimePart) page.Cell { return page.Words(Show(p.Quantity)) }),
		{Cell: func(p TimePart) page.Cell {
			if !p.Quantity.Value.OK {
				return page.Cell{}
			}
			return page.Share(stat.Some(p.Share()))
		}},
		{Column: page.Column{Bar: true, Tone: page.Accent}, Cell: func(p TimePart) page.Cell { return page.Cell{Value: stat.Some(p.Share()), From: p.From} }},
		page.Notes("", func(p TimePart) string { return cmp.Or(p.Quantity.Reason, p.Quantity.Scope()) }),
	})
}
