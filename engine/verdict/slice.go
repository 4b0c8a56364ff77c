package verdict

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Slice is the counts of about two seconds of a trial. Neighbouring slices are not independent.
// Values that were not read are absent.
type Slice struct {
	Start, Length time.Duration // Start is since the beginning of the session

	Tokens   stat.Opt // output tokens
	Prompt   stat.Opt // prompt tokens, including cached ones
	Computed stat.Opt // prompt tokens that were computed instead of read from the cache
	Finished stat.Opt // requests
	Hits     stat.Opt // prompt tokens found in the prefix cache
	Queries  stat.Opt // prompt tokens looked up in the prefix cache

	Running  stat.Opt // requests, mean over the polls
	Waiting  stat.Opt // requests, mean over the polls
	StepTime stat.Opt // seconds of one engine step, mean while busy
	KV       stat.Opt // ratio of the pool, peak
	Preempts stat.Opt // preemptions
	Power    stat.Opt // W, all GPUs

	TTFT, ITL, TPOT, E2E stat.Delta // seconds
	PromptLen, OutputLen stat.Delta // tokens of a request
}

// Incarnation is the slices of one start of the server, oldest first. Two incarnations also differ
// by chance: a restart is not an exact repeat.
type Incarnation []Slice

// Side is the measurements of one configuration. Several starts average out the random differences
// between restarts.
type Side struct {
	Incarnations []Incarnation
	// CostPerHour is the price of the whole server in dollars; absent if unknown. Only the ratio
	// of both sides matters.
	CostPerHour stat.Opt
	Host        Host
}

// Host is how busy the CPU cores were that a server may use, while one configuration was measured. What
// cannot be read is absent.
type Host struct {
	// Wait is the share of time, 0..1, that threads of the server were runnable but not running: other
	// programs had the cores, or other threads of the server.
	Wait stat.Opt
	// Others is the share of the cores' time, 0..1, that programs other than the server used.
	Others stat.Opt
}
