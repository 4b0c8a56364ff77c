package report

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// predicted names the metrics of predictions as a person knows them.
func predicted(metric string) string {
	labels := map[string]string{
		"generation_tokens_per_s": "output",
		"prompt_tokens_per_s":     "prompt",
		"requests_per_s":          "requests",
		"ttft_mean_s":             "TTFT",
		"ttft_p99_s":              "TTFT p99",
		"itl_mean_s":              "ITL",
		"itl_p99_s":               "ITL p99",
		"tpot_mean_s":             "TPOT",
		"e2e_mean_s":              "end to end",
		"queue_mean_s":            "queue",
		"usd_per_million_tokens":  "$/1M tok",
	}
	return cmp.Or(labels[metric], metric)
}

// expectation is the predicted effect: from, to, the change and its range.
func (r *plain) expectation(list []engine.Prediction) *table {
	t := &table{}
	for _, p := range list {
		now := r.value(p.Metric)
		relative := p.Unit == "ratio" || p.Unit == ""
		mid, low, high := finite(p.Mid), finite(p.Low), finite(p.High)
		change := predictedChange(p.Metric, low, mid, high, p.Unit)
		then := mid
		if relative {
			then = stat.None
			if now.Value.OK && mid.OK {
				then = stat.Some(now.Value.V * (1 + mid.V))
			}
		}
		t.add(
			cell{t: r.text(body, predicted(p.Metric))},
			cell{t: r.text(body, fromTo(now, then)), right: true},
			cell{t: r.text(accent, change[0]), right: true},
			cell{t: r.text(muted, strings.TrimSpace(change[1]+" "+est(now.Source)))},
		)
	}
	return t
}

func finite(o stat.Opt) stat.Opt {
	if number(o) == nil {
		return stat.None
	}
	return o
}

// fromTo writes a value and what it becomes, the unit once where it is the same.
func fromTo(now engine.Quantity, then stat.Opt) string {
	switch {
	case !now.Value.OK && !then.OK:
		return ""
	case !then.OK:
		return shown(now)
	case !now.Value.OK:
		return "→ " + figure.Show(then, now.Unit)
	}
	a, unitA := figure.Amount(now.Value.V, now.Unit)
	b, unitB := figure.Amount(then.V, now.Unit)
	if unitA == unitB {
		return strings.TrimSpace(atLeast(now) + a + nbsp + "→" + nbsp + b + nbsp + unitA)
	}
	return atLeast(now) + a + nbsp + unitA + nbsp + "→" + nbsp + b + nbsp + unitB
}

// rising are the metrics of which more is better; of the others, latencies and
// costs, less is.
var rising = map[string]bool{"generation_tokens_per_s": true, "prompt_tokens_per_s": true, "requests_per_s": true}

// predictedChange splits a prediction into its middle and its range. Without a
// middle only bounds are known: the good one is what the change may bring at
// best, the bad one what it may cost at worst, and no change is not worth a word.
func predictedChange(metric string, low, mid, high stat.Opt, unit string) [2]string {
	one := func(o stat.Opt) string { return figure.Change(o.V) + nbsp + "%" }
	span := func(a, b stat.Opt) string {
		return "(" + figure.Change(a.V) + " to " + figure.Change(b.V) + nbsp + "%)"
	}
	if unit != "ratio" && unit != "" {
		one = func(o stat.Opt) string { return figure.Show(o, unit) }
		span = func(a, b stat.Opt) string { return "(" + figure.Show(a, unit) + " to " + figure.Show(b, unit) + ")" }
	}
	switch {
	case mid.OK && low.OK && high.OK:
		return [2]string{one(mid), span(low, high)}
	case mid.OK && high.OK:
		return [2]string{one(mid), "(at most " + one(high) + ")"}
	case mid.OK && low.OK:
		return [2]string{one(mid), "(at least " + one(low) + ")"}
	case mid.OK:
		return [2]string{one(mid), ""}
	}
	if low.OK && high.OK && low.V*high.V > 0 {
		return [2]string{"", span(low, high)}
	}
	best, worst := low, high
	if rising[metric] {
		best, worst = high, low
	}
	var bounds []string
	if best.OK && best.V != 0 {
		bounds = append(bounds, "at best "+one(best))
	}
	if worst.OK && worst.V != 0 {
		bounds = append(bounds, "at worst "+one(worst))
	}
	return [2]string{"", strings.Join(append([]string{"unknown until tried"}, bounds...), ", ")}
}
