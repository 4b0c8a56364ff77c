package optrace

// Analyze is the summary of a recording: every figure again from its events.
func Analyze(r *Recording) *Summary {
	tables := r.Tables
	if tables == nil {
		tables = &Tables{}
	}
	t := NewTally(tables)
	a := NewAssembler(tables, t)
	for _, e := range r.Events {
		a.Push(e)
	}
	a.Flush(r.End)
	partial, lost := a.Dropped()
	return t.Summary(Settings{
		Target: r.Target, Roof: r.Roof, Observer: r.Observer, Gaps: r.Gaps, Begin: r.Begin, Span: span(r.Begin, r.End), Detail: r.Detail,
		Events: int64(len(r.Events)), Dropped: max(r.Dropped, lost), LeftOut: r.LeftOut, Partial: partial, Cut: a.Cut(),
		Processes: r.Processes, Reader: r.Reader, HostLoad: r.HostLoad,
	})
}
