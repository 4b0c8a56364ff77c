package session

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// BenchmarkPoll measures the CPU cost of one poll without the network: a real page of 53 KB is
// parsed, merged and added to its window. At 4 polls per second, 2.5 ms would be 1 % of a core.
func BenchmarkPoll(b *testing.B) {
	body := loadedPage(b)
	a, err := NewAnalysis(Header{})
	must(b, err)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	at := time.Duration(0)
	for b.Loop() {
		a.Add(&Poll{T: at, PageT: at, Took: time.Millisecond, Body: body})
		at += engine.PollInterval
		if len(a.windows) > 900 { // half an hour: exclude the memory of the run from the result
			a.windows = a.windows[:0]
		}
	}
}

// loadedPage returns a page of 53 KB from a real server under load.
func loadedPage(b *testing.B) string {
	b.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "collect", "vllm", "testdata", "vllm-0.32.0-cpu-loaded.txt.gz"))
	must(b, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	must(b, err)
	page, err := io.ReadAll(z)
	must(b, err)
	return string(page)
}
