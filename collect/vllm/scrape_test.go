package vllm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestScrapeTimesThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := ours(t, loadedPage)
		s := &server{answer: func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(7 * time.Millisecond)
			w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
			_, _ = w.Write(body)
		}}
		start := time.Now()
		scraper := enginepage.NewScraper(s.client(t, collect.Secret{}), newReader(""), func() time.Duration { return time.Since(start) })
		for i := range 3 {
			page, raw, err := scraper.Scrape(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := time.Duration(i+1) * 7 * time.Millisecond
			if page.T != want || page.Took != 7*time.Millisecond || page.Bytes != len(body) || string(raw) != string(body) {
				t.Errorf("page %d: at %s, took %s, %d bytes; want %s, 7ms, %d", i, page.T, page.Took, page.Bytes, want, len(body))
			}
			if page.Counters[engine.CounterGenerationTokens] != stat.Some(829) {
				t.Errorf("page %d: %v tokens", i, page.Counters[engine.CounterGenerationTokens])
			}
		}
	})
}

// TestBadAnswers is what servers and proxies send instead of a page. Each costs one scrape: the next good page is read again,
// and nothing but pages is asked for.
func TestBadAnswers(t *testing.T) {
	good := string(ours(t, loadedPage))
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		is     error
		says   string
		raw    bool // the answer was whole: a recording keeps it
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", http.StatusInternalServerError) }, nil, "answered 500 Internal Server Error: the server failed or is still starting", false},
		{"404", http.NotFound, nil, "is this the port of an inference server", false},
		{"HTML", text("<!DOCTYPE html><html><body>Welcome</body></html>"), enginepage.ErrNotEngine, "HTML", true},
		{"statistics off", text(string(ours(t, "vllm-0.32.0-cpu-stats-off.txt.gz"))), enginepage.ErrStatsOff, "--disable-log-stats", true},
		{"cut within a line", text(good[:30_000]), collect.ErrTruncated, "middle of line", true},
		{"text for a value", text("vllm:num_requests_running{model_name=\"m\"} many\n"), collect.ErrMalformed, `"many"`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answers := []http.HandlerFunc{text(good), tt.answer, text(good)}
			s := &server{}
			s.answer = func(w http.ResponseWriter, r *http.Request) { answers[min(len(s.requests())-1, 2)](w, r) }
			scraper := enginepage.NewScraper(s.client(t, collect.Secret{}), newReader(""), func() time.Duration { return 0 })
			for i := range answers {
				page, raw, err := scraper.Scrape(t.Context())
				if i != 1 {
					if err != nil || page.Counters[engine.CounterGenerationTokens] != stat.Some(829) {
						t.Fatalf("page %d: %v", i, err)
					}
					continue
				}
				if err == nil || page != nil || !strings.Contains(err.Error(), tt.says) || (tt.is != nil && !errors.Is(err, tt.is)) {
					t.Errorf("page %v, error %v; want %v that says %q", page, err, tt.is, tt.says)
				}
				if tt.raw != (raw != nil) {
					t.Errorf("%d raw bytes, want some: %v", len(raw), tt.raw)
				}
				if strings.Count(err.Error(), "http://server:8000/metrics") > 1 || strings.Contains(err.Error(), "\n") {
					t.Errorf("error is not one clear sentence: %v", err)
				}
			}
			if want := slices.Repeat([]string{"GET /metrics"}, len(answers)); !slices.Equal(s.requests(), want) {
				t.Errorf("asked %q, want %q", s.requests(), want)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	for _, name := range []string{"v0-0.6.6.txt", "v1-0.9.2-multiprocess.txt", "v1-0.11-both-names.txt", "rust-front-end.txt", "ray.txt", "node-exporter.txt", loadedPage} {
		f.Add(ours(f, name))
	}
	field, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "vllm-metrics", "*.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range field {
		if body, err := os.ReadFile(path); err == nil {
			f.Add(body)
		}
	}
	f.Add([]byte("vllm:time_to_first_token_seconds_bucket{le=\"1\"} 5\nvllm:time_to_first_token_seconds_count 3\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		reader := newReader("")
		var p engine.Page
		err := reader.Parse(body, &p)
		if err != nil {
			if len(p.Ranks) > 0 || p.Model != "" {
				t.Fatalf("values in spite of %v", err)
			}
			return
		}
		for g, v := range p.Gauges {
			if v.OK && !(v.V >= 0) {
				t.Errorf("gauge %s is %v", gaugeNames[g], v)
			}
		}
		for c, v := range p.Counters {
			if v.OK && !(v.V >= 0) {
				t.Errorf("counter %s is %v", counterNames[c], v)
			}
		}
		for h, hist := range p.Hists {
			if len(hist.Bounds) != len(hist.Cumulative) || (hist.OK && !(hist.Count >= 0)) {
				t.Errorf("histogram %s is %+v", histNames[h], hist)
			}
			var d stat.Delta
			d.Set(&hist, &hist)
			d.Quantile(0.99)
		}
	})
}

// BenchmarkManyEngines reads a page in which each of 20,000 series has another model and engine, as a hostile one may.
func BenchmarkManyEngines(b *testing.B) {
	var page bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&page, "vllm:generation_tokens_total{engine=\"%d\",model_name=\"m%d\"} 0\n", i, i)
	}
	r := newReader("")
	for b.Loop() {
		var p engine.Page
		if err := r.Parse(page.Bytes(), &p); err != nil {
			b.Fatal(err)
		}
		var w engine.Windower
		w.Add(&engine.Sample{Page: &p})
	}
}

// BenchmarkReader reads a real page of 53 kB into an engine.Page: the first one
// of a server, and every later one.
func BenchmarkReader(b *testing.B) {
	body := ours(b, loadedPage)
	b.Run("first page", func(b *testing.B) {
		b.ReportAllocs()
		template := newReader("")
		for b.Loop() {
			r := *template
			var p engine.Page
			if err := r.Parse(body, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("next page", func(b *testing.B) {
		b.ReportAllocs()
		r := newReader("")
		for b.Loop() {
			var p engine.Page
			if err := r.Parse(body, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
