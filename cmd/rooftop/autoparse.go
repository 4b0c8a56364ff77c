package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// objective reads the key of one, without its limit: ttft_p99.
func objective(key string) (o verdict.Objective, ok bool) {
	for _, known := range objectives() {
		if known.Name == key {
			return known, true
		}
	}
	return o, false
}

// objectives are all that there are, without limits.
func objectives() []verdict.Objective {
	quantiles := []struct {
		name string
		at   float64 // 0 is the mean
	}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"mean", 0}}
	var out []verdict.Objective
	for _, m := range []verdict.Metric{verdict.MetricTTFT, verdict.MetricITL, verdict.MetricTPOT, verdict.MetricE2E} {
		for _, q := range quantiles {
			out = append(out, verdict.Objective{Name: string(m) + "_" + q.name, Metric: m, Quantile: q.at})
		}
	}
	return out
}

// parseObjectives reads ttft_p99=500ms,itl_p99=60ms.
func parseObjectives(text string) ([]verdict.Objective, error) {
	if text == "" {
		return nil, nil
	}
	var out []verdict.Objective
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, usage("--slo %q: write KEY=TIME, as in ttft_p99=500ms", part)
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
			return nil, usage("--slo: %s is given twice", one.Name)
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
	near := suggested(key, names...)
	if near == "" {
		near = "; it is ttft, itl, tpot or e2e with _p50, _p90, _p95, _p99 or _mean"
	}
	return usage("--slo: there is no %q%s", key, near)
}

// parseLimit reads the time of an objective, in seconds.
func parseLimit(key, value string) (float64, error) {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return 0, usage("--slo %s=%s has no unit, and seconds and milliseconds are both usual: write %s=%sms or %s=%ss", key, value, key, value, key, value)
	}
	limit, err := time.ParseDuration(value)
	if err != nil {
		return 0, usage("--slo %s=%s: give a time, as in 500ms or 0.5s", key, value)
	}
	if limit <= 0 || limit > time.Hour {
		return 0, usage("--slo %s=%s: give a time above zero and up to an hour", key, value)
	}
	return limit.Seconds(), nil
}

// Bounds of the precision.
const (
	leastPrecision = 0.002
	mostPrecision  = 0.3
)

// parsePrecision reads 3%, 0.03 or 3 as 0.03: a bare number below 1 is a share,
// from 1 on it is per cent.
func parsePrecision(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) {
		return 0, usage("--precision %q: give a share, as in 3%%, 0.03 or 3", text)
	}
	if percent || v >= 1 {
		v /= 100
	}
	if v < leastPrecision || v > mostPrecision {
		return 0, usage("--precision %s is %.4g %%: give %.4g%% to %.4g%%", text, 100*v, 100*leastPrecision, 100*mostPrecision)
	}
	return v, nil
}

// parseHours reads 22:00-06:00 as times of day; both zero is always.
func parseHours(text string) (from, to time.Duration, err error) {
	if text == "" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(text, "-")
	if !ok {
		return 0, 0, usage("--hours %q: write FROM-TO, as in 22:00-06:00", text)
	}
	if from, err = timeOfDay(a); err != nil {
		return 0, 0, err
	}
	if to, err = timeOfDay(b); err != nil {
		return 0, 0, err
	}
	if from == to {
		return 0, 0, usage("--hours %s begins when it ends: leave it out for always", text)
	}
	return from, to, nil
}

// timeOfDay reads 22:00 as the time since midnight; 24:00 is the end of a day.
func timeOfDay(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	hours, minutes, ok := strings.Cut(text, ":")
	h, errH := strconv.ParseUint(hours, 10, 8)
	m, errM := strconv.ParseUint(minutes, 10, 8)
	if !ok || len(minutes) != 2 || errH != nil || errM != nil || h > 24 || m > 59 || h == 24 && m > 0 {
		return 0, usage("--hours: %q is no time of day; write it as 22:00 or 6:30", text)
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute, nil
}
