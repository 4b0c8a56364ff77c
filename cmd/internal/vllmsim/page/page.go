// Package page writes the metrics page of a simulated server in the words of the
// vLLM release it imitates: names, order, le spelling, _created series.
package page

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// Book keeps the counters of one life of a server process, all ranks.
type Book struct{}

// Cache is what cache_config_info says of a rank's pool.
type Cache struct {
	NumBlocks      int     // the null block included
	SizeTokens     int     // kv_cache_size_tokens
	MaxConcurrency float64 // kv_cache_max_concurrency
}

// NewBook returns a book with every family at zero. start is the process's start
// on the wall, which _created and process_start_time_seconds show.
func NewBook(s *settings.Settings, c Cache, start time.Time) *Book { return nil }

// Observe takes in a completed step of a rank.
func (b *Book) Observe(rank int, r *core.Report) {}

// HTTP counts an answered request of the front end (http_* families).
func (b *Book) HTTP(method, handler string, status int, took time.Duration, requestBytes, responseBytes int) {
}

// CPU adds to process_cpu_seconds_total of the API server.
func (b *Book) CPU(d time.Duration) {}

// Append writes the page as it stands to buf. now is the time since start.
func (b *Book) Append(buf []byte, now time.Duration) []byte { return nil }

// Totals are sums over ranks, for checks of conservation.
type Totals struct {
	PromptTokens, GenerationTokens, Preemptions, Finished, PrefixQueries, PrefixHits float64
}

// Totals returns the counters as they stand.
func (b *Book) Totals() Totals { return Totals{} }
