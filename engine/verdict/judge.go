package verdict

// resamples is how many bootstrap resamples a verdict rests on: the standard
// errors that they give are then good to one part in a hundred.
const resamples = 10_000

// Judge sets two sides next to each other. It may be asked at each look of the
// plan's: its intervals hold for all of them together, since the looks share one
// error rate that grows with the time measured (alpha spending of Lan & DeMets, by
// Bonferroni's inequality; see spend). What a restart adds is not widened for the
// number of looks: it is the same draw at each of them.
//
// The measured part is a standard error by the stationary bootstrap of Politis &
// Romano with the block length of Politis & White (resample, block), no smaller
// than autoregressions and longer lives say (errors), times Student's quantile for
// its few blocks. The restart's part is the plan's spread over the lives of each
// side. Both are independent and added by their squares. A difference is Better or
// Worse when its interval excludes zero, it is at least as large as the precision,
// traffic and neighbours cannot explain it (traffic, host), and each third of the
// trial shows it (lasting).
func Judge(before, after *Side, p Plan) Result { return judge(before, after, p, resamples) }

func judge(before, after *Side, p Plan, draws int) Result {
	c := newComparison(before, after, p, draws)
	c.measure()
	c.traffic()
	c.host()
	c.effect()
	c.objectives()
	c.decide()
	return c.r
}

// comparison is a verdict in the making.
type comparison struct {
	p    Plan
	r    Result
	side [2]*sample // before, after

	error     float64 // of this look
	precision float64 // as a difference of logarithms
	restart   float64 // part of half the interval of a difference of logarithms
	low, high float64 // of the effect that the traffic explains at most, as logarithms
	effects   effect
	filling   [2]bool // a prefix cache that still filled explains a part, before or after
	fates     []fate  // of the objectives
	meters    []meter
	tails     [][2]tail // columns of shares beyond each objective's limit, before and after
	courses   []*course
	sign      float64 // -1 where less of what the goal is read from is better
	loadMoved bool    // requests in or arriving, beyond suspicion
	hosts     host
}

// effect is a difference of logarithms, more is better, with the parts of half its
// interval.
type effect struct {
	mid, se, dof      float64
	measured, restart float64
	known             bool
}

func (e *effect) low() float64  { return e.mid - e.half() }
func (e *effect) high() float64 { return e.mid + e.half() }
