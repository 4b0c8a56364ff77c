package vllmsim

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// httpSeries is one series of http_requests, which prometheus-fastapi-instrumentator counts by handler, method
// and status: here those that generate. It appears with its first request.
type httpSeries struct {
	labels  []label
	count   float64
	created float64 // Unix time; 0 before the first page with the series
}

// HTTP counts an answered request to generate, by its path.
func (b *Book) HTTP(path string, status int) {
	labels := []label{{"handler", path}, {"method", http.MethodPost}, {"status", strconv.Itoa(status/100) + "xx"}}
	i := slices.IndexFunc(b.requests, func(s *httpSeries) bool { return slices.Equal(s.labels, labels) })
	if i < 0 {
		i = len(b.requests)
		b.requests = append(b.requests, &httpSeries{labels: labels})
		b.stale = true
	}
	b.requests[i].count++
}

const (
	httpRequests = "http_requests"
	helpRequests = "Total number of requests by method, status and handler."
)

func (b *Book) writeRequests(w *builder) {
	w.head(httpRequests+"_total", helpRequests, counter)
	for _, s := range b.requests {
		w.sample(&s.count, formValue, httpRequests+"_total", s.labels...)
	}
}

// writeRequestsCreated writes the creation times of the series: that of a new one is now, the time since start.
func (b *Book) writeRequestsCreated(w *builder, start time.Time, now time.Duration) {
	if len(b.requests) == 0 {
		return
	}
	w.head(httpRequests+"_created", helpRequests, gauge)
	for _, s := range b.requests {
		if s.created == 0 {
			s.created = unix(start.Add(now))
		}
		w.constant(s.created, httpRequests+"_created", s.labels...)
	}
}
