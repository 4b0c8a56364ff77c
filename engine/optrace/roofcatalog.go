package optrace

import "github.com/rooftop-dev/rooftop/catalog"

const (
	// CatalogRead is the share of what memory transfers at most that reading it reaches,
	// an assumption: STREAM reaches 77 % of it on a small arm64 (TI, SPRAD45A table 3-3,
	// copies and a triad), and reading alone, without turns of the bus, more.
	CatalogRead = 0.85
	// CatalogCoreRead is what one core reads at most, in bytes per second, however many
	// channels there are, an assumption: 38 GB/s were measured with one thread of a virtual
	// EPYC of 2026 (rooftop trace roof), and a third of that is left for faster memory.
	CatalogCoreRead = 50e9
)

// Sockets is how a target's threads lie on a machine; 0 is unknown.
type Sockets struct {
	Threads int // that compute
	Cores   int // that they may use, two threads of one core counted once
	Count   int // packages of these
}

// CatalogRoof is the roof of a CPU by its data sheet, an estimate and an upper end: every
// channel filled with the fastest memory, every core at the highest clock. It says nothing
// about fewer and more threads, so that none is advised by it.
func CatalogRoof(c *catalog.CPU, at Sockets) Roof {
	threads := max(at.Threads, 1)
	cores := threads
	if at.Cores > 0 {
		cores = min(cores, at.Cores)
	}
	r := Roof{
		Threads: threads, From: RoofCatalog,
		BytesPerSecond: min(CatalogRead*c.MemBandwidth()*float64(max(at.Count, 1)), CatalogCoreRead*float64(cores)),
		FlopsPerSecond: float64(c.FP32PerCycle) * c.MaxGHz * 1e9 * float64(cores),
		Int8PerSecond:  float64(c.INT8PerCycle) * c.MaxGHz * 1e9 * float64(cores),
	}
	if r.FlopsPerSecond > 0 {
		r.FlopsOf = "f32, " + c.Name
	}
	if r.Int8PerSecond > 0 {
		r.Int8Of = "int8, " + c.Name
	}
	return r
}
