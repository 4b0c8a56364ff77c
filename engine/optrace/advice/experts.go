package advice

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// unevenExperts is the coefficient of variation from which choices count as uneven: at 0.5
	// an expert one deviation above the mean is chosen three times as often as one that is one
	// below.
	unevenExperts = 0.5
	// chanceTimes is how many times the variation by chance it must exceed.
	chanceTimes = 3
)

// findExperts finds a mixture whose experts are chosen more unevenly than chance explains. The
// model and the text cause that; no setting changes it.
func findExperts(v *subject) *cause {
	x := v.Experts
	if x == nil || x.Count < 2 || x.Used < 1 || x.Used >= x.Count {
		return nil
	}
	var worst *optrace.ExpertLayer
	uneven := 0
	for i := range x.Layers {
		l := &x.Layers[i]
		if !l.CV.OK || l.CV.V < max(unevenExperts, chanceTimes*chanceCV(l.Chosen)) {
			continue
		}
		uneven++
		if worst == nil || l.CV.V > worst.CV.V {
			worst = l
		}
	}
	if worst == nil {
		return nil
	}
	c := newCause(severityInfo, "Some experts are chosen far more often", stat.None,
		fmt.Sprintf("In %d of %s the choices vary by more than %s of their mean, and by more than chance.", uneven, figure.Counted(len(x.Layers), "layer"), percent(unevenExperts)),
		fmt.Sprintf("Layer %d is the most uneven: its CV is %s; chance alone would give %s.", worst.Layer, figure.Significant(worst.CV.V), figure.Significant(chanceCV(worst.Chosen))))
	if worst.Top.OK {
		c.Evidence = append(c.Evidence, fmt.Sprintf("Its most chosen expert takes part in %s of the tokens.", figure.PercentSign(worst.Top.V)))
	}
	c.instead = "the model's router decides that; no setting does"
	return c
}

// chanceCV returns the coefficient of variation of counts by chance alone: with n choices of k
// experts each count is binomial with mean n/k, so it is sqrt((k-1)/n). The choices of one
// token are distinct, which makes it slightly smaller.
func chanceCV(chosen []int64) float64 {
	n := 0.0
	for _, c := range chosen {
		n += float64(c)
	}
	if n <= 0 {
		return math.Inf(1)
	}
	return math.Sqrt(float64(len(chosen)-1) / n)
}

// percent formats a threshold with as few digits as it needs: "3 %".
func percent(share float64) string { return figure.Count(100*share) + figure.NBSP + "%" }
