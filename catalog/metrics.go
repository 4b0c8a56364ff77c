package catalog

import (
	"maps"
	"slices"
)

// MetricKind is the type of a metric family.
type MetricKind string

// Kinds of metric families.
const (
	KindGauge     MetricKind = "gauge"
	KindCounter   MetricKind = "counter"
	KindHistogram MetricKind = "histogram"
)

// Metric is one reading of a vLLM page and the names it has had.
type Metric struct {
	Key  string     `yaml:"key"` // stable name: "running", "ttft"
	Kind MetricKind `yaml:"kind"`
	// Names are the wire names without the "vllm:" prefix, best first. Several
	// may be on one page and are never added together.
	Names []string `yaml:"names"`
	// Labels are what a series must carry to be this metric, where a family
	// holds several.
	Labels  map[string]string `yaml:"labels,omitempty"`
	Unit    string            `yaml:"unit"` // requests, tokens, seconds, ratio (0..1), …
	Meaning string            `yaml:"meaning"`
	// Note says how a later name differs in meaning from the first.
	Note  string `yaml:"note,omitempty"`
	Since string `yaml:"since,omitempty"` // first release with any of the names, "" from the first
	Until string `yaml:"until,omitempty"` // last release with any of the names, "" to the newest
}

// Metrics returns every metric that rooftop reads, gauges, counters and
// histograms in this order.
func (c *Catalog) Metrics() []Metric {
	out := slices.Clone(c.metrics())
	for i := range out {
		out[i].Names = slices.Clone(out[i].Names)
		out[i].Labels = maps.Clone(out[i].Labels)
	}
	return out
}
