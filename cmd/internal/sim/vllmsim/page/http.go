package page

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// frontend holds the series of prometheus-fastapi-instrumentator, which counts answered requests. A series
// appears with its first request.
type frontend struct {
	requests  []*httpSeries // by handler, method, status
	sent      []*httpSeries // request bodies, by handler
	answered  []*httpSeries // response bodies, by handler
	durations []*httpSeries // by handler and method
	all       histogram     // every request
}

// httpSeries is one label set: a counter (count), a summary (count and sum) or a
// histogram.
type httpSeries struct {
	labels     []label
	count, sum float64
	hist       histogram
	created    float64 // Unix time; 0 before the first page with the series
}

// uncounted reports whether vLLM excludes a handler from the metrics
// (entrypoints/serve/instrumentator/metrics.py).
func uncounted(handler string) bool {
	switch handler {
	case "/metrics", "/health", "/load", "/ping", "/version", "/server_info":
		return true
	}
	return false
}

// maxHandlers bounds the handlers with separate series, so that clients cannot make the page grow; a server
// has fewer routes.
const maxHandlers = 64

// other is the name of all methods that HTTP does not define. The parser of vLLM's server (llhttp) rejects
// unknown methods before they are counted.
const other = "other"

func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return name
	}
	return other
}

// handler returns the name of a route on the page: "none" if no route matched, or beyond maxHandlers
// routes.
func (f *frontend) handler(name string) string {
	const unmatched = "none"
	known := func(s *httpSeries) bool { return s.labels[0].value == name }
	if name == "" || len(f.sent) >= maxHandlers && !slices.ContainsFunc(f.sent, known) {
		return unmatched
	}
	return name
}

func (f *frontend) init() {
	f.all = newHistogram(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60)
}

func newHistogram(bounds ...float64) histogram {
	return histogram{bounds: bounds, counts: make([]float64, len(bounds)+1)}
}

// HTTP counts an answered request of the front end (http_* families). route is the template of the matched
// route, "" if none matched. The bytes are those of the Content-Length headers, 0 for a stream. took is the
// time until the end of the answer. All methods that HTTP does not define count as "other".
func (b *Book) HTTP(verb, route string, status int, took time.Duration, requestBytes, responseBytes int) {
	if uncounted(route) {
		return
	}
	f := &b.http
	h, m := label{"handler", f.handler(route)}, label{"method", method(verb)}
	find := func(list *[]*httpSeries, labels ...label) *httpSeries {
		for _, s := range *list {
			if slices.Equal(s.labels, labels) {
				return s
			}
		}
		s := &httpSeries{labels: labels}
		*list = append(*list, s)
		b.stale = true
		return s
	}
	find(&f.requests, h, m, label{"status", strconv.Itoa(status/100) + "xx"}).count++
	for _, size := range []struct {
		list  *[]*httpSeries
		bytes int
	}{{&f.sent, requestBytes}, {&f.answered, responseBytes}} {
		s := find(size.list, h)
		s.count++
		s.sum += float64(size.bytes)
	}
	f.all.observe(toSeconds(took))
	d := find(&f.durations, h, m)
	if d.hist.counts == nil {
		d.hist = newHistogram(0.1, 0.5, 1)
	}
	d.hist.observe(toSeconds(took))
}

// The families of the instrumentator, in order of their creation.
const (
	httpRequests  = "http_requests"
	httpSent      = "http_request_size_bytes"
	httpAnswered  = "http_response_size_bytes"
	httpAll       = "http_request_duration_highr_seconds"
	httpDurations = "http_request_duration_seconds"

	helpRequests  = "Total number of requests by method, status and handler."
	helpSent      = "Content length of incoming requests by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. "
	helpAnswered  = "Content length of outgoing responses by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. "
	helpAll       = "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. "
	helpDurations = "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. "
)

// write writes the families of one process. start is the wall time of the start, and now the time since
// then, which is the creation time of new series.
func (f *frontend) write(w *builder, start time.Time, now time.Duration) {
	create := func(list []*httpSeries, name, help string) {
		if len(list) == 0 {
			return
		}
		w.head(name+"_created", help, gauge)
		for _, s := range list {
			if s.created == 0 {
				s.created = unix(start.Add(now))
			}
			w.constant(s.created, name+"_created", s.labels...)
		}
	}
	f.writeRequests(w)
	create(f.requests, httpRequests, helpRequests)
	writeSizes(w, f.sent, httpSent, helpSent)
	create(f.sent, httpSent, helpSent)
	writeSizes(w, f.answered, httpAnswered, helpAnswered)
	create(f.answered, httpAnswered, helpAnswered)
	w.head(httpAll, helpAll, histo)
	w.histogram(&f.all, false, httpAll)
	w.head(httpAll+"_created", helpAll, gauge)
	w.constant(unix(start), httpAll+"_created")
	f.writeDurations(w, false)
	create(f.durations, httpDurations, helpDurations)
}

func (f *frontend) writeRequests(w *builder) {
	w.head(httpRequests+"_total", helpRequests, counter)
	for _, s := range f.requests {
		w.sample(&s.count, formValue, httpRequests+"_total", s.labels...)
	}
}

func writeSizes(w *builder, list []*httpSeries, name, help string) {
	w.head(name, help, summary)
	for _, s := range list {
		w.sample(&s.count, formValue, name+"_count", s.labels...)
		w.sample(&s.sum, formValue, name+"_sum", s.labels...)
	}
}

func (f *frontend) writeDurations(w *builder, sumFirst bool) {
	w.head(httpDurations, helpDurations, histo)
	for _, s := range f.durations {
		w.histogram(&s.hist, sumFirst, httpDurations, s.labels...)
	}
}
