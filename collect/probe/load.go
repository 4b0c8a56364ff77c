package probe

import (
	"errors"
	"fmt"
	"time"
)

// Range is a length in tokens, drawn uniformly from Min to Max, both included.
type Range struct {
	Min, Max int
}

// Fixed returns the range that holds only n.
func Fixed(n int) Range { return Range{n, n} }

// Load is what a closed loop offers: each client sends a request, waits for its
// last token, thinks, and sends the next. A slow server is offered less, so the
// load never exceeds Clients requests in flight.
//
// The prompts are a function of Seed alone: a client's n-th request has the same
// text and length in every run, whatever the server did in between. So a second
// run with the same seed finds the first one's prompts in the cache of a server
// that stayed up; give it another seed.
type Load struct {
	Clients int // at least 1
	// PromptTokens is the length of a prompt, shared prefix included. Prompts
	// are ASCII text and one token is taken as one character, which is exact for
	// byte-level tokenizers without merges. Others need fewer tokens for the same
	// text; Summary.PromptTokens is what the server counted.
	PromptTokens Range
	OutputTokens Range
	// SharedPrefixTokens begin every prompt of the run. What follows is unique
	// to client and request, so that nothing but this prefix can be found in a
	// prefix cache.
	SharedPrefixTokens int
	// Think is the pause between a request's last token and the next request.
	Think time.Duration
	// Stagger spreads the clients' first requests evenly over this time; 0
	// starts them at once. Clients of equal lengths that start together stay in
	// lock-step, and the server swings between prefill and decode.
	Stagger   time.Duration
	Seed      uint64
	IgnoreEOS bool // ask vLLM to generate the full output length

	// Duration ends the run; what is in flight then is cut, and counted as
	// unfinished. 0 sets no limit.
	Duration time.Duration
	// Requests is how many are sent in all, failed ones included; the run ends
	// when the last has its answer. 0 sets no limit.
	Requests int
}

// Validate says what is wrong with a load, all of it at once.
func (l Load) Validate() error {
	var wrong []error
	refuse := func(bad bool, format string, values ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, values...))
		}
	}
	refuse(l.Clients < 1, "clients is %d: at least 1", l.Clients)
	refuse(l.OutputTokens.Min < 1, "output tokens start at %d: at least 1", l.OutputTokens.Min)
	refuse(l.OutputTokens.Max < l.OutputTokens.Min, "output tokens end at %d, below their start %d", l.OutputTokens.Max, l.OutputTokens.Min)
	refuse(l.PromptTokens.Min < 1, "prompt tokens start at %d: at least 1", l.PromptTokens.Min)
	refuse(l.PromptTokens.Max < l.PromptTokens.Min, "prompt tokens end at %d, below their start %d", l.PromptTokens.Max, l.PromptTokens.Min)
	refuse(l.SharedPrefixTokens < 0, "shared prefix is %d tokens: at least 0", l.SharedPrefixTokens)
	refuse(l.SharedPrefixTokens > 0 && l.SharedPrefixTokens >= l.PromptTokens.Min,
		"shared prefix of %d tokens leaves nothing of a prompt of %d", l.SharedPrefixTokens, l.PromptTokens.Min)
	refuse(l.Think < 0 || l.Stagger < 0 || l.Duration < 0, "a time of the load is negative")
	refuse(l.Requests < 0, "requests is %d: at least 0", l.Requests)
	return errors.Join(wrong...)
}
