package verdict

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// power is the share of trials that must detect a gain.
const power = 0.8

// Detectable returns the least gain, as a ratio, that each look of a trial would distinguish from noise in four
// of five cases, if the server scatters after the change as it did before and is started once. It is nil
// if the goal of the side before is not known.
func Detectable(before *Side, p Plan, looks []time.Duration) []float64 {
	p.Looks = len(looks)
	c := newComparison(before, before, p)
	c.measure()
	columns, _, ok := c.goal()
	if !ok || len(c.side[0].starts) == 0 {
		return nil
	}
	c.errors(columns)
	start := c.courses[len(c.courses)-1]
	dof := (c.scattered[0] + c.scattered[1]) * (c.scattered[0] + c.scattered[1]) / c.uncertain
	sd := c.p.Spread.sd()
	restart := sd * sd * (c.side[0].spread + 1)
	chance := stat.StudentQuantile(power, math.Inf(1))
	out := make([]float64, len(looks))
	for i, at := range looks {
		c.p.Look = i
		time := at.Seconds()
		sides := [2]float64{c.scattered[0], c.rate/time + unseenVariance(time, start.time+time, start.scatter())}
		c.uncertain = (sides[0] + sides[1]) * (sides[0] + sides[1]) / dof
		least := (c.limit(sides, restart) + chance) * math.Sqrt(sides[0]+sides[1]+restart)
		out[i] = max(math.Expm1(least), c.p.Precision)
	}
	return out
}
