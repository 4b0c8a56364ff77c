package optrace

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// unevenExperts is the coefficient of variation from which on choices are called
	// uneven: at 0.5 an expert that is one deviation above the mean is chosen three
	// times as often as one that is one below.
	unevenExperts = 0.5
	// chanceTimes is how many times the variation of even chance it must be.
	chanceTimes = 3
)

// findExperts is a mixture whose experts are chosen unevenly, by more than chance
// makes them. It is the model's and the text's doing; no setting changes it.
func findExperts(v *view) (cause, bool) {
	x := v.Experts
	if x == nil || x.Count < 2 || x.Used < 1 || x.Used >= x.Count {
		return cause{}, false
	}
	var worst *ExpertLayer
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
		return cause{}, false
	}
	evidence := []string{
		fmt.Sprintf("In %d of %d layers the choices vary by more than %s of their mean, and by more than chance.", uneven, len(x.Layers), spellPercent(unevenExperts)),
		fmt.Sprintf("Layer %d is the most uneven: CV %s; by chance it would be %s.", worst.Layer, spellThree(worst.CV.V), spellThree(chanceCV(worst.Chosen))),
	}
	if worst.Top.OK {
		evidence = append(evidence, fmt.Sprintf("Its most chosen expert takes part in %s of the tokens.", spellPercent(worst.Top.V)))
	}
	return cause{
		Finding: Finding{ID: "experts-uneven", Severity: severityInfo, Title: "Some experts are chosen far more often", Evidence: evidence, Cost: stat.None},
		instead: "the router of the model decides that, no setting does",
	}, true
}

// chanceCV is the coefficient of variation of counts that chance alone makes: with n
// choices of k experts each is binomial with mean n/k, so that it is sqrt((k-1)/n).
// Choices of one token are distinct, which makes it smaller yet.
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
