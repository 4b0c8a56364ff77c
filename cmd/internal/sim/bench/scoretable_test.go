package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Metrics of predictions, by the names of engine.Prediction.
const (
	metricGoal = "generation_tokens_per_s"
	metricTTFT = "ttft_mean_s"
	metricITL  = "itl_mean_s"
)

// Group returns the group of a prediction: the finding and the change.
func (f *ScoredPrediction) Group() string { return f.Finding + ": " + f.Advice }

// writePredictions writes the scores of predictions: of all, by half and by group.
func writePredictions(list []ScoredPrediction) string {
	b := newReport()
	for _, m := range []string{metricGoal, metricTTFT, metricITL} {
		scoreTable(b, list, m)
	}
	unscored(b, list)
	return b.String()
}

func scoreTable(b *strings.Builder, list []ScoredPrediction, metric string) {
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
