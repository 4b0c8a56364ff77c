package catalog

import (
	"maps"
	"slices"
	"strings"
)

// MetricKind is the type of a metric family.
type MetricKind string

// Kinds of metric families.
const (
	KindGauge     MetricKind = "gauge"
	KindCounter   MetricKind = "counter"
	KindHistogram MetricKind = "histogram"
)

// Metric is one reading of an engine's metrics page, with its names in all releases.
type Metric struct {
	Key  string     `yaml:"key"` // stable name: "running", "ttft"
	Kind MetricKind `yaml:"kind"`
	// Names are the names on the page without the engine's prefix ("vllm:"), preferred first. A page may
	// have several of them; they are never added together.
	Names []string `yaml:"names"`
	// Labels are the labels that a series of this metric must have, if a family contains several
	// metrics.
	Labels  map[string]string `yaml:"labels,omitempty"`
	Unit    string            `yaml:"unit"` // requests, tokens, seconds, ratio (0..1), …
	Meaning string            `yaml:"meaning"`
	// Note is the difference in meaning between a later name and the first.
	Note  string `yaml:"note,omitempty"`
	Since string `yaml:"since,omitempty"` // first release with any of the names, "" from the first
	Until string `yaml:"until,omitempty"` // last release with any of the names, "" to the newest
}

// WireNames returns the metric's names. Those of a counter follow once more without _total, which
// some exporters (Ray among them) omit.
func (m Metric) WireNames() []string {
	names := slices.Clone(m.Names)
	if m.Kind == KindCounter {
		for _, name := range m.Names {
			if bare := strings.TrimSuffix(name, "_total"); !slices.Contains(names, bare) {
				names = append(names, bare)
			}
		}
	}
	return names
}

// Metrics returns every metric of the engine that rooftop reads: gauges, then counters, then histograms.
func (g *Engine) Metrics() []Metric {
	out := slices.Clone(g.metrics())
	for i := range out {
		out[i].Names = slices.Clone(out[i].Names)
		out[i].Labels = maps.Clone(out[i].Labels)
	}
	return out
}
