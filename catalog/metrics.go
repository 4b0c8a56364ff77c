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

// Metric is one reading of a vLLM metrics page, with its names in all releases.
type Metric struct {
	Key  string     `yaml:"key"` // stable name: "running", "ttft"
	Kind MetricKind `yaml:"kind"`
	// Names are the names on the page without the "vllm:" prefix, preferred first. A page may
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

// Spellings are the prefixes of vLLM's families: with the colon of Prometheus, and as Ray exports
// them, without colons.
var Spellings = []string{"vllm:", "vllm_", "ray_vllm_"}

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

// Metrics returns every metric that rooftop reads: gauges, then counters, then histograms.
func (c *Catalog) Metrics() []Metric {
	out := slices.Clone(c.metrics())
	for i := range out {
		out[i].Names = slices.Clone(out[i].Names)
		out[i].Labels = maps.Clone(out[i].Labels)
	}
	return out
}
