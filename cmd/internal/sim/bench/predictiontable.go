package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Metrics of predictions, by the names of engine.Prediction.
const (
	metricGoal = "generation_tokens_per_s"
	metricTTFT = "ttft_mean_s"
	metricITL  = "itl_mean_s"
)

// Scoreboard summarizes the predictions of one metric.
type Scoreboard struct {
	N      int // predictions with a middle and both ends
	Bounds int // predictions without a middle or without an end
	// Error is the median absolute error of the middles, Bias the median error with its sign:
	// above 0 the predictions were too high. NaN without predictions.
	Error, Bias float64
	// Coverage is the share of whole predictions whose interval covers the measured change; Below
	// and Above are the shares measured below and above the interval.
	Coverage, Below, Above float64
	// BoundsCovered is the share of the predictions counted in Bounds that cover the measured
	// change.
	BoundsCovered float64
	Width         float64 // median of (1 + high)/(1 + low) - 1
}

// Score summarizes the predictions of a metric for which count returns true; nil means all.
func Score(list []ScoredPrediction, metric string, count func(*ScoredPrediction) bool) Scoreboard {
	var b Scoreboard
	var errs, signed, widths []float64
	covered, below, above, boundsHeld := 0, 0, 0, 0
	for i := range list {
		s := list[i].Score(metric)
		if s == nil || count != nil && !count(&list[i]) {
			continue
		}
		if !s.Whole() {
			b.Bounds++
			if s.Covered() {
				boundsHeld++
			}
			continue
		}
		b.N++
		errs, signed = append(errs, math.Abs(s.Error())), append(signed, s.Error())
		widths = append(widths, (1+s.High)/max(1e-9, 1+s.Low)-1)
		switch {
		case s.Covered():
			covered++
		case s.Measured < s.Low:
			below++
		default:
			above++
		}
	}
	part := func(n, of int) float64 { return stat.Ratio(n, of).Or(math.NaN()) }
	b.Error, b.Bias, b.Width = sortedMiddle(errs), sortedMiddle(signed), sortedMiddle(widths)
	b.Coverage, b.Below, b.Above = part(covered, b.N), part(below, b.N), part(above, b.N)
	b.BoundsCovered = part(boundsHeld, b.Bounds)
	return b
}

func sortedMiddle(v []float64) float64 {
	slices.Sort(v)
	return stat.NearestRank(v, 0.5).Or(math.NaN())
}

// Group returns the group of a prediction: the finding and the change.
func (f *ScoredPrediction) Group() string { return f.Finding + ": " + f.Advice }

// WritePredictions writes the scores of predictions: of all and by half, then by group, then the
// given number of worst predictions. Groups and worst predictions are those of the fitted half;
// with heldOut, groups of the other half are included.
func WritePredictions(w io.Writer, list []ScoredPrediction, worst int, heldOut bool) error {
	b := newReport()
	for _, m := range []string{metricGoal, metricTTFT, metricITL} {
		scoreTable(b, list, m, heldOut)
	}
	unscored(b, list)
	for _, m := range []string{metricGoal, metricTTFT, metricITL} {
		worstOf(b, list, m, worst)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func scoreTable(b *strings.Builder, list []ScoredPrediction, metric string, heldOut bool) {
	fmt.Fprintf(b, "%s\n", metric)
	lines := []string{"  PREDICTED\tN\tMEDIAN ERROR\tBIAS\tCOVERAGE\tBELOW\tABOVE\tWIDTH\tBOUNDS ONLY\tOF THEM HELD"}
	line := func(name string, count func(*ScoredPrediction) bool) {
		s := Score(list, metric, count)
		if s.N+s.Bounds == 0 {
			return
		}
		lines = append(lines, fmt.Sprintf("  %s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s", name, s.N, share(s.Error), signedPercent(s.Bias),
			share(s.Coverage), share(s.Below), share(s.Above), share(s.Width), s.Bounds, share(s.BoundsCovered)))
	}
	line("all", nil)
	line("fitted half", func(f *ScoredPrediction) bool { return !f.HeldOut })
	line("half held out", func(f *ScoredPrediction) bool { return f.HeldOut })
	flag := func(f *ScoredPrediction) bool { return strings.HasPrefix(f.Advice, "--") }
	line("flags, fitted half", func(f *ScoredPrediction) bool { return flag(f) && !f.HeldOut })
	line("flags, half held out", func(f *ScoredPrediction) bool { return flag(f) && f.HeldOut })
	for _, g := range groups(list) {
		line(g, func(f *ScoredPrediction) bool { return !f.HeldOut && f.Group() == g })
		if heldOut {
			line(g+", held out", func(f *ScoredPrediction) bool { return f.HeldOut && f.Group() == g })
		}
	}
	writeTable(b, lines)
}

func share(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

func groups(list []ScoredPrediction) []string {
	var out []string
	for i := range list {
		if len(list[i].Scores) > 0 {
			out = append(out, list[i].Group())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unscored writes the numbers of recommendations that could not be tried, by reason.
func unscored(b *strings.Builder, list []ScoredPrediction) {
	n := map[string]int{}
	for i := range list {
		if why, _, _ := strings.Cut(list[i].Unscored, ": "); why != "" {
			n[why]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(n)) {
		fmt.Fprintf(b, "%d not tried: %s\n", n[why], why)
	}
	b.WriteByte('\n')
}

// worstOf writes the n predictions with the largest errors of the middle.
func worstOf(b *strings.Builder, list []ScoredPrediction, metric string, n int) {
	var far []*ScoredPrediction
	for i := range list {
		if s := list[i].Score(metric); s != nil && !list[i].HeldOut && !math.IsNaN(s.Mid) {
			far = append(far, &list[i])
		}
	}
	off := func(f *ScoredPrediction) float64 { return math.Abs(math.Log1p(f.Score(metric).Error())) }
	slices.SortStableFunc(far, func(x, y *ScoredPrediction) int { return cmp.Compare(off(y), off(x)) })
	if far = far[:min(n, len(far))]; len(far) == 0 {
		return
	}
	fmt.Fprintf(b, "Furthest off of %s:\n", metric)
	for _, f := range far {
		s := f.Score(metric)
		fmt.Fprintf(b, "%s seed %d step %d: %s: %s\n  %s, off by %s\n", f.Scenario, f.Seed, f.Step, f.Finding, f.Change, s, signedPercent(s.Error()))
		fmt.Fprintf(b, "  before: %s\n  after:  %s\n", f.Before.operating(), f.After.operating())
		if rec := f.Before.Diagnosis.Recommendation; rec != nil {
			fmt.Fprintf(b, "  said: %s\n", oneLine(rec.Why))
		}
	}
	b.WriteByte('\n')
}

// operating formats the operating point of a run with the model's values for it.
func (o *Outcome) operating() string {
	line := o.list("page.generation_tokens_per_s page.running_mean page.waiting_mean page.kv_usage_mean page.preemptions_per_s " +
		"page.prefix_hit_rate page.step_time_s page.itl_mean_s page.ttft_mean_s")
	if p := o.Diagnosis.Ceiling.Physical; p != nil {
		line += fmt.Sprintf(", model step %.4g bound by %s, measured over it %.3g", p.StepAchievableS, p.Binding, p.CalibrationRaw.Or(math.NaN()))
	}
	return line
}
