package page

import "strconv"

// buildMultiprocess lays out the page of several API servers, which
// prometheus_client gathers from the files of the processes (multiprocess.py):
// families stand in order of the files' kinds, a histogram begins with its sum,
// and there is neither _created nor anything of a single process. A family that
// never had a series is not there.
func (b *Book) buildMultiprocess() layout {
	w := &builder{}
	var counters, perProcess, gauges, histograms []family
	if b.settings.LogStats {
		for _, f := range families() {
			switch {
			case !in(b.release, f.since, f.until):
			case f.kind == counter:
				counters = append(counters, f)
			case f.kind == histo:
				histograms = append(histograms, f)
			case b.release <= f.perProcess:
				perProcess = append(perProcess, f)
			default:
				gauges = append(gauges, f)
			}
		}
	}
	for i := range histograms {
		w.head(histograms[i].name, histograms[i].help, histo.String())
		b.samples(w, &histograms[i], true)
	}
	w.head(httpAll, helpAll, histo.String())
	w.histogram(&b.http.all, true, httpAll)
	if len(b.http.durations) > 0 {
		b.http.writeDurations(w, true)
	}
	for i := range perProcess {
		b.perProcess(w, &perProcess[i])
	}
	for i := range gauges {
		b.latest(w, &gauges[i])
	}
	if b.settings.LogStats {
		if len(b.adapters) > 0 {
			b.lora(w)
		}
		b.cacheConfig(w)
	}
	if len(b.http.sent) > 0 {
		writeSizes(w, b.http.sent, httpSent, helpSent)
		writeSizes(w, b.http.answered, httpAnswered, helpAnswered)
	}
	for i := range counters {
		w.head(counters[i].wire(), counters[i].help, counter.String())
		b.samples(w, &counters[i], true)
	}
	if len(b.http.requests) > 0 {
		b.http.writeRequests(w)
	}
	b.simulated(w)
	return w.layout()
}

// latest writes a gauge that shows the newest value any process set: none before
// the first. Those of the sleep state are set at start.
func (b *Book) latest(w *builder, f *family) {
	w.head(f.name, f.help, gauge.String())
	b.each(f, func(engine int, c cell, labels []label) {
		if b.ranks[engine].seen || f.label == "sleep_state" {
			w.sample(&b.ranks[engine].cells[c], formValue, f.name, labels...)
		}
	})
}

// firstPID is the process number of the first API server.
const firstPID = 271

// perProcess writes a gauge once for each API server. An engine tells its state
// to one of them; what the others show stays 0 (vLLM PR 28792).
func (b *Book) perProcess(w *builder, f *family) {
	w.head(f.name, f.help, gauge.String())
	for server := range b.settings.APIServers {
		pid := label{"pid", strconv.Itoa(firstPID + server)}
		b.each(f, func(engine int, c cell, labels []label) {
			if server != engine%b.settings.APIServers {
				c = cellZero
			}
			w.sample(&b.ranks[engine].cells[c], formValue, f.name, append(labels, pid)...)
		})
	}
}
