package optrace

import "github.com/rooftop-dev/rooftop/catalog"

const (
	// CatalogRead is the assumed share of the memory's transfer rate that reading reaches:
	// STREAM reaches 77 % of it on a small arm64 (TI, SPRAD45A table 3-3, copies and a triad),
	// and reading alone, without turnarounds of the bus, more.
	CatalogRead = 0.85
	// CatalogCoreRead is the assumed maximum that one core reads, in bytes per second, whatever
	// the number of channels: 38 GB/s were measured with one thread of a virtual EPYC of 2026
	// with vector loads, plus a third for faster memory.
	CatalogCoreRead = 50e9
)

// Sockets is how a target's compute threads are placed on a machine; 0 is unknown.
type Sockets struct {
	Threads int // number of compute threads
	Cores   int // cores that they may use, two hardware threads of one core counted once
	Count   int // CPU packages of these cores
}

// CatalogPeak returns the peak of a CPU by its data sheet, an estimate and upper bound: every
// channel has the fastest memory, every core runs at its highest clock.
func CatalogPeak(c *catalog.CPU, at Sockets) Peak {
	threads := max(at.Threads, 1)
	cores := threads
	if at.Cores > 0 {
		cores = min(cores, at.Cores)
	}
	r := Peak{
		Threads: threads, From: PeakCatalog,
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
