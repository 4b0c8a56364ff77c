package enginepage

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

// NewScraper returns a scraper for the server of a client. now returns the monotonic time
// since the session began.
func NewScraper(client *collect.Client, reader *Reader, now func() time.Duration) *Scraper {
	return &Scraper{client: client, reader: reader, now: now}
}

// Scrape requests the page once and parses it. T is the time of completion, Took the time
// from the request to the last byte. It also returns the raw body, which recordings keep,
// even if it could not be parsed; the body is valid until the next Scrape. Each call
// returns a new page that is never modified afterwards.
func (s *Scraper) Scrape(ctx context.Context) (*engine.Page, []byte, error) {
	start := s.now()
	body, err := s.client.Get(ctx, metricsPath, collect.MetricsAccept, s.buf[:0])
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
