package vllmsim

import "strconv"

// buildMultiprocess returns the layout of the page of several API servers, which prometheus_client collects
// from the files of the processes (multiprocess.py): families are ordered by the kinds of the files, a
// histogram begins with its sum, and there are no _created series and no process families. A family without
// a series is absent.
func (b *Book) buildMultiprocess() layout {
	w := &builder{}
	each := func(wanted func(f *family) bool, write func(f *family)) {
		for i := range families() {
			f := &families()[i]
			if b.settings.LogStats && inBounds(b.release, f.Since, f.Until) && wanted(f) {
				write(f)
			}
		}
	}
	each(func(f *family) bool { return f.Kind == histo }, func(f *family) { b.multiprocessFamily(w, f) })
	each(func(f *family) bool { return f.Kind == gauge && b.release <= f.PerProcess }, func(f *family) { b.perProcess(w, f) })
	each(func(f *family) bool { return f.Kind == gauge && b.release > f.PerProcess }, func(f *family) { b.latest(w, f) })
	if b.settings.LogStats {
		if len(b.adapters) > 0 {
			b.lora(w)
		}
		b.cacheConfig(w)
	}
	each(func(f *family) bool { return f.Kind == counter }, func(f *family) { b.multiprocessFamily(w, f) })
	if len(b.requests) > 0 {
		b.writeRequests(w)
	}
	b.simulated(w)
	return w.layout()
}

// multiprocessFamily writes a counter, or a histogram that begins with its sum.
func (b *Book) multiprocessFamily(w *builder, f *family) {
	w.head(f.wire(), f.Help, f.Kind)
	b.samples(w, f, true)
}

// latest writes a gauge that shows the latest value set by any process; it is absent before the first. Those
// of the sleep state are set at start.
func (b *Book) latest(w *builder, f *family) {
	w.head(f.Name, f.Help, gauge)
	b.each(f, func(engine int, c cell, labels []label) {
		if b.ranks[engine].seen || f.Label == "sleep_state" {
			w.sample(&b.ranks[engine].cells[c], formValue, f.Name, labels...)
		}
	})
}

// firstPID is the PID of the first API server.
const firstPID = 271

// perProcess writes a gauge once per API server. An engine reports its state to one of them; the others show
// 0 (vLLM PR 28792).
func (b *Book) perProcess(w *builder, f *family) {
	w.head(f.Name, f.Help, gauge)
	for server := range b.settings.APIServers {
		pid := label{"pid", strconv.Itoa(firstPID + server)}
		b.each(f, func(engine int, c cell, labels []label) {
			if server != engine%b.settings.APIServers {
				c = cellZero
			}
			w.sample(&b.ranks[engine].cells[c], formValue, f.Name, append(labels, pid)...)
		})
	}
}
