package tui

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// roofRow is a line of the table: a point of interest with its shares.
type roofRow struct {
	name            string
	running, tokens stat.Opt
	reach, ideal    stat.Opt // the rates of the ceilings at that point
	upper           stat.Opt // upper end of the range of reach
	est             bool     // the rate is the model's estimate
	text            string   // shown instead of the shares unless ""
	token           cell.Token
}

// rows returns the points of interest: the measured ones and the limits.
func (r *roofView) rows() []roofRow {
	var list, then []roofRow
	for _, o := range r.at {
		if o.role == roleBefore {
			continue
		}
		sign, name, t := o.role.look(r.u.Glyphs)
		row := roofRow{name: sign + " " + name, running: stat.Some(o.running), tokens: stat.Some(o.tokens), token: t, est: o.role == roleAdvised}
		switch {
		case r.curve != nil && o.role == roleAdvised:
			row.reach, row.ideal, row.upper = r.on(o.running, achievableOf), r.on(o.running, idealOf), r.on(o.running, upperOf)
			if reshapes(r.s.Advice) {
				row.text, row.est = "on a new curve (est)", false
			}
			then = append(then, row)
			continue
		case r.curve != nil:
			row.reach, row.ideal, row.upper = r.curve.Now.Achievable, r.curve.Now.Ideal, r.curve.Now.Upper
		}
		list = append(list, row)
	}
	if r.curve == nil {
		return list
	}
	at := func(name string, running stat.Opt) {
		if running.OK {
			list = append(list, roofRow{
				name: "  " + name, running: running, tokens: r.expected(running.V), est: true,
				reach: r.on(running.V, achievableOf), ideal: r.on(running.V, idealOf), upper: r.on(running.V, upperOf),
			})
		}
	}
	at("all slots", r.curve.Slots)
	list = append(list, then...)
	at("full KV pool", r.curve.Pool)
	if last := r.curve.Points[len(r.curve.Points)-1].Running; r.curve.Pool.OK && r.curve.Pool.V > last {
		list[len(list)-1].text, list[len(list)-1].est = "beyond the curve", false
	}
	if o := r.d.Ceiling.Physical; o != nil && o.BestTokensPerS.OK && math.Round(o.BestBatch.V) != r.curve.Slots.V {
		at("server's best", o.BestBatch)
		list[len(list)-1].tokens = o.BestTokensPerS
	}
	return list
}

func achievableOf(c engine.CurvePoint) stat.Opt { return c.Achievable }
func idealOf(c engine.CurvePoint) stat.Opt      { return c.Ideal }
func upperOf(c engine.CurvePoint) stat.Opt      { return c.Upper }

// share returns the rate as a share of the achievable one. A rate above that is within the range of the
// estimate, or shows its error.
func (r *roofRow) share() string {
	switch {
	case !r.tokens.OK || !r.reach.OK || r.tokens.V <= r.reach.V:
		return figure.Show(r.tokens.Div(r.reach), "ratio")
	case r.upper.OK && r.tokens.V > r.upper.V:
		return "above"
	}
	return "within"
}

// pastRows returns the previous points and their configurations, newest first.
func (r *roofView) pastRows() []roofRow {
	var list []roofRow
	for i := len(r.at) - 1; i >= 0; i-- {
		o := r.at[i]
		if o.role != roleBefore {
			continue
		}
		sign, _, t := o.role.look(r.u.Glyphs)
		row := roofRow{name: sign + " " + o.label, running: stat.Some(o.running), tokens: stat.Some(o.tokens), token: t, text: "the first baseline"}
		if o.iteration != nil {
			row.text = tuning.IterationChange(o.iteration) + ": " + endName(o.iteration)
		}
		list = append(list, row)
	}
	return list
}

// table lists as many rows as fit: current points and limits with their shares, previous points
// with what changed.
func (r *roofView) table(p cell.Pane) {
	if p.Height() < 2 {
		return
	}
	columns := [...]int{21, 29, 40, 46} // right edges
	if p.Width() >= 70 {
		columns = [...]int{24, 35, 51, 62}
	}
	for i, name := range [...]string{"running", "tok/s", "achievable", "ideal"} {
		if i > 1 && r.curve == nil {
			break
		}
		if i > 1 && p.Width() >= 70 {
			name = "of " + name
		}
		p.Right(columns[i], 0, cell.Muted, name)
	}
	y := 1
	rows, past := r.rows(), r.pastRows()
	for i, row := range append(rows, past...) {
		if y >= p.Height() {
			break
		}
		if i == len(rows) && len(rows)+2*len(past)+2 <= p.Height() {
			y++
		}
		p.Text(0, y, row.token, row.name)
		p.Right(columns[0], y, cell.Body, figure.Show(row.running, ""))
		p.Right(columns[1], y, cell.Strong, page.Ratio(row.tokens).Text)
		switch room := p.Width() - columns[1] - 2; {
		case row.text != "" && p.Width() < 70 && p.Cells(row.text) > room:
			y++
			p.Text(2, y, cell.Muted, p.Cut(row.text, p.Width()-2))
		case row.text != "":
			p.Text(columns[1]+2, y, cell.Muted, p.Cut(row.text, room))
		case r.curve != nil:
			p.Right(columns[2], y, cell.Achievable, row.share())
			p.Right(columns[3], y, cell.Ideal, figure.Show(row.tokens.Div(row.ideal), "ratio"))
		}
		if row.est {
			p.Text(columns[3]+1, y, cell.Muted, "(est)")
		}
		y++
	}
}
