package page_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

func TestHTTP(t *testing.T) {
	b := page.NewBook(tiny(nil), page.Cache{}, start)
	for _, r := range []struct {
		method, handler string
		status          int
		took            time.Duration
		sent, answered  int
	}{
		{"POST", "/v1/completions", 200, 300 * time.Millisecond, 100, 0},
		{"POST", "/v1/completions", 400, time.Millisecond, 50, 80},
		{"POST", "/v1/completions", 201, 2 * time.Second, 100, 0},
		{"GET", "", 404, time.Millisecond, 0, 22},
		{"GET", "/metrics", 200, time.Millisecond, 0, 50_000},
		{"GET", "/health", 503, time.Millisecond, 0, 0},
	} {
		b.HTTP(r.method, r.handler, r.status, r.took, r.sent, r.answered)
	}
	body := write(b)
	for _, want := range []string{
		"http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"2xx\"} 2.0\n" +
			"http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"4xx\"} 1.0\n" +
			"http_requests_total{handler=\"none\",method=\"GET\",status=\"4xx\"} 1.0\n",
		"http_request_size_bytes_count{handler=\"/v1/completions\"} 3.0\nhttp_request_size_bytes_sum{handler=\"/v1/completions\"} 250.0\n",
		"http_response_size_bytes_count{handler=\"none\"} 1.0\nhttp_response_size_bytes_sum{handler=\"none\"} 22.0\n",
		"http_request_duration_highr_seconds_bucket{le=\"0.01\"} 2.0\n",
		"http_request_duration_highr_seconds_bucket{le=\"2.0\"} 4.0\n",
		"http_request_duration_seconds_bucket{handler=\"/v1/completions\",le=\"0.1\",method=\"POST\"} 1.0\n" +
			"http_request_duration_seconds_bucket{handler=\"/v1/completions\",le=\"0.5\",method=\"POST\"} 2.0\n",
		// Created when a page first had it, a minute after the start.
		"http_requests_created{handler=\"none\",method=\"GET\",status=\"4xx\"} 1.79522359454e+09\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks\n%s", want)
		}
	}
	for _, absent := range []string{"/metrics", "/health", "5xx"} {
		if strings.Contains(body, absent) {
			t.Errorf("the page has %s", absent)
		}
	}
	if later := string(b.Append(nil, time.Hour)); later != body {
		t.Error("creation times moved")
	}
}

// TestHTTPIsBounded sends methods and handlers without end.
func TestHTTPIsBounded(t *testing.T) {
	b := page.NewBook(tiny(nil), page.Cache{}, start)
	for i := range 500 {
		b.HTTP(fmt.Sprint("VERB", i), "/v1/completions", 405, time.Millisecond, 0, 0)
	}
	b.HTTP("GET", "/v1/completions", 405, time.Millisecond, 0, 0)
	body := write(b)
	for _, want := range []string{
		`http_requests_total{handler="/v1/completions",method="other",status="4xx"} 500.0` + "\n",
		`http_requests_total{handler="/v1/completions",method="GET",status="4xx"} 1.0` + "\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks\n%s", want)
		}
	}
	for i := range 500 {
		b.HTTP("GET", fmt.Sprint("/", i), 200, time.Millisecond, 0, 0)
	}
	b.HTTP("GET", "/v1/completions", 405, time.Millisecond, 0, 0)
	body = write(b)
	if n := strings.Count(body, "\nhttp_requests_total{"); n > 70 {
		t.Errorf("%d series after 500 handlers", n)
	}
	if want := `http_requests_total{handler="/v1/completions",method="GET",status="4xx"} 2.0`; !strings.Contains(body, want) {
		t.Errorf("the page lacks %s", want)
	}
	requests := 0.0
	for line := range strings.Lines(body) {
		if series, value, _ := strings.Cut(strings.TrimSpace(line), "} "); strings.HasPrefix(series, "http_requests_total{") {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			requests += n
		}
	}
	if requests != 1002 {
		t.Errorf("%v requests are counted, want 1002", requests)
	}
}

// TestLabelsAreEscaped serves a model whose name has what the format escapes.
func TestLabelsAreEscaped(t *testing.T) {
	const name = "a\"b\\c\nd"
	body := write(page.NewBook(tiny(func(s *settings.Settings) { s.Served = []string{name} }), page.Cache{}, start))
	m := find(t, parse(t, body), "vllm:num_requests_running", "model_name", name)
	if got := number(m); got != 0 {
		t.Errorf("running is %v, want 0", got)
	}
}

// TestProcess reads what the page says of the API server's process.
func TestProcess(t *testing.T) {
	b := page.NewBook(tiny(nil), page.Cache{}, start.Add(7*time.Millisecond))
	b.CPU(1239 * time.Millisecond)
	b.CPU(4 * time.Millisecond)
	body := write(b)
	for _, want := range []string{
		"process_start_time_seconds 1.79522353454e+09\n", // in ticks of 10 ms
		"process_cpu_seconds_total 1.24\n",
		"process_open_fds 34.0\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
