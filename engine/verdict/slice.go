package verdict

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Slice is what was counted in one short piece of a trial, about two seconds.
// Neighbouring slices are not independent. What was not read is absent.
type Slice struct {
	Start, Length time.Duration // since the beginning of the session

	Tokens   stat.Opt // output tokens
	Prompt   stat.Opt // prompt tokens, cached ones among them
	Computed stat.Opt // prompt tokens that were computed, not read from the cache
	Finished stat.Opt // requests
	Hits     stat.Opt // prompt tokens found in the prefix cache
	Queries  stat.Opt // prompt tokens looked up there

	Running  stat.Opt // requests, mean over the polls
	Waiting  stat.Opt // requests, mean over the polls
	StepTime stat.Opt // seconds of one engine step, mean while busy
	KV       stat.Opt // ratio of the pool, peak
	Preempts stat.Opt // preemptions
	Power    stat.Opt // W, all GPUs

	TTFT, ITL, TPOT, E2E stat.Delta // seconds
	PromptLen, OutputLen stat.Delta // tokens of a request
}

// Life is the slices of one run of the server, oldest first: between two lives
// stands a restart, which is not a repeat.
type Life []Slice

// Side is everything that was measured of one configuration. Several lives of it
// average out what a restart changes by chance.
type Side struct {
	Lives []Life
	// CostPerHour is the price of the whole server, in dollars; absent where it is
	// not known. Only the ratio of the two sides counts.
	CostPerHour stat.Opt
	// Busy is the share of time, 0..1, that threads of the server were ready to run
	// and did not: a neighbour on the host. Absent where it is not readable.
	Busy stat.Opt
}
