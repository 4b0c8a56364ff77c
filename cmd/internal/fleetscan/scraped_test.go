package fleetscan

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect/prometheus"
)

// A server that is no longer scraped ends with a failure, and one that is scraped does not.
func TestStaleServersEndWithAFailure(t *testing.T) {
	begin := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	r := prometheus.Range{From: begin, To: begin.Add(10 * time.Minute)}
	for _, c := range []struct {
		name   string
		last   time.Duration // time of the last scrape
		down   bool
		failed string // of the last poll
	}{
		{"scraped to the end", 9*time.Minute + 50*time.Second, false, ""},
		{"between two scrapes", 9*time.Minute + 20*time.Second, false, ""},
		{"its target was removed", 5 * time.Minute, false, "Prometheus no longer scrapes the server"},
		{"it does not answer", 9*time.Minute + 50*time.Second, true, "Prometheus could not scrape the server"},
	} {
		var pages []prometheus.Page
		for at := time.Duration(0); at <= c.last; at += 15 * time.Second {
			pages = append(pages, prometheus.Page{At: begin.Add(at), Text: []byte("x 1\n")})
		}
		pages[len(pages)-1].Down = c.down
		got := polls(pages, r)
		if last := got[len(got)-1].PageErr; last != c.failed {
			t.Errorf("%s: the last poll says %q, want %q", c.name, last, c.failed)
		}
	}
	if got := polls(nil, r); len(got) != 0 {
		t.Errorf("%d polls of no page", len(got))
	}
}
