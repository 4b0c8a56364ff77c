package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Outcome is the answer in one word.
type Outcome string

// Outcomes of a diagnosis.
const (
	OutcomeRecommendation Outcome = "recommendation"
	OutcomeHealthy        Outcome = "healthy"
	OutcomeNoLoad         Outcome = "no-load"
	OutcomeNotEvaluable   Outcome = "not-evaluable"
)

// Origin says how a quantity was obtained.
type Origin string

// Origins of quantities.
const (
	Measured Origin = "measured"
	Derived  Origin = "derived"
	Estimate Origin = "est"
)

// Quantity is one measured or derived number of a diagnosis. Reason says why
// it is absent.
type Quantity struct {
	Value  stat.Opt `json:"value"`
	Unit   string   `json:"unit"`
	Source Origin   `json:"source"`
	Reason string   `json:"reason,omitempty"`
	Note   string   `json:"note,omitempty"`
	// AtLeast says that the value is a lower limit: the quantile lies above the
	// page's last bucket.
	AtLeast bool `json:"at_least,omitempty"`
}

// NamedQuantity is a quantity under its stable name (interfaces.md section 3).
type NamedQuantity struct {
	Name string
	Quantity
}

// Missing is a source or reading that could not be had, and what that
// switches off.
type Missing struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
	Effect string `json:"effect"`
}

// Target is what was diagnosed.
type Target struct {
	URL           string `json:"url"`
	Engine        string `json:"engine"`
	EngineVersion string `json:"engine_version"`
	Model         string `json:"model"`
	Simulated     bool   `json:"simulated"`
}

// WindowCounts says how many windows a run has and how many of them count.
type WindowCounts struct {
	Collected int `json:"collected"`
	Evaluable int `json:"evaluable"` // the endpoint answered with valid data
	Active    int `json:"active"`    // and the server was doing work
}

// Ceiling is what the hardware allows at the measured operating point, by the
// documented formulas and by the physical model.
type Ceiling struct {
	Classic  *roofline.Classic
	Physical *roofline.Operating
	// Reasons for absence.
	ClassicReason  string
	PhysicalReason string
	// Impossible says that the measured rate lies above the ideal ceiling:
	// model, GPU, dtype or TP is misread. "" where it does not.
	Impossible string
}

// GPUSummary is one device over a run.
type GPUSummary struct {
	Index      int
	Name       string
	UUID       string
	Last       [NumGPUFields]stat.Opt // last evaluable window's landing value
	Mean       [NumGPUFields]stat.Opt // time-weighted over active windows
	Peak       [NumGPUFields]stat.Opt // maximum over all polls of evaluable windows
	Throttle   uint64                 // reasons seen at any poll
	ThrottleOK bool
}

// Diagnosis is the whole answer about one run.
type Diagnosis struct {
	Started  time.Time
	Duration time.Duration
	Version  string // of rooftop

	Target   Target
	Facts    Facts
	Windows  WindowCounts
	Measured []NamedQuantity // in the order of interfaces.md section 3
	Ceiling  Ceiling
	// Curve is nil where the physical model has no basis; Ceiling has the reason.
	Curve          *Curve
	Findings       []Finding // ranked: fired and significant first, by score
	Recommendation *Recommendation
	// Runners are the best of the other groups, in rank order.
	Runners []FindingID
	Outcome Outcome
	// Doubt is what an outcome without a recommendation leaves open: why nothing
	// could be judged, or what "healthy" does not cover. "" where nothing is.
	Doubt   string
	GPUs    []GPUSummary
	Missing []Missing
	Notes   []string // what else a reader must know: interrupted, starved, mixed models
	// performance is the calibrated model of one replica, nil without a basis; ranks
	// are the replicas that were measured.
	performance *roofline.Performance
	ranks       int
	// LastRaw is set where no window was evaluable: the last raw window, so marked.
	LastRaw *Window
}

// Quantity returns the measured quantity of a name; absent where unknown.
func (d *Diagnosis) Quantity(name string) Quantity {
	for _, q := range d.Measured {
		if q.Name == name {
			return q.Quantity
		}
	}
	return Quantity{Reason: "not measured"}
}
