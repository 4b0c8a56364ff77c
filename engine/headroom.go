package engine

import (
	"cmp"
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Headroom is how many more requests of the measured kind a server takes before they wait, by the physical model
// calibrated on the measured point.
type Headroom struct {
	// Low, Mid and High are further requests a second, with their 80 % range.
	Low  stat.Opt `json:"low"`
	Mid  stat.Opt `json:"mid"`
	High stat.Opt `json:"high"`
	// Running are the requests that run then.
	Running stat.Opt      `json:"running"`
	Limit   HeadroomLimit `json:"limit" absent:""`
	// Reason is why it is unknown or none, "" otherwise.
	Reason string `json:"reason" absent:""`
}

// HeadroomLimit is what is full when requests begin to wait.
type HeadroomLimit string

// Limits of further requests.
const (
	LimitSlots  HeadroomLimit = "slots"
	LimitPool   HeadroomLimit = "KV pool"
	LimitOutput HeadroomLimit = "output" // a larger batch generates no more
)

// widestHeadroom is the ratio of the two ends of the whole rate beyond which a headroom says nothing.
const widestHeadroom = 2.5

// headroom returns the headroom of a run.
func headroom(r *Run, load bool) Headroom {
	requests := r.Agg.Rate[CounterRequestSuccess]
	switch {
	case !load:
		return Headroom{Reason: "no load"}
	case r.Condition.Ill():
		return Headroom{Reason: "the server is ill"}
	case r.Perf == nil:
		return Headroom{Reason: cmp.Or(r.PerfReason, "no physical model")}
	case requests.Or(0) <= 0:
		return Headroom{Reason: "no request was finished"}
	}
	span, batch, why := r.Perf.Headroom()
	h := Headroom{Low: span.Low.Times(requests.V), Mid: span.Mid.Times(requests.V), High: span.High.Times(requests.V), Reason: why}
	if !h.Mid.OK {
		return h
	}
	if (1+span.High.V)/(1+span.Low.V) > widestHeadroom {
		return Headroom{Reason: "the range is too wide: measure at a load nearer to the limit"}
	}
	ranks, m := float64(max(1, r.Agg.Ranks)), &r.Perf.Measured
	h.Running = stat.Some(batch * ranks)
	pool := m.KVCapacity.Div(m.Resident)
	switch full := 1 - 1/math.Max(2, 2*batch); {
	case m.MaxNumSeqs.OK && batch >= full*m.MaxNumSeqs.V:
		h.Limit = LimitSlots
	case pool.OK && batch >= full*pool.V:
		h.Limit = LimitPool
	default:
		h.Limit = LimitOutput
	}
	return h
}
