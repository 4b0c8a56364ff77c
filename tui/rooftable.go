package tui

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// roofRow is a line of the table: a point of interest with its shares.
type roofRow struct {
	name            string
	running, tokens stat.Opt
	reach, ideal    stat.Opt // what the ceilings are there
	est             bool     // the rate is the model's
	token           cell.Token
}

// rows are the points of interest: what is measured, and what the limits allow.
func (r *roofView) rows() []roofRow {
	var list []roofRow
	for _, o := range r.at {
		if o.role == roleBefore {
			continue
		}
		_, name, t := o.role.look(r.u.glyphs)
		row := roofRow{name: name, running: stat.Some(o.running), tokens: stat.Some(o.tokens), token: t, est: o.role == roleAdvised}
		switch {
		case r.curve != nil && o.role == roleAdvised:
			row.reach, row.ideal = r.on(o.running, achievableOf), r.on(o.running, idealOf)
		case r.curve != nil:
			row.reach, row.ideal = r.curve.Now.Achievable, r.curve.Now.Ideal
		}
		list = append(list, row)
	}
	if r.curve == nil {
		return list
	}
	at := func(name string, running stat.Opt) {
		if running.OK {
			list = append(list, roofRow{
				name: name, running: running, tokens: r.expected(running.V), est: true,
				reach: r.on(running.V, achievableOf), ideal: r.on(running.V, idealOf),
			})
		}
	}
	at("all seats", r.curve.Seats)
	at("full KV pool", r.curve.Pool)
	if o := r.d.Ceiling.Physical; o != nil && o.BestTokensPerS.OK && o.BestBatch > 0 {
		at("best allowed", stat.Some(o.BestBatch))
		list[len(list)-1].tokens = o.BestTokensPerS
	}
	return list
}

func achievableOf(c engine.CurvePoint) stat.Opt { return c.Achievable }
func idealOf(c engine.CurvePoint) stat.Opt      { return c.Ideal }

// key says what the numbers of past points stand for, newest first.
func (r *roofView) key(p cell.Pane) {
	if len(r.s.Iterations) == 0 {
		return
	}
	g, y := r.u.glyphs, 0
	line := func(n, text string) {
		x := p.Text(0, y, cell.Baseline, g.Past+n)
		p.Text(x+1, y, cell.Muted, cell.Cut(text, p.Width()-x-1, g.Ellipsis))
		y++
	}
	for i := len(r.s.Iterations) - 1; i >= 0; i-- {
		it := &r.s.Iterations[i]
		if it.After != nil {
			line(figure.Count(float64(it.N)), changeOf(it)+": "+endWord(it))
		}
	}
	line("0", "the first baseline")
}

// table lists the rows, as many as fit.
func (r *roofView) table(p cell.Pane) {
	if p.Height() < 2 {
		return
	}
	columns := [...]int{20, 28, 40, 47} // right ends
	if p.Width() >= 70 {
		columns = [...]int{24, 35, 51, 62}
	}
	for i, name := range [...]string{"running", "tok/s", "achievable", "ideal"} {
		if i > 1 && p.Width() >= 70 {
			name = "of " + name
		}
		p.Right(columns[i], 0, cell.Muted, name)
	}
	for y, row := range r.rows() {
		p.Text(0, y+1, row.token, row.name)
		p.Right(columns[0], y+1, cell.Body, countShown(row.running))
		p.Right(columns[1], y+1, cell.Strong, rateShown(row.tokens))
		p.Right(columns[2], y+1, cell.Achievable, figure.Show(row.tokens.Div(row.reach), "ratio"))
		p.Right(columns[3], y+1, cell.Ideal, figure.Show(row.tokens.Div(row.ideal), "ratio"))
		if row.est {
			p.Text(columns[3]+2, y+1, cell.Muted, cell.Cut("(est)", p.Width()-columns[3]-2, ""))
		}
	}
}

func countShown(o stat.Opt) string {
	if !o.OK {
		return figure.Absent
	}
	return figure.Count(o.V)
}

func rateShown(o stat.Opt) string {
	if !o.OK {
		return figure.Absent
	}
	return figure.Significant(o.V)
}

// nothingMeasured says that there is nothing to draw, and what is waited for.
func (u *look) nothingMeasured(p cell.Pane, s *engine.Snapshot) int {
	text := "Nothing was measured yet."
	if s.Progress.Text != "" {
		text += " rooftop " + s.Progress.Text + "."
	}
	lines := cell.Wrap(text, p.Width())
	for y, l := range lines {
		p.Text(0, y, cell.Muted, l)
	}
	return len(lines)
}
