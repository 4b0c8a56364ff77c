package report

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// WriteRoof writes what a machine can do with each number of threads that was measured.
// path is where that is kept for traces, "" nowhere.
func WriteRoof(w io.Writer, cpu string, cpus int, r optrace.Roof, path string, o Options) error {
	p := newPage(w, o)
	if cpu == "" {
		cpu = "this machine"
	}
	p.title(cpu, plural(cpus, "CPU")+", "+r.From)
	t := &table{}
	t.add(p.heads("threads", "GB/s", "GFLOP/s", "int8 GOP/s", "")...)
	points := r.ByThreads
	if len(points) == 0 {
		points = []optrace.RoofPoint{{Threads: r.Threads, BytesPerSecond: r.BytesPerSecond, FlopsPerSecond: r.FlopsPerSecond, Int8PerSecond: r.Int8PerSecond}}
	}
	for _, n := range points {
		cells := []cell{{t: p.text(strong, figure.Count(float64(n.Threads))), right: true}}
		for _, v := range []float64{n.BytesPerSecond, n.FlopsPerSecond, n.Int8PerSecond} {
			rate := stat.None
			if v > 0 {
				rate = stat.Some(v)
			}
			cells = append(cells, cell{t: p.text(body, inBillions(rate)), right: true})
		}
		t.add(append(cells, cell{})...)
	}
	p.table(indent, t)
	p.blank()
	p.para(indent, indent+2, p.text(muted, "operations of "+orNone(r.FlopsOf)+"; "+orNone(r.Int8Of)))
	if path != "" {
		p.para(indent, indent+2, p.text(muted, "kept in "+path+": traces on this machine are judged by it"))
	}
	return p.flush()
}

// orNone is what was measured, or that nothing was.
func orNone(of string) string {
	if of == "" {
		return absent + " not measured on this CPU"
	}
	return of
}
