package verdict

// Judge compares two sides. It may be called at each look of the plan: its intervals hold for
// all looks together, because the looks share one error rate that grows with what is known (see
// Plan.level).
//
// The variance of the difference is the sum of two: of scatter within the starts, a long-run variance
// (longRunVariance, errors), and of restarts, the plan's spread over the starts of each side. Half the
// interval is their root times one Student's quantile, for the degrees of freedom of both by
// Satterthwaite's formula. A difference is Better or Worse if its interval excludes zero, it is at
// least as large as the precision, traffic and neighbours cannot explain it (traffic, host), and each
// third of the trial shows it (isLasting). For sides measured at the same time, the differences at each
// moment take the place of the scatter within the starts (match).
func Judge(before, after *Side, p Plan) Result {
	c := newComparison(before, after, p)
	c.measure()
	c.traffic()
	c.host()
	c.effect()
	c.objectives()
	(&decision{c}).decide()
	return c.r
}

// comparison is the state of a verdict in progress.
type comparison struct {
	p    Plan
	r    Result
	side [2]*sample // before, after

	error     float64 // of this look
	precision float64 // as a difference of logarithms
	restart   float64 // share of restarts in half the interval of a difference of logarithms
	low, high float64 // bounds on the effect of the traffic, as logarithms
	effects   effect
	scattered [2]float64         // variance of the difference in the goal by scatter before and after
	uncertain float64            // the square of its estimated part over the degrees of freedom
	rate      float64            // relative variance of one second, of all starts together
	filling   [2]bool            // a prefix cache that was still filling explains a part, before or after
	outcomes  []objectiveOutcome // one for each objective
	meters    []meter
	tails     [][2]tail // columns of the shares beyond each objective's limit, before and after
	courses   []*course
	others    []*course // between starts of one side, measured at the same time
	sign      float64   // -1 if smaller values of the goal are better
	loadMoved bool      // requests in the server or arrivals certainly differ
	hosts     host
}

// effect is a difference of logarithms, larger is better, with the two parts of half its
// interval.
type effect struct {
	mid, se, dof      float64
	measured, restart float64
	known             bool
}

func (e *effect) low() float64  { return e.mid - e.halfWidth() }
func (e *effect) high() float64 { return e.mid + e.halfWidth() }
