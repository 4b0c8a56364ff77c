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

// BenchmarkPoll is what one poll costs rooftop beside the network: a real page
// of 53 KB parsed, merged and put into its window. At 4 polls a second,
// 2.5 ms would be 1 % of a core.
func BenchmarkPoll(b *testing.B) {
	f, err := os.Open(filepath.Join("..", "..", "..", "collect", "vllm", "testdata", "vllm-0.32.0-cpu-loaded.txt.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	page, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	a, err := NewAnalysis(Header{})
	if err != nil {
		b.Fatal(err)
	}
	body := string(page)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	at := time.Duration(0)
	for b.Loop() {
		a.Add(&Poll{T: at, PageT: at, Took: time.Millisecond, Body: body})
		at += engine.PollInterval
		if len(a.windows) > 900 { // half an hour: keep the run's own memory out of the figure
			a.windows = a.windows[:0]
		}
	}
}
