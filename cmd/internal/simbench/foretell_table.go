package simbench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Metrics of predictions, by the names of engine.Prediction.
const (
	foretoldGoal = "generation_tokens_per_s"
	foretoldTTFT = "ttft_mean_s"
	foretoldITL  = "itl_mean_s"
)

// Scoreboard sums up the predictions of one metric.
type Scoreboard struct {
	N      int // with a middle and both ends
	Bounds int // with an end missing or no middle
	// Error is the median distance of the middles from what was measured, Bias the
	// median with its sign: above 0 more was promised than came. NaN of none.
	Error, Bias float64
	// Coverage is the share of whole predictions whose interval held what was
	// measured; Below and Above are the shares that came out below and above it.
	Coverage, Below, Above float64
	// BoundsHeld is the share of the others within what they bound.
	BoundsHeld float64
	Width      float64 // median of (1 + high)/(1 + low) - 1
}

// Score sums up the predictions of a metric that count says yes to; nil is all.
func Score(list []Foretold, metric string, count func(*Foretold) bool) Scoreboard {
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
	part := func(n, of int) float64 {
		if of == 0 {
			return math.NaN()
		}
		return float64(n) / float64(of)
	}
	b.Error, b.Bias, b.Width = median(errs), median(signed), median(widths)
	b.Coverage, b.Below, b.Above = part(covered, b.N), part(below, b.N), part(above, b.N)
	b.BoundsHeld = part(boundsHeld, b.Bounds)
	return b
}

func median(v []float64) float64 {
	slices.Sort(v)
	return quantile(v, 0.5)
}

// Group names what was predicted of: the finding and the change.
func (f *Foretold) Group() string { return f.Finding + ": " + f.Advice }

// WritePredictions writes the scores of predictions: over all and by half, then by
// what was recommended, and those furthest off, worst in number. The latter two are
// of the fitted half only, which is there to be looked at; heldOut shows what was
// recommended of the other as well.
func WritePredictions(w io.Writer, list []Foretold, worst int, heldOut bool) error {
	var b strings.Builder
	b.WriteString("SIMULATED: every figure comes from rooftop's own simulator, not from hardware.\n\n")
	for _, m := range []string{foretoldGoal, foretoldTTFT, foretoldITL} {
		scoreTable(&b, list, m, heldOut)
	}
	unscored(&b, list)
	for _, m := range []string{foretoldGoal, foretoldTTFT, foretoldITL} {
		worstOf(&b, list, m, worst)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func scoreTable(b *strings.Builder, list []Foretold, metric string, heldOut bool) {
	fmt.Fprintf(b, "%s\n", metric)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  PREDICTED\tN\tMEDIAN ERROR\tBIAS\tCOVERAGE\tBELOW\tABOVE\tWIDTH\tBOUNDS ONLY\tOF THEM HELD")
	line := func(name string, count func(*Foretold) bool) {
		s := Score(list, metric, count)
		if s.N+s.Bounds == 0 {
			return
		}
		fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", name, s.N, share(s.Error), percent(s.Bias), share(s.Coverage), share(s.Below), share(s.Above), share(s.Width), s.Bounds, share(s.BoundsHeld))
	}
	line("all", nil)
	line("fitted half", func(f *Foretold) bool { return !f.Held })
	line("half held out", func(f *Foretold) bool { return f.Held })
	flag := func(f *Foretold) bool { return strings.HasPrefix(f.Advice, "--") }
	line("flags, fitted half", func(f *Foretold) bool { return flag(f) && !f.Held })
	line("flags, half held out", func(f *Foretold) bool { return flag(f) && f.Held })
	for _, g := range groups(list) {
		line(g, func(f *Foretold) bool { return !f.Held && f.Group() == g })
		if heldOut {
			line(g+", held out", func(f *Foretold) bool { return f.Held && f.Group() == g })
		}
	}
	_ = t.Flush() // a strings.Builder takes everything
	b.WriteByte('\n')
}

func share(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

func groups(list []Foretold) []string {
	var out []string
	for i := range list {
		if len(list[i].Scores) > 0 {
			out = append(out, list[i].Group())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unscored counts what could not be tried, by the reason.
func unscored(b *strings.Builder, list []Foretold) {
	n := map[string]int{}
	var reasons []string
	for i := range list {
		why, _, _ := strings.Cut(list[i].Unscored, ": ")
		if why == "" {
			continue
		}
		if n[why] == 0 {
			reasons = append(reasons, why)
		}
		n[why]++
	}
	slices.Sort(reasons)
	for _, why := range reasons {
		fmt.Fprintf(b, "%d not tried: %s\n", n[why], why)
	}
	b.WriteByte('\n')
}

// worstOf lists the predictions whose middle was furthest off.
func worstOf(b *strings.Builder, list []Foretold, metric string, n int) {
	var far []*Foretold
	for i := range list {
		if s := list[i].Score(metric); s != nil && !list[i].Held && !math.IsNaN(s.Mid) {
			far = append(far, &list[i])
		}
	}
	off := func(f *Foretold) float64 { return math.Abs(math.Log1p(f.Score(metric).Error())) }
	slices.SortStableFunc(far, func(x, y *Foretold) int { return cmp.Compare(off(y), off(x)) })
	if far = far[:min(n, len(far))]; len(far) == 0 {
		return
	}
	fmt.Fprintf(b, "Furthest off of %s:\n", metric)
	for _, f := range far {
		s := f.Score(metric)
		fmt.Fprintf(b, "%s seed %d step %d: %s: %s\n  %s, off by %s\n", f.Scenario, f.Seed, f.Step, f.Finding, f.Change, s, percent(s.Error()))
		fmt.Fprintf(b, "  before: %s\n  after:  %s\n", f.Before.operating(), f.After.operating())
		if rec := f.Before.Diagnosis.Recommendation; rec != nil {
			fmt.Fprintf(b, "  said: %s\n", oneLine(rec.Why))
		}
	}
	b.WriteByte('\n')
}

// operating is the operating point of a run and what the model says of it.
func (o *Outcome) operating() string {
	line := o.list("page.generation_tokens_per_s", "page.running_mean", "page.waiting_mean", "page.kv_usage_mean", "page.preemptions_per_s", "page.prefix_hit_rate", "page.step_time_s", "page.itl_mean_s", "page.ttft_mean_s")
	if p := o.Diagnosis.Ceiling.Physical; p != nil {
		line += fmt.Sprintf(", model step %.4g bound by %s, measured over it %.3g", p.StepAchievableS, p.Binding, p.CalibrationRaw.Or(math.NaN()))
	}
	return line
}
