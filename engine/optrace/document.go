package optrace

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Document returns the observer with null in place of values that were not measured.
func (o Observer) Document() any {
	type observer Observer
	d := observer(o)
	if o.Windows == 0 {
		d.Measured, d.MeasuredLow, d.MeasuredHigh = math.NaN(), math.NaN(), math.NaN()
	}
	return struct {
		observer
		ReaderTime OptTime `json:"reader_ns"`
	}{d, OptTime{D: o.ReaderTime, OK: o.Reader.OK}}
}

// Document returns the coverage with null in place of values that were not traced.
func (c Coverage) Document() any {
	type coverage Coverage
	graphs := func(n int) stat.Opt { return stat.Opt{V: float64(n), OK: c.SawGraphs()} }
	return struct {
		coverage
		Graphs  stat.Opt `json:"graphs"`
		Partial stat.Opt `json:"partial_graphs"`
		Calls   stat.Opt `json:"calls"`
	}{coverage(c), graphs(c.Graphs), graphs(c.Partial), stat.Opt{V: float64(c.Calls), OK: c.Calls > 0 || c.Graphs == 0}}
}

// Document returns the row with null for [NoThread].
func (r CriticalRow) Document() any {
	type row CriticalRow
	return struct {
		row
		Thread stat.Opt `json:"thread"`
	}{row(r), stat.Opt{V: float64(r.Thread), OK: r.Thread != NoThread}}
}
