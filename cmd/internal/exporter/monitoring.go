package exporter

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// rules are the recording rules and alerts. Their test for promtool is testdata/alerts_test.yml of the
// command.
//
//go:embed prometheus.yml
var rules string

// Rules returns a rule file for Prometheus, with the alerts on an objective for the time to first token
// unless it is nil. It fails if the objective cannot be alerted on.
func Rules(o *verdict.Objective) (string, error) {
	if o == nil {
		return rules, nil
	}
	alerts, err := objective(o)
	return rules + alerts, err
}

// boards are dashboards of Grafana 12 (schema version 42), as it imports them.
//
//go:embed boards/*.json
var boards embed.FS

// boardNames are the boards in the order in which they are named.
var boardNames = []string{"fleet", "server"}

// Boards returns the names of the boards.
func Boards() []string { return boardNames }

// Board returns a board as JSON of Grafana; ok is false if there is none of that name.
func Board(name string) (text string, ok bool) {
	if !slices.Contains(boardNames, name) {
		return "", false
	}
	b, err := boards.ReadFile("boards/" + name + ".json")
	return string(b), err == nil
}

//go:embed servicemonitor.yml
var serviceMonitors string

// Monitors returns what the Prometheus operator is to scrape, as objects of a kind: servicemonitor or
// podmonitor.
func Monitors(kind string) string {
	if kind == "podmonitor" {
		return strings.NewReplacer("ServiceMonitor", "PodMonitor", "serviceMonitor", "podMonitor", "servicemonitor", "podmonitor",
			"Services", "Pods", "endpoints:", "podMetricsEndpoints:").Replace(serviceMonitors)
	}
	return serviceMonitors
}

// ttftBounds are the buckets of vllm:time_to_first_token_seconds that a limit can be counted at, in
// seconds (vLLM v1/metrics/loggers.py, the same from 0.10 to 0.32).
var ttftBounds = [...]float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}

// burns are the rates of an error budget at which to alert, each over a long window and a short one, which
// ends the alert soon after the burning (The Site Reliability Workbook, chapter 5: 2, 5 and 10 % of the
// budget of 30 days).
var burns = [...]struct {
	rate        float64
	long, short string
	fast        bool // to be looked at now
}{{14.4, "1h", "5m", true}, {6, "6h", "30m", true}, {1, "3d", "6h", false}}

// objective returns the rules for the share of requests that get their first token within a limit.
func objective(o *verdict.Objective) (string, error) {
	budget := math.Round(1e4*(1-o.Quantile)) / 1e4
	if o.Metric != verdict.MetricTTFT || o.Quantile == 0 || burns[0].rate*budget >= 1 {
		return "", fmt.Errorf("%s: alerts support only ttft_p95 and ttft_p99, because burn rates need a small share of slow requests", o.Name)
	}
	if at, exact := slices.BinarySearch(ttftBounds[:], o.Limit); !exact {
		near := ttftBounds[max(0, at-1):min(at+1, len(ttftBounds))]
		names := make([]string, len(near))
		for i, b := range near {
			names[i] = duration(b)
		}
		return "", fmt.Errorf("%s=%s: vLLM counts first tokens only at fixed times (nearest: %s): give one of them", o.Name, duration(o.Limit), strings.Join(names, " and "))
	}
	le := strconv.FormatFloat(o.Limit, 'g', -1, 64)
	if o.Limit == math.Trunc(o.Limit) {
		le += "|" + le + ".0" // Python writes 1.0, and Go 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %g of the requests for a model get their first token within %s.\n- name: vllm-ttft-objective\n  rules:\n", o.Quantile, duration(o.Limit))
	for _, window := range [...]string{"5m", "30m", "1h", "6h", "3d"} {
		fmt.Fprintf(&b, `  - record: rooftop:ttft_slow:ratio_rate%[1]s
    expr: >-
      1 - sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_bucket{le=~"%[2]s"}[%[1]s]))
      / (sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_count[%[1]s])) > 0)
`, window, le)
	}
	for _, fast := range [...]bool{true, false} {
		var conditions []string
		for _, r := range burns {
			if r.fast == fast {
				above := strconv.FormatFloat(r.rate*budget, 'g', 4, 64)
				conditions = append(conditions, fmt.Sprintf("(rooftop:ttft_slow:ratio_rate%s > %s and rooftop:ttft_slow:ratio_rate%s > %[2]s)", r.long, above, r.short))
			}
		}
		name, severity := "VLLMTTFTBudgetBurns", "warning"
		if fast {
			name, severity = "VLLMTTFTBudgetBurnsFast", "critical"
		}
		fmt.Fprintf(&b, `  - alert: %s
    expr: >-
      %s
    labels: {severity: %s}
    annotations:
      summary: "{{ $value | humanizePercentage }} of the requests for {{ $labels.model_name }} wait longer than %s for their first token, where %g%% may"
      action: "rooftop fleet shows which of its servers are saturated or ill"
`, name, strings.Join(conditions, "\n      or "), severity, duration(o.Limit), 100*budget)
	}
	return b.String(), nil
}

// duration spells seconds as a flag takes them.
func duration(seconds float64) string {
	return time.Duration(math.Round(seconds * 1e9)).String()
}
