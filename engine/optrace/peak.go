package optrace

// Values of [Peak.From]: the origin of a peak.
const (
	// PeakMeasured is a measurement on the machine while nothing else computed.
	PeakMeasured = "measured"
	// PeakPlain is a measurement on a CPU whose vector instructions rooftop has no loops for.
	// Its memory rate is a little low, and rates of operations are unknown.
	PeakPlain = "measured without vector instructions"
	// PeakDisturbed is a measurement while other processes had the CPUs. Its rates are too low:
	// they separate memory from computing, but no share of them is shown.
	PeakDisturbed = "measured beside other load"
	// PeakCatalog is an estimate from the data sheet of the CPU.
	PeakCatalog = "catalog (est)"
	// PeakSeen is the best that products with weights reached in the trace itself, while their
	// threads kept their CPUs if scheduling was traced: a lower bound. It classifies operators
	// and is no ceiling for them. It never falls during a trace.
	PeakSeen = "seen"
)

// Known reports whether figures can be compared with the peak. PeakSeen is excluded, since
// every operator is near its own best, and so is PeakDisturbed.
func (r Peak) Known() bool {
	return r.BytesPerSecond > 0 && (r.From == PeakMeasured || r.From == PeakPlain || r.From == PeakCatalog)
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

// Origin describes From, with the day of a measurement that was made before the trace.
func (r Peak) Origin() string {
	if r.MeasuredOn == "" {
		return r.From
	}
	return r.From + " " + r.MeasuredOn + " on this machine"
}

// Point returns the peak with the given number of threads, false if it is unknown. Between two
// measured numbers of threads it is interpolated linearly.
func (r Peak) Point(threads int) (PeakPoint, bool) {
	if !r.Known() || threads < 1 {
		return PeakPoint{}, false
	}
	if r.Threads == threads || r.Threads == 0 {
		return PeakPoint{Threads: threads, BytesPerSecond: r.BytesPerSecond, FlopsPerSecond: r.FlopsPerSecond, Int8PerSecond: r.Int8PerSecond}, true
	}
	var before PeakPoint
	for _, p := range r.ByThreads {
		switch {
		case p.BytesPerSecond <= 0:
		case p.Threads == threads:
			return p, true
		case p.Threads < threads:
			before = p
		case before.Threads > 0:
			return interpolate(before, p, threads), true
		}
	}
	return PeakPoint{}, false
}

// interpolate returns the point for n threads on the line between a and b.
func interpolate(a, b PeakPoint, n int) PeakPoint {
	share := float64(n-a.Threads) / float64(b.Threads-a.Threads)
	mix := func(x, y float64) float64 {
		if x <= 0 || y <= 0 {
			return 0
		}
		return x + share*(y-x)
	}
	return PeakPoint{Threads: n, BytesPerSecond: mix(a.BytesPerSecond, b.BytesPerSecond), FlopsPerSecond: mix(a.FlopsPerSecond, b.FlopsPerSecond), Int8PerSecond: mix(a.Int8PerSecond, b.Int8PerSecond)}
}

// WithThreads returns the peak for another number of threads, which a later trace found; 0
// keeps the number. It returns false if the peak for that number is unknown.
func (r Peak) WithThreads(threads int) (Peak, bool) {
	if threads == 0 {
		return r, r.Known()
	}
	p, ok := r.Point(threads)
	if !ok {
		return Peak{}, false
	}
	r.Threads, r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond = threads, p.BytesPerSecond, p.FlopsPerSecond, p.Int8PerSecond
	return r, true
}
