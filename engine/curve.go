package engine

import "github.com/rooftop-dev/rooftop/engine/stat"

// Curve is throughput against running requests, of the whole server: what the
// physical model says of this hardware at the measured context and prefill mix.
type Curve struct {
	Points []CurvePoint // by rising Running
	// Seats and Pool are how many requests the seats and the KV pool let run, of
	// all ranks; absent where not known.
	Seats, Pool stat.Opt
	// Ridge is the number of running requests at which a step turns from memory to
	// compute bound.
	Ridge stat.Opt
	// Now is the measured point.
	Now CurvePoint
}

// CurvePoint is one point of a curve, in output tokens per second.
type CurvePoint struct {
	Running    float64
	Expected   float64  // the model, calibrated on this server; of Now: measured
	Achievable stat.Opt // what good software reaches on this hardware
	Ideal      stat.Opt // what physics allows
}
