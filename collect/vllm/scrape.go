package vllm

import (
	"context"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

// Scraper polls the metrics page of one server. It must not be used
// concurrently.
type Scraper struct {
	client *collect.Client
	reader *Reader
	now    func() time.Duration
	buf    []byte
}

// NewScraper returns a scraper for the server of a client. The clock gives the
// time since the session began, monotonic; model is as for NewReader.
func NewScraper(client *collect.Client, model string, now func() time.Duration) *Scraper {
	return &Scraper{client: client, reader: NewReader(model), now: now}
}

// Scrape asks for the page once and reads it. T is the completion, Took the
// time from the request to the last byte. The body is returned as it came, also
// where it could not be read (what a recording keeps); it is valid until the
// next Scrape. The page is new at every call and never written to again.
func (s *Scraper) Scrape(ctx context.Context) (*engine.Page, []byte, error) {
	start := s.now()
	body, err := s.client.Get(ctx, "/metrics", collect.MetricsAccept, s.buf[:0])
	end := s.now()
	s.buf = body
	if err != nil {
		return nil, nil, fmt.Errorf("scrape: %w", err)
	}
	page := &engine.Page{T: end, Took: end - start, Bytes: len(body)}
	if err := s.reader.Parse(body, page); err != nil {
		return nil, body, fmt.Errorf("scrape %s: %w", s.client.Target().Metrics(), err)
	}
	return page, body, nil
}
