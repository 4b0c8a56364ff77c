package tui

import (
	"cmp"
	"math"
	"slices"

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
		row := roofRow{name: sign + " " + name, running: stat.Some(o.Running), tokens: stat.Some(o.Tokens), token: t, est: o.role == roleAdvised}
		switch {
		case r.curve != nil && o.role == roleAdvised:
			row.reach, row.ideal, row.upper = r.on(o.Running, achievableOf), r.on(o.Running, idealOf), r.on(o.Running, upperOf)
			if reshapes(r.s.Advice) {
				row.text, row.est = "(new curve)", false
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
		list[len(list)-1].text, list[len(list)-1].est = "(beyond)", false
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
		row := roofRow{name: sign + " " + o.Label, running: stat.Some(o.Running), tokens: stat.Some(o.Tokens), token: t, text: "the first baseline"}
		if o.Iteration != nil {
			row.text = tuning.IterationChange(o.Iteration) + ": " + endName(o.Iteration)
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
	share := func(head string, tone page.Tone, of func(row roofRow) string) page.Field[roofRow] {
		if p.Width() >= wideTable {
			head = "of " + head
		}
		return page.Right(head, tone, func(row roofRow) page.Cell {
			if row.text != "" || r.curve == nil {
				return page.Cell{}
			}
			return page.Words(of(row))
		}).Ranked(1)
	}
	point := []page.Field[roofRow]{
		{Column: page.Column{Left: true}, Cell: func(row roofRow) page.Cell { return page.Cell{Text: row.name, Tone: row.token} }},
		page.Right("running", page.Body, func(row roofRow) page.Cell { return page.Amount(row.running, "") }),
		page.Right("tok/s", page.Strong, func(row roofRow) page.Cell { return page.Ratio(row.tokens) }),
	}
	present := page.Tabulate(r.rows(), append(slices.Clip(point),
		share("achv", cell.Achievable, func(row roofRow) string { return row.share() }),
		share("ideal", cell.Ideal, func(row roofRow) string { return figure.Show(row.tokens.Div(row.ideal), "ratio") }),
		page.Notes("", func(row roofRow) string { return cmp.Or(row.text, map[bool]string{true: "(est)"}[row.est]) })))
	past := page.Tabulate(r.pastRows(), append(slices.Clip(point), page.Notes("", func(row roofRow) string { return row.text })))
	for i := range past.Columns {
		past.Columns[i].Head = ""
	}
	past.Columns[len(past.Columns)-1].MaxLines = 2
	all := r.u.Lines([]page.Section{{Nodes: []page.Node{present}}, {Nodes: []page.Node{past}}}, p.Width()+tableIndent)
	r.u.Text(p, -tableIndent, all.From(0, p.Height()))
}

// wideTable is the width of a table from which its headings have more words.
const wideTable = 70
