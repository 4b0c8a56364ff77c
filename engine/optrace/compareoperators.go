package optrace

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// operators matches the rows of a phase: by operator, name and type of weights, then
// without the type, since another quantisation may be what is compared, and then
// without the operator, since a fused one computes the same.
func (c *comparing) operators(a, b *PhaseRow) []OperatorChange {
	if a.Tokens <= 0 || b.Tokens <= 0 {
		return nil
	}
	left, right := rowsOf(c.a, a.Phase), rowsOf(c.b, b.Phase)
	whole := 0.0
	for _, r := range left {
		whole += r.Time.Seconds()
	}
	whole /= float64(a.Tokens)
	var out []OperatorChange
	for _, same := range [...]func(x, y *OperatorRow) bool{
		func(x, y *OperatorRow) bool {
			return x.Op == y.Op && x.Sub == y.Sub && x.Name == y.Name && x.Type == y.Type
		},
		func(x, y *OperatorRow) bool { return x.Op == y.Op && x.Sub == y.Sub && x.Name == y.Name },
		func(x, y *OperatorRow) bool { return x.Name == y.Name && x.Name != "" },
	} {
		for i, x := range left {
			if x == nil {
				continue
			}
			for j, y := range right {
				if y != nil && same(x, y) {
					out = append(out, c.operator(x, y, a, b, whole))
					left[i], right[j] = nil, nil
					break
				}
			}
		}
	}
	for _, x := range left {
		if x != nil {
			out = append(out, c.operator(x, nil, a, b, whole))
		}
	}
	for _, y := range right {
		if y != nil {
			out = append(out, c.operator(nil, y, a, b, whole))
		}
	}
	return out
}

// rowsOf are the rows of a phase, by name where there are such, else by operator.
func rowsOf(v *view, phase string) []*OperatorRow {
	rows := v.Steps
	if len(rows) == 0 {
		rows = v.Kinds
	}
	var out []*OperatorRow
	for i := range rows {
		if rows[i].Phase == phase {
			out = append(out, &rows[i])
		}
	}
	return out
}

// operator is the change of a row that both sides have, or one of them. Operators of one
// graph are disturbed together, so that the scatter of graphs is in each.
func (c *comparing) operator(x, y *OperatorRow, a, b *PhaseRow, whole float64) OperatorChange {
	some := x
	if some == nil {
		some = y
	}
	out := OperatorChange{Phase: some.Phase, Op: some.Op, Name: some.Name}
	perToken := func(v *view, r *OperatorRow, of *PhaseRow) (stat.Opt, float64) {
		if r == nil {
			return stat.Some(0), 0
		}
		return stat.Some(r.Time.Seconds() / float64(of.Tokens)), math.Hypot(r.Each.scatter(probeNoise), c.unsteady(v, of.Phase, &of.Graph))
	}
	ta, sa := perToken(c.a, x, a)
	tb, sb := perToken(c.b, y, b)
	if x != nil {
		out.TypeA, out.ShareA = x.Type, x.Share
	}
	if y != nil {
		out.TypeB, out.ShareB = y.Type, y.Share
	}
	out.PerToken = c.change(ta, tb, sa, sb, false, c.withheld(a, b))
	if x == nil || y == nil {
		out.PerToken.Reason = "one side does not have this operator"
	} else {
		c.bothWays(&out.PerToken, x, y, a, b)
	}
	if whole > 0 {
		out.Of = stat.Some((tb.V - ta.V) / whole)
	}
	return out
}

// bothWays widens the interval of an operator to what its medians say. A lane that loses
// its CPU once adds milliseconds to one operator, and so to its sum, but hardly moves its
// median; what has really changed moves both.
func (c *comparing) bothWays(out *Change, x, y *OperatorRow, a, b *PhaseRow) {
	if !out.Low.OK {
		return
	}
	middle := func(v *view, r *OperatorRow, of *PhaseRow) (stat.Opt, float64) {
		return stat.Some(r.Each.P50.Seconds() * float64(r.Each.Count) / float64(of.Tokens)),
			math.Hypot(r.Each.scatterOfMedian(probeNoise), c.drift(v, of.Phase))
	}
	ma, sa := middle(c.a, x, a)
	mb, sb := middle(c.b, y, b)
	m := c.interval(ma, mb, sa, sb, false)
	if !m.Low.OK {
		out.Low, out.High, out.Word, out.Reason = stat.None, stat.None, "", "its median is not known"
		return
	}
	out.Low, out.High = stat.Some(min(out.Low.V, m.Low.V)), out.High.Max(m.High)
	out.Word = wordFor(out.Low.V, out.High.V, false)
}
