package tracing

import (
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// peakNext is the next step to get a machine peak.
const peakNext = "--catalog FILE with the CPU's data sheet"

// peakOf returns the peak that a trace is compared with, that of the CPU's data sheet. Without it
// the best rate in the trace itself is used, and a gap says why.
func (o *Options) peakOf(threads int) (optrace.Peak, []optrace.Gap) {
	here, err := o.machine()
	if err != nil {
		return optrace.Peak{}, []optrace.Gap{{What: "a machine peak by the CPU's data sheet", Why: err.Error(), Next: peakNext}}
	}
	return o.catalogPeak(here.cpu, optrace.Sockets{Threads: threads, Cores: here.cores, Count: here.sockets})
}

// catalogPeak returns the peak from the data sheet of a CPU. A gap says why there is none.
func (o *Options) catalogPeak(cpu string, at optrace.Sockets) (optrace.Peak, []optrace.Gap) {
	c, err := o.catalog.FindCPU(cpu)
	if err != nil {
		return optrace.Peak{}, []optrace.Gap{{What: "a machine peak by the CPU's data sheet", Why: err.Error(), Next: peakNext}}
	}
	return optrace.CatalogPeak(&c, at), nil
}

// applyCatalog judges a recording by the catalog of --catalog, unless its own peak was measured.
func (o *Options) applyCatalog(r *optrace.Recording) {
	if o.catalogFile == "" || r.Peak.Known() && r.Peak.From != optrace.PeakCatalog {
		return
	}
	threads := 0
	for i := range r.Events {
		threads = max(threads, int(r.Events[i].Threads))
	}
	judged, gaps := o.catalogPeak(r.Target.CPU, optrace.Sockets{Threads: threads})
	if r.Gaps = append(r.Gaps, gaps...); judged.Known() {
		r.Peak = judged
	}
}
