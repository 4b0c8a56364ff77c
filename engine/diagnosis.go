package engine

import (
	"cmp"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Outcome is the result of a diagnosis in one word.
type Outcome string

// Outcomes of a diagnosis.
const (
	OutcomeRecommendation Outcome = "recommendation"
	OutcomeHealthy        Outcome = "healthy"
	OutcomeNoLoad         Outcome = "no-load"
	OutcomeNotEvaluable   Outcome = "not-evaluable"
	OutcomeUnhealthy      Outcome = "unhealthy" // the server is ill; Diagnosis.Condition says how
)

// Origin says how a quantity was obtained.
type Origin string

// Origins of quantities.
const (
	Measured Origin = "measured"
	Derived  Origin = "derived"
	Estimate Origin = "est"
)

// Quantity is one measured or derived number of a diagnosis. Reason states why it is absent.
type Quantity struct {
	Value  stat.Opt `json:"value"`
	Unit   string   `json:"unit"`
	Source Origin   `json:"source"`
	// AtLeast marks the value as a lower bound: the quantile lies above the page's last bucket.
	AtLeast bool   `json:"at_least,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Note    string `json:"note,omitempty"`
	// Bucket has the bounds of the histogram bucket of a quantile, in the unit of Value; zero if the value
	// comes from no bucket.
	Bucket stat.Bucket `json:"bounds,omitzero"`
}

// A mean that does not cover all requests of the run has a note that begins with the requests that it covers.
const (
	sinceStart = "since start"
	ofEnded    = "of those that ended"
	ofBefore   = "mostly before the run"
)

// Scope returns which requests a mean covers if it does not cover all of the run, else "".
func (q Quantity) Scope() string {
	for _, scope := range [...]string{sinceStart, ofEnded, ofBefore} {
		if strings.HasPrefix(q.Note, scope) {
			return scope
		}
	}
	return ""
}

// Lifetime reports whether the value covers the time since the server started, not the run.
func (q Quantity) Lifetime() bool { return strings.HasPrefix(q.Note, sinceStart) }

// Finite returns q, or an absent quantity with a reason if its value is not finite.
func (q Quantity) Finite() Quantity {
	switch v := q.Value.Finite(); {
	case v.OK:
		q.Reason = ""
	case q.Value.OK:
		q.Value, q.AtLeast, q.Reason = v, false, "not a finite number"
	default:
		q.AtLeast, q.Reason = false, cmp.Or(q.Reason, "not measured")
	}
	return q
}

// NamedQuantity is a quantity with its stable name (docs/interfaces.md section 3).
type NamedQuantity struct {
	Name string
	Quantity
}

// Missing is an unavailable source or reading, and what rooftop cannot do without it.
type Missing struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
	Effect string `json:"effect"`
}

// WithoutLaunch is the effect of a launch command that could not be read.
const WithoutLaunch = "flags come from the page, from rooftop's own flags, or are the engine's defaults"

// Target is the diagnosed server.
type Target struct {
	URL           string `json:"url"`
	Engine        string `json:"engine"`
	EngineVersion string `json:"engine_version"`
	Model         string `json:"model"`
	Simulated     bool   `json:"simulated"`
}

// WindowCounts is the number of windows of a run, and how many of them count.
type WindowCounts struct {
	Collected int `json:"collected"`
	Evaluable int `json:"evaluable"` // the endpoint returned valid data
	Active    int `json:"active"`    // evaluable, and the server was working, the middle of long steps included
}

// Ceiling is the hardware's limit at the measured operating point, by the PROFILE formulas and
// by the physical model.
type Ceiling struct {
	Classic  *roofline.Classic
	Physical *roofline.Operating
	// Reasons for absence.
	ClassicReason  string
	PhysicalReason string
	// Impossible states that the measured rate exceeds the ideal ceiling, so model, GPU, dtype
	// or TP was misread; "" otherwise.
	Impossible string
}

// GPUSummary summarizes one device over a run.
type GPUSummary struct {
	Index      int
	Name       string
	UUID       string
	Last       [NumGPUFields]stat.Opt // last poll of the last evaluable window
	Mean       [NumGPUFields]stat.Opt // time-weighted over active windows
	Peak       [NumGPUFields]stat.Opt // maximum over all polls of evaluable windows
	Throttle   uint64                 // union of the reasons of all polls
	ThrottleOK bool
}

// Diagnosis is the complete result for one run.
type Diagnosis struct {
	Started  time.Time
	Duration time.Duration
	Version  string // of rooftop

	Target   Target
	Facts    Facts
	Windows  WindowCounts
	Measured []NamedQuantity // in the order of docs/interfaces.md section 3
	Ceiling  Ceiling
	// Curve is nil if the physical model has no basis; Ceiling has the reason.
	Curve          *Curve
	Headroom       Headroom
	Findings       []Finding // ranked: fired and significant first, by score
	Recommendation *Recommendation
	// Runners are the best findings of the other groups, in rank order.
	Runners []FindingID
	Outcome Outcome
	// Condition is what was wrong with the server at the end of the run. While it is ill there
	// is no recommendation.
	Condition Condition
	// Doubt states what an outcome without a recommendation leaves open: why nothing could be
	// judged, or what "healthy" does not cover. "" if nothing.
	Doubt string
	// Overload says that requests queue, and why, if no change of this server is known to help; "" otherwise. The
	// outcome is healthy then: there is nothing to change.
	Overload string
	GPUs     []GPUSummary
	Missing  []Missing
	Notes    []string // what a reader needs to know: interrupted, missed polls, mixed models
	// Performance is the calibrated model of one replica, nil if it has no basis.
	Performance *roofline.Performance
	Ranks       int // measured replicas, at least 1
	// LastRaw is the last raw window. It is set only if no window was evaluable.
	LastRaw *Window
}

// Quantity returns the measured quantity with the given name, absent if there is none.
func (d *Diagnosis) Quantity(name string) Quantity {
	for _, q := range d.Measured {
		if q.Name == name {
			return q.Quantity
		}
	}
	return Quantity{Reason: "not measured"}
}
