package optrace

// Where a roof is from, as [Roof.From].
const (
	// RoofMeasured: on the machine, while nothing else computed.
	RoofMeasured = "measured"
	// RoofPlain: measured on a CPU whose vector instructions rooftop has no loops for.
	// Its rate of bytes is a little low, rates of operations are not known.
	RoofPlain = "measured without vector instructions"
	// RoofDisturbed: measured while others had the CPUs. Its rates are too low: they tell
	// memory from computing, and no share is of them.
	RoofDisturbed = "measured beside other load"
	// RoofCatalog: reckoned from the data sheet of the CPU.
	RoofCatalog = "catalog (est)"
	// RoofSeen: the best that products with weights reached in the trace itself, while
	// their lanes kept their CPUs where scheduling was traced: a lower bound. It classifies
	// operators and is no ceiling of them. It never falls while a trace goes on.
	RoofSeen = "seen"
)

// Known says that the roof is one to compare with. The best that the trace itself
// reached is not: everything is near its own best. Neither is one that was measured
// beside other load.
func (r Roof) Known() bool {
	return r.BytesPerSecond > 0 && (r.From == RoofMeasured || r.From == RoofPlain || r.From == RoofCatalog)
}

// Computing is the rate of operations that a product with weights of a type is held
// against, and whether that is the rate of eight-bit integers; 0 where it is not known.
// It is the rate of f32, for quantised weights too, of which GGML multiplies eight-bit
// integers (ggml-cpu.c, vec_dot_type): around each of these instructions a kernel unpacks
// weights, converts scales and adds up blocks. With q8_0 it reached 75 G operations a
// second on one thread of a CPU that does 240 G on f32 and 960 G on bare integers (node-
// llama-cpp 3.22.1, Zen 5, measured), so that a share of the bare rate says nothing of
// what there is to gain, and a prompt of 16 tokens that does nothing but compute would be
// bound by memory. Kernels on rearranged weights, and AMX, do pass the rate of f32: what
// reached more is held against the rate of integers.
func (r Roof) Computing(weights string, reached float64) (rate float64, int8 bool) {
	if Quantised(weights) && r.Int8PerSecond > 0 && reached > r.FlopsPerSecond {
		return r.Int8PerSecond, true
	}
	if Quantised(weights) && r.FlopsPerSecond <= 0 {
		return r.Int8PerSecond, r.Int8PerSecond > 0
	}
	return r.FlopsPerSecond, false
}

// Origin is From in words, with the day of a measurement that was made before the trace.
func (r Roof) Origin() string {
	if r.MeasuredOn == "" {
		return r.From
	}
	return r.From + " " + r.MeasuredOn + " on this machine"
}

// Point is the roof with so many threads, false where it is not known. Between two
// numbers of threads that were measured it is taken to lie on a line.
func (r Roof) Point(threads int) (RoofPoint, bool) {
	if !r.Known() || threads < 1 {
		return RoofPoint{}, false
	}
	if r.Threads == threads || r.Threads == 0 {
		return RoofPoint{Threads: threads, BytesPerSecond: r.BytesPerSecond, FlopsPerSecond: r.FlopsPerSecond, Int8PerSecond: r.Int8PerSecond}, true
	}
	var before RoofPoint
	for _, p := range r.ByThreads {
		switch {
		case p.BytesPerSecond <= 0:
		case p.Threads == threads:
			return p, true
		case p.Threads < threads:
			before = p
		case before.Threads > 0:
			return between(before, p, threads), true
		}
	}
	return RoofPoint{}, false
}

// between is a point on the line between two.
func between(a, b RoofPoint, n int) RoofPoint {
	share := float64(n-a.Threads) / float64(b.Threads-a.Threads)
	mix := func(x, y float64) float64 {
		if x <= 0 || y <= 0 {
			return 0
		}
		return x + share*(y-x)
	}
	return RoofPoint{Threads: n, BytesPerSecond: mix(a.BytesPerSecond, b.BytesPerSecond), FlopsPerSecond: mix(a.FlopsPerSecond, b.FlopsPerSecond), Int8PerSecond: mix(a.Int8PerSecond, b.Int8PerSecond)}
}

// With is the roof for another number of threads: those that a later trace found. False
// says that it was not measured with as many. 0 threads are as many as it is of.
func (r Roof) With(threads int) (Roof, bool) {
	if threads == 0 {
		return r, r.Known()
	}
	p, ok := r.Point(threads)
	if !ok {
		return Roof{}, false
	}
	r.Threads, r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond = threads, p.BytesPerSecond, p.FlopsPerSecond, p.Int8PerSecond
	return r, true
}
