// Package tally sums up recorded graphs to the figures of a trace, within bounded memory.
package tally

import (
	"github.com/rooftop-dev/rooftop/engine/stat"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Analyze returns the summary of a recording, computed from its events.
func Analyze(r *optrace.Recording) *optrace.Summary {
	tables := r.Tables
	if tables == nil {
		tables = &optrace.Tables{}
	}
	t := New(tables)
	a := optrace.Replay(r, tables, t)
	partial, lost := a.Dropped()
	return t.Summary(Settings{
		Target: r.Target, Peak: r.Peak, Observer: r.Observer, Gaps: r.Gaps, Begin: r.Begin, Span: stat.Elapsed(r.Begin, r.End), Detail: r.Detail,
		Events: int64(len(r.Events)), Dropped: max(r.Dropped, lost), LeftOut: r.LeftOut, Partial: partial, Cut: a.Cut(),
		Reader: r.Reader, HostLoad: r.HostLoad,
	})
}
