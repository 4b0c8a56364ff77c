package report

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// WriteTraceHead writes what a trace came to, as the first lines of [WriteTrace] say it:
// for who has seen the rest on the screen.
func WriteTraceHead(w io.Writer, s *optrace.Summary, o Options) error {
	r := &tracePage{page: newPage(w, o), s: s}
	r.subject()
	r.answer()
	if s.Coverage.Graphs > 0 || s.Coverage.Calls > 0 {
		r.glance()
	}
	return r.flush()
}
