package report

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine"
)

// Formatter writes one diagnosis in one format.
type Formatter interface {
	Format(w io.Writer, d *engine.Diagnosis) error
}

// JSON formats a diagnosis as the document rooftop.diagnosis/v1.
type JSON struct{}

// Format implements Formatter.
func (JSON) Format(w io.Writer, d *engine.Diagnosis) error { return WriteJSON(w, d) }

// Plain formats a diagnosis as text for a person.
type Plain struct{ Options }

// Format implements Formatter.
func (p Plain) Format(w io.Writer, d *engine.Diagnosis) error { return WritePlain(w, d, p.Options) }

// Options says how plain text is drawn.
type Options struct {
	Width   int  // cells of a line; 0 is 80, less than 40 is 40, text stops growing at 120
	Color   bool // SGR colours; the words are the same without
	ASCII   bool // seven-bit output
	Verbose bool // every rule, fact, quantity and device
	Classic bool // the documented ceilings instead of the physical ones
}

// Bounds of a page's width in cells.
const (
	minWidth     = 40
	defaultWidth = 80
	maxWidth     = 120
)

func (o Options) width() int {
	if o.Width <= 0 {
		return defaultWidth
	}
	return min(max(o.Width, minWidth), maxWidth)
}
