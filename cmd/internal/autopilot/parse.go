package autopilot

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// objective returns the objective with a key such as ttft_p99, without a limit.
func objective(key string) (o verdict.Objective, ok bool) {
	for _, known := range objectives() {
		if known.Name == key {
			return known, true
		}
	}
	return o, false
}

// objectives returns all objectives, without limits.
func objectives() []verdict.Objective {
	var out []verdict.Objective
	for _, m := range []verdict.Metric{verdict.MetricTTFT, verdict.MetricITL, verdict.MetricTPOT, verdict.MetricE2E} {
		for _, q := range [...]float64{0.5, 0.9, 0.95, 0.99, 0} {
			out = append(out, verdict.Objective{Name: string(m) + "_" + verdict.QuantileName(q), Metric: m, Quantile: q})
		}
	}
	return out
}

// ParseObjectives parses a list of objectives: ttft_p99=500ms,itl_p99=60ms.
func ParseObjectives(text string) ([]verdict.Objective, error) {
	if text == "" {
		return nil, nil
	}
	var out []verdict.Objective
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, cli.Usagef("--slo %q: write KEY=TIME, as in ttft_p99=500ms", part)
		}
		one, known := objective(strings.TrimSpace(key))
		if !known {
			return nil, unknownObjective(strings.TrimSpace(key))
		}
		var err error
		if one.Limit, err = parseLimit(one.Name, strings.TrimSpace(value)); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o verdict.Objective) bool { return o.Name == one.Name }) {
			return nil, cli.Usagef("--slo: %s is given twice", one.Name)
		}
		out = append(out, one)
	}
	return out, nil
}

func unknownObjective(key string) error {
	var names []string
	for _, o := range objectives() {
		names = append(names, o.Name)
	}
	near := cli.Suggestion(key, names...)
	if near == "" {
		near = "; use ttft, itl, tpot or e2e with _p50, _p90, _p95, _p99 or _mean"
	}
	return cli.Usagef("--slo: unknown objective %q%s", key, near)
}

// parseLimit parses the limit of an objective and returns seconds.
func parseLimit(key, value string) (float64, error) {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return 0, cli.Usagef("--slo %s=%s has no unit, and seconds and milliseconds are both usual: write %s=%sms or %s=%ss", key, value, key, value, key, value)
	}
	limit, err := time.ParseDuration(value)
	if err != nil {
		return 0, cli.Usagef("--slo %s=%s: give a time, as in 500ms or 0.5s", key, value)
	}
	if limit <= 0 || limit > time.Hour {
		return 0, cli.Usagef("--slo %s=%s: give a time above zero and up to an hour", key, value)
	}
	return limit.Seconds(), nil
}

// Limits of the precision.
const (
	minPrecision = 0.002
	maxPrecision = 0.3
)

// parsePrecision parses 3%, 0.03 or 3 as 0.03. A bare number below 1 is a share, others are
// per cent.
func parsePrecision(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) {
		return 0, cli.Usagef("--precision %q: give a share, as in 3%%, 0.03 or 3", text)
	}
	if percent || v >= 1 {
		v /= 100
	}
	if v < minPrecision || v > maxPrecision {
		return 0, cli.Usagef("--precision %s is %.4g %%: give %.4g%% to %.4g%%", text, 100*v, 100*minPrecision, 100*maxPrecision)
	}
	return v, nil
}
