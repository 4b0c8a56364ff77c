// Package vllmsim is one simulated vLLM server: front end, engines, KV cache,
// metrics and GPUs, as a machine that is driven by events. [Server] has no clock:
// an HTTP server drives it by the wall ([github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/serve]),
// the scenario bench by a virtual clock, and both see the same server.
package vllmsim

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// Server is one life of a server process. Its methods are not safe for
// concurrent use. Times are since one origin, the same for every life on one
// clock, and never go back.
type Server struct{}

// Call is a request at the front end.
type Call struct {
	Prompt string // text; of a chat, rendered by the template
	// Tokens replaces Prompt where the caller gave token ids.
	Tokens    []core.Token
	MaxTokens int // 0: the model's rest
	MinTokens int
	IgnoreEOS bool
	Priority  int
	Adapter   string
	Salt      string
	// StopAfter is the output length at which the model ends by itself, where
	// IgnoreEOS is not set; 0 draws one from the server's own distribution.
	StopAfter int
}

// Update is what a caller sees of its request, in order of time.
type Update struct {
	At     time.Duration // when it leaves the front end
	Tokens []core.Token  // new ones; valid during the call
	Text   string        // their text
	Finish core.Reason
	Err    error      // of a request that failed
	Life   *core.Life // at the end; nil before
}

// Sink receives the updates of one request, called from Advance.
type Sink func(Update)

// Start begins a life at time now, whose process starts on the wall at start. The
// error is the server's refusal, in vLLM's words.
func Start(s *settings.Settings, device []byte, now time.Duration, start time.Time) (*Server, error) {
	return nil, nil
}

// Healthy returns when the server listens: the start and its start-up time.
func (v *Server) Healthy() time.Duration { return 0 }

// Submit takes a request at now. The error is the refusal that HTTP would answer
// at once (400: too long, unknown adapter); the ID is for Cancel.
func (v *Server) Submit(now time.Duration, c Call, sink Sink) (core.ID, error) { return 0, nil }

// Cancel tells that the client of a request went away.
func (v *Server) Cancel(now time.Duration, id core.ID) {}

// Next returns when something will happen by itself; false while nothing will.
func (v *Server) Next() (time.Duration, bool) { return 0, false }

// Advance lets time pass up to now: everything due happens at its own time.
func (v *Server) Advance(now time.Duration) {}

// Page appends the metrics page as a scrape at now would get it.
func (v *Server) Page(buf []byte, now time.Duration) []byte { return nil }

// GPUs returns the simulated devices at now.
func (v *Server) GPUs(now time.Duration) []perf.Reading { return nil }

// Inject adds a fault from now on.
func (v *Server) Inject(now time.Duration, f settings.Fault) {}

// Dead says that a fault ended the engine: health answers 503.
func (v *Server) Dead() bool { return false }

// Totals returns the counters of the page, for checks of conservation.
func (v *Server) Totals() page.Totals { return page.Totals{} }
