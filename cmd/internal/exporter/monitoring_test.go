package exporter

import (
	"encoding/json"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func ttft(quantile, limit float64) *verdict.Objective {
	return &verdict.Objective{Name: "ttft_" + verdict.QuantileName(quantile), Metric: verdict.MetricTTFT, Quantile: quantile, Limit: limit}
}

// The limits of an objective are those of the workbook for its budget.
func TestObjective(t *testing.T) {
	text, err := Rules(ttft(0.99, 0.5))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{le=~"0.5"}[3d]`, "rooftop:ttft_slow:ratio_rate1h > 0.144 and rooftop:ttft_slow:ratio_rate5m > 0.144", "rooftop:ttft_slow:ratio_rate6h > 0.06 and rooftop:ttft_slow:ratio_rate30m > 0.06",
		"rooftop:ttft_slow:ratio_rate3d > 0.01 and rooftop:ttft_slow:ratio_rate6h > 0.01", "wait longer than 500ms for their first token, where 1% may",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var file struct{ Groups []struct{ Name string } }
	if err := yaml.Unmarshal([]byte(text), &file); err != nil || len(file.Groups) != 3 {
		t.Errorf("%d groups, want 3: %v", len(file.Groups), err)
	}
	for _, c := range []struct {
		o    *verdict.Objective
		says string
	}{
		{ttft(0.9, 1), "alerts support only ttft_p95 and ttft_p99"}, // 14.4 times 10 % is more than all
		{ttft(0, 1), "alerts support only ttft_p95 and ttft_p99"},
		{&verdict.Objective{Name: "itl_p99", Metric: verdict.MetricITL, Quantile: 0.99, Limit: 0.1}, "alerts support only ttft_p95 and ttft_p99"},
		{ttft(0.95, 1.5), "nearest: 1s and 2.5s"},
		{ttft(0.95, 3600), "nearest: 42m40s"},
		{ttft(0.95, 0.0001), "nearest: 1ms"},
	} {
		if _, err := Rules(c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s=%g: error %v, want %q", c.o.Name, c.o.Limit, err, c.says)
		}
	}
}

// gridWidth is the width of Grafana's grid in cells.
const gridWidth = 24

// The panels of a board have distinct ids and do not overlap, and each query uses only the board's variables.
func TestBoards(t *testing.T) {
	for _, name := range Boards() {
		text, ok := Board(name)
		if !ok {
			t.Fatalf("no board %s", name)
		}
		var b struct {
			UID        string
			Templating struct{ List []struct{ Name string } }
			Panels     []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		known := []string{"$__rate_interval", ""}
		for _, v := range b.Templating.List {
			known = append(known, "$"+v.Name, "")
		}
		taken := map[[2]int]string{}
		ids := map[int]bool{}
		for _, p := range b.Panels {
			if ids[p.ID] || len(p.Targets) == 0 {
				t.Errorf("%s: %s has no id of its own, or no query", name, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= gridWidth {
						t.Fatalf("%s: %s lies on %q", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			for _, q := range p.Targets {
				if rest := strings.NewReplacer(known...).Replace(q.Expr); strings.Contains(rest, "$") {
					t.Errorf("%s: %s has an unknown variable: %s", name, p.Title, q.Expr)
				}
			}
		}
		if b.UID != "rooftop-"+name || len(b.Panels) < 10 {
			t.Errorf("%s: uid %s, %d panels", name, b.UID, len(b.Panels))
		}
	}
}

// Each object selects pods or services by the fields of its kind.
func TestMonitors(t *testing.T) {
	for kind, want := range map[string]string{"servicemonitor": "ServiceMonitor endpoints", "podmonitor": "PodMonitor podMetricsEndpoints"} {
		d := yaml.NewDecoder(strings.NewReader(Monitors(kind)))
		for n := range 2 {
			var o struct {
				Kind string
				Spec map[string]any
			}
			if err := d.Decode(&o); err != nil {
				t.Fatalf("%s: object %d: %v", kind, n, err)
			}
			name, field, _ := strings.Cut(want, " ")
			if o.Kind != name || o.Spec[field] == nil || len(o.Spec) != 2 {
				t.Errorf("%s: %+v, want %s", kind, o, want)
			}
		}
	}
}
