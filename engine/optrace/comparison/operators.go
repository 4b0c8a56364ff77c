package comparison

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// operators matches the rows of a phase: by operator, name and type of weights; then without
// the type, since the quantisation may be what is compared; then without the operator, since a
// fused operator computes the same.
func (c *comparing) operators(a, b *optrace.PhaseRow) []OperatorChange {
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
	for _, same := range [...]func(x, y *optrace.OperatorRow) bool{
		func(x, y *optrace.OperatorRow) bool {
			return x.Op == y.Op && x.Sub == y.Sub && x.Name == y.Name && x.Type == y.Type
		},
		func(x, y *optrace.OperatorRow) bool { return x.Op == y.Op && x.Sub == y.Sub && x.Name == y.Name },
		func(x, y *optrace.OperatorRow) bool { return x.Name == y.Name && x.Name != "" },
	} {
		for i, x := range left {
			if x == nil {
				continue
			}
			if j := slices.IndexFunc(right, func(y *optrace.OperatorRow) bool { return y != nil && same(x, y) }); j >= 0 {
				out = append(out, c.operator(x, right[j], a, b, whole))
				left[i], right[j] = nil, nil
			}
		}
	}
	for i, x := range slices.Concat(left, right) {
		switch {
		case x == nil:
		case i < len(left):
			out = append(out, c.operator(x, nil, a, b, whole))
		default:
			out = append(out, c.operator(nil, x, a, b, whole))
		}
	}
	return out
}

// rowsOf returns the rows of a phase, by name if there are any, or else by operator.
func rowsOf(v *evidence.View, phase string) []*optrace.OperatorRow {
	rows := v.Steps
	if len(rows) == 0 {
		rows = v.Kinds
	}
	var out []*optrace.OperatorRow
	for i := range rows {
		if rows[i].Phase == phase {
			out = append(out, &rows[i])
		}
	}
	return out
}

// operator returns the change of a row, of which either side may be nil. Operators of one graph
// are disturbed together, so the scatter of graphs is included in each.
func (c *comparing) operator(x, y *optrace.OperatorRow, a, b *optrace.PhaseRow, whole float64) OperatorChange {
	some := x
	if some == nil {
		some = y
	}
	out := OperatorChange{Phase: some.Phase, Op: some.Op, Name: some.Name}
	perToken := func(v *evidence.View, r *optrace.OperatorRow, of *optrace.PhaseRow) (stat.Opt, float64) {
		if r == nil {
			return stat.Some(0), 0
		}
		return stat.Some(r.Time.Seconds() / float64(of.Tokens)), math.Hypot(relativeError(&r.Each, probeNoise), c.phaseError(v, of.Phase, &of.Graph))
	}
	ta, sa := perToken(c.a, x, a)
	tb, sb := perToken(c.b, y, b)
	if x != nil {
		out.TypeA, out.ShareA = x.Type, x.Share
	}
	if y != nil {
		out.TypeB, out.ShareB = y.Type, y.Share
	}
	out.PerToken = c.change(ta, tb, sa, sb, false, c.whyNoOperatorVerdict(a, b))
	if x == nil || y == nil {
		out.PerToken.Reason = "one side does not have this operator"
	} else {
		c.widenByMedian(&out.PerToken, x, y, a, b)
	}
	if whole > 0 {
		out.TokenShare = stat.Some((tb.V - ta.V) / whole)
	}
	return out
}

// widenByMedian widens the interval of an operator to include that of its medians. A thread that
// loses its CPU once adds milliseconds to one operator, and so to its sum, but hardly moves its
// median; a real change moves both.
func (c *comparing) widenByMedian(out *compare.Change, x, y *optrace.OperatorRow, a, b *optrace.PhaseRow) {
	if !out.Low.OK {
		return
	}
	middle := func(v *evidence.View, r *optrace.OperatorRow, of *optrace.PhaseRow) (stat.Opt, float64) {
		return stat.Some(r.Each.P50.Seconds() * float64(r.Each.Count) / float64(of.Tokens)),
			math.Hypot(relativeErrorOfMedian(&r.Each, probeNoise), c.drift(v, of.Phase))
	}
	ma, sa := middle(c.a, x, a)
	mb, sb := middle(c.b, y, b)
	m := c.interval(ma, mb, sa, sb, false)
	if !m.Low.OK {
		out.Withhold("its median is unknown")
		return
	}
	out.SetInterval(min(out.Low.V, m.Low.V), max(out.High.V, m.High.V), false)
}
