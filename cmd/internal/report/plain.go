package report

import (
	"io"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// WritePlain writes d as a page of text: the verdict and the one change first,
// then what it rests on. No line is wider than o.Width cells and nothing is cut
// off: long names, addresses and commands are wrapped.
func WritePlain(w io.Writer, d *engine.Diagnosis, o Options) error {
	r := &plain{page: newPage(w, o), d: d}
	if d.Target.Simulated {
		r.para(0, 2, text{r.mark(warn, "SIMULATED server:"), r.span(body, " it shows how rooftop works, not what hardware does")})
		r.blank()
	}
	r.verdict()
	r.target()
	r.headline()
	r.requestTime()
	r.distance()
	if o.Verbose {
		r.rules()
	} else {
		r.findings()
	}
	r.rejected()
	r.missing()
	if o.Verbose {
		r.facts()
		if !o.Classic {
			r.classic()
		}
		r.physical()
		r.measured()
		r.devices()
	}
	r.footer()
	return r.flush()
}

// plain is one diagnosis on its way to a page.
type plain struct {
	*page
	d *engine.Diagnosis
}

// Columns of the page.
const (
	indent      = 2
	valueColumn = 10 // where text after a short label starts
)

// field writes "label  text" with the text wrapped in its column.
func (r *plain) field(label string, t text) {
	r.define(indent, valueColumn, r.text(muted, label), t)
}

// value returns a measured quantity by name.
func (r *plain) value(name string) engine.Quantity { return finiteQuantity(r.d.Quantity(name)) }

// est is the mark of an estimate, "" for what was measured.
func est(o engine.Origin) string {
	if o == engine.Estimate {
		return "(est)"
	}
	return ""
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figure.Whole(float64(n)) + " " + what + "s"
}

// footer says where more is.
func (r *plain) footer() {
	r.blank()
	more := "-v shows every rule, fact and figure with its origin"
	if r.o.Verbose {
		more = "--json has the same as a document"
	}
	if rec := r.d.Recommendation; rec != nil {
		// A report is longer than a small screen: the answer stands at both ends.
		r.para(0, 2, slices.Concat(text{r.span(strong, "do ")}, r.action(rec)))
		more = "rooftop explain " + string(rec.Finding) + ": how it is judged; " + more
	}
	r.para(0, 0, r.text(muted, more))
}
