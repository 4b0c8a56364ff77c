package optrace

// Values of [Peak.From]: the origin of a peak.
const (
	// PeakMeasured is a measurement on the machine that a recording holds; rooftop makes none.
	PeakMeasured = "measured"
	// PeakCatalog is an estimate from the data sheet of the CPU.
	PeakCatalog = "catalog (est)"
	// PeakSeen is the best that products with weights reached in the trace itself, while their
	// threads kept their CPUs if scheduling was traced: a lower bound. It classifies operators and
	// is not a ceiling for them. It never falls during a trace.
	PeakSeen = "seen"
)

// Known reports whether figures can be compared with the peak. PeakSeen is excluded, since
// every operator is near its own best.
func (r Peak) Known() bool {
	return r.BytesPerSecond > 0 && (r.From == PeakMeasured || r.From == PeakCatalog)
}

// ComputeRate returns the rate of operations that a product with weights of the given type is
// compared with, and whether that is the rate of eight-bit integers; 0 if it is unknown. It is
// the f32 rate for quantised weights too, although GGML multiplies them as eight-bit integers
// (ggml-cpu.c, vec_dot_type): around each of these instructions a kernel unpacks weights,
// converts scales and adds up blocks. With q8_0 it reached 75 G operations per second on one
// thread of a CPU that does 240 G on f32 and 960 G on bare integers (node-llama-cpp 3.22.1, Zen
// 5, measured). A share of the bare rate would therefore not show the possible gain, and would
// call a compute-bound prompt of 16 tokens memory-bound. Kernels on rearranged weights, and
// AMX, do exceed the f32 rate: what reached more is compared with the integer rate.
func (r Peak) ComputeRate(weights string, reached float64) (rate float64, int8 bool) {
	if Quantised(weights) && r.Int8PerSecond > 0 && reached > r.FlopsPerSecond {
		return r.Int8PerSecond, true
	}
	if Quantised(weights) && r.FlopsPerSecond <= 0 {
		return r.Int8PerSecond, r.Int8PerSecond > 0
	}
	return r.FlopsPerSecond, false
}

// Point returns the peak with the given number of threads, false if it is unknown.
func (r Peak) Point(threads int) (PeakPoint, bool) {
	if !r.Known() || threads < 1 || r.Threads != threads && r.Threads != 0 {
		return PeakPoint{}, false
	}
	return PeakPoint{Threads: threads, BytesPerSecond: r.BytesPerSecond, FlopsPerSecond: r.FlopsPerSecond, Int8PerSecond: r.Int8PerSecond}, true
}
