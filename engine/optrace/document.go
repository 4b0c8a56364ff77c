package optrace

import "math"

// Document returns the observer with null in place of values that were not measured.
func (o Observer) Document() any {
	type document Observer
	d := document(o)
	if o.Windows == 0 {
		d.Measured, d.MeasuredLow, d.MeasuredHigh = math.NaN(), math.NaN(), math.NaN()
	}
	if !o.Reader.OK {
		d.ReaderTime = -1
	}
	return d
}

// Document returns the coverage with null in place of values that were not traced.
func (c Coverage) Document() any {
	type document Coverage
	d := document(c)
	if !c.SawGraphs() {
		d.Graphs, d.Partial = -1, -1
	}
	if c.Calls == 0 && c.Graphs > 0 {
		d.Calls = -1
	}
	return d
}
