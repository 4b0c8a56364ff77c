package vllmsim

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// The metrics page of a simulated server, as the imitated vLLM release writes it: names, order,
// spelling of le, _created series.
//
// A [Book] keeps the counters of one start of a server process and renders the
// page as Python's prometheus_client does (0.26, exposition.py and utils.py):
// families in order of their creation, labels in alphabetical order, counters
// ending in _total, buckets, _count, _sum, and a gauge _created after each
// counter and histogram; with several API servers, in its multiprocess format.
//
// Recorded and inferred parts:
//
//   - 0.32: from pages of a real 0.32.0 (one engine, two engines, young, loaded,
//     statistics off) and its sources, vllm/v1/metrics/loggers.py and stats.py. The
//     multiprocess form is from pages that its logger wrote without a server.
//   - 0.11: from an idle page of a real 0.11.0; its multiprocess form from a part of
//     one (vLLM PR 28792: a KV gauge for each process, stale but for one).
//   - 0.20: inferred. Families, their order and help from a real page of 0.30.0, the
//     list of families by release read out of the packages, and a source of that
//     time; the labels of cache_config_info from the flags and from sources before
//     and after. Whether finished_reason has "repetition" yet is a guess.
//   - 0.10: inferred: 0.10.0. From sources before and after it, with the names that
//     0.11 hides; it has neither inter_token_latency_seconds (0.10.2) nor
//     request_time_per_output_token_seconds. The labels of cache_config_info likewise.
//   - Releases between these have the families of their own, by the same list.
//
// Known differences from a real server:
//
//   - vLLM reports a preemption with the next output of its victim; here it
//     counts with the report that has it.
//   - Of process_* there are only CPU seconds and start time, of http_* only the
//     number of requests that generate, of cache_config_info the labels that rooftop
//     reads, and there is no python_*: no reader of a simulation needs the others.
//   - _created of the engine's families is the start of the process (a real engine
//     creates them when it has its model), and that of an http_requests series is the time
//     of the first page that has it.
//   - Which API server shows an engine's KV usage varies on a server; here it is
//     always the same. The order of kinds on a multiprocess page is that of a
//     directory; here it is histograms, gauges, summaries, counters.
//   - sim_info is on no real page: it marks this one as simulated.

// Book keeps the counters of one start of a server process, all ranks. Its methods
// are not safe for concurrent use.
type Book struct {
	settings *settings.Settings
	cache    Cache
	start    time.Time
	release  int // imitated minor release, 32 for 0.32
	ranks    []pageRank
	process  process
	requests []*httpSeries
	adapters []adapterSeries
	layout   layout
	stale    bool          // whether the layout lacks a series
	now      time.Duration // of the page being written, since start
}

// Cache is the data about a rank's pool in cache_config_info.
type Cache struct {
	NumBlocks      int     // including the null block
	SizeTokens     int     // kv_cache_size_tokens
	MaxConcurrency float64 // kv_cache_max_concurrency
}

// NewBook returns a book with every family at zero. start is the wall time of the process start, which
// _created and process_start_time_seconds show.
func NewBook(s *settings.Settings, c Cache, start time.Time) *Book {
	b := &Book{settings: s, cache: c, start: start, release: settings.Minor(s.Release), stale: true}
	tokens := tokenBounds(s.MaxModelLen)
	b.ranks = make([]pageRank, max(1, s.DataParallel))
	for i := range b.ranks {
		b.ranks[i].init(tokens)
	}
	b.process.init(start)
	return b
}

// CPU adds to process_cpu_seconds_total of the API server.
func (b *Book) CPU(d time.Duration) { b.process.spend(d) }

// Append appends the current page to buf and returns it. now is the time since the start.
func (b *Book) Append(buf []byte, now time.Duration) []byte {
	b.now = max(b.now, now)
	if b.stale {
		b.layout = b.build()
		b.stale = false
	}
	return b.layout.append(buf)
}

// Observe counts a completed step of a rank.
func (b *Book) Observe(rank int, r *core.Report) {
	k := &b.ranks[rank]
	if !k.seen {
		k.seen = true
		// Gauges of a multiprocess page appear with their first value.
		b.stale = b.stale || b.multiprocess()
	}
	k.observe(r)
}

// multiprocess reports whether the page has prometheus_client's multiprocess format, which vLLM uses with two
// or more API servers.
func (b *Book) multiprocess() bool { return b.settings.APIServers > 1 }
