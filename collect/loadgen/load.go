package loadgen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Arrival is how the send times of requests are determined.
type Arrival int

// Arrivals. Only the closed loop waits for the server; the others are open loops, with a schedule
// that is fixed before the first request.
const (
	// Closed is a loop of clients: each sends a request, waits for its last token, thinks, and
	// sends the next. A slow server gets less load.
	Closed Arrival = iota
	// Poisson is independent arrivals at an average rate.
	Poisson
	// Gamma is arrivals at an average rate with gaps from a gamma distribution: burstier than
	// Poisson if CV is above 1, more regular below.
	Gamma
	// Constant is arrivals at equal gaps.
	Constant
	// Replay is arrivals at the times of a trace.
	Replay
)

var arrivalNames = [...]string{"closed", "poisson", "gamma", "constant", "trace"}

// String returns the name that ParseArrival accepts.
func (a Arrival) String() string {
	if a < 0 || int(a) >= len(arrivalNames) {
		return fmt.Sprintf("arrival %d", int(a))
	}
	return arrivalNames[a]
}

// MarshalText returns the same as String, for JSON.
func (a Arrival) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText accepts the same names as ParseArrival.
func (a *Arrival) UnmarshalText(name []byte) (err error) {
	*a, err = ParseArrival(string(name))
	return err
}

// ParseArrival parses the name of an arrival.
func ParseArrival(name string) (Arrival, error) {
	i := slices.Index(arrivalNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("arrival is closed, poisson, gamma, constant or trace, not %q", name)
	}
	return Arrival(i), nil
}

// Style is how prompts are written.
type Style int

const (
	// Words are common words of at most six lower-case letters, separated by single blanks: about
	// one token each. Load.TokensPerWord corrects the estimate.
	Words Style = iota
	// Characters are printable ASCII characters counted as one token each: exact for byte-level
	// tokenizers without merges.
	Characters
)

// Phase is a part of a run with a constant or linearly changing level. The level is the number of
// clients of a closed loop, or the requests per second of an open one.
type Phase struct {
	Name     string        // for the summary; may be empty
	Duration time.Duration // 0 is unlimited, for the last phase only
	From, To float64       // level at its start and end
}

// Hold returns a phase with a constant level.
func Hold(level float64, d time.Duration) Phase { return Phase{Duration: d, From: level, To: level} }

// Weighted is a model name with its weight.
type Weighted struct {
	Model  string
	Weight float64 // above 0, in any unit
}

// Load describes the requests to send. They depend only on its fields, including Seed: in every run
// an open loop's n-th request has the same time, text and lengths, and a closed loop's client sends
// the same n-th request, whatever the server does. (Later turns of a session follow its answers and
// contain them.) Therefore a second run with the same seed finds the prompts of the first in the
// cache of a server that was not restarted; use another seed.
type Load struct {
	Arrival Arrival
	Clients int     // of a closed loop, at least 1
	Rate    float64 // of an open loop: average requests per second, above 0
	// CV is the coefficient of variation of the gaps of Gamma arrivals, above 0; 1 is Poisson. The
	// burstiness of vLLM's own benchmark is 1/CV².
	CV float64
	// Phases, if there are any, replace Clients and Rate.
	Phases []Phase

	// PromptTokens is the length of a prompt including the shared prefix; in a session, that of the
	// first turn.
	PromptTokens Lengths
	OutputTokens Lengths
	Style        Style
	// TokensPerWord is the number of tokens that the server's tokenizer needs for a word of Words
	// with the blank before it; 0 is 1. Summary.PromptTokens has the server's count.
	TokensPerWord float64
	Chat          bool // send messages for a chat template instead of a plain prompt

	// SharedPrefixTokens is the length of the common prefix of all prompts of a group. The rest of
	// a prompt is unique, so that a prefix cache finds only this prefix and the earlier turns of a
	// session.
	SharedPrefixTokens int
	PrefixGroups       int // number of different prefixes, equally likely; 0 is 1

	// Turns is the number of requests of a session, each with the previous turns in its prompt; a
	// later turn adds a length of PromptTokens without the shared prefix. The zero value is 1. Rate
	// counts requests, so sessions start at Rate divided by the mean of Turns.
	Turns Lengths
	// Think is the pause between the last token of a request and the next request of the same
	// client or session.
	Think Delay

	Cancel   float64       // share of requests that are cancelled after a random number of tokens, 0 to 1
	Deadline time.Duration // when a client gives up a request, after its intended time; 0 is never
	// Retry sends a failed request of an open loop again, after about 100 ms (a random half to all
	// of it) and twice as long after each further failure up to 2 s, until its deadline and at most
	// 99 times. It does not repeat requests that the server refused as such (status 400, 401, 403,
	// 404, 422), and at most 16384 requests wait at a time.
	Retry    bool
	Adapters []Weighted // models to request; none is the client's own

	// Trace supplies lengths in turn, repeatedly, and for Replay the arrival times, once. It
	// replaces PromptTokens and OutputTokens.
	Trace *Trace
	// TraceSpeed divides the times of a trace; 0 is 1.
	TraceSpeed float64

	// Stagger spreads the starts of clients over this duration, each at a random point of its
	// share. Clients with equal lengths that start together stay in lock-step, and the server
	// alternates between prefill and decode. 0 is 50 ms for each client, at most 10 s.
	Stagger  time.Duration
	Together bool // start all clients at once

	// SLO has the objectives for Summary.Goodput. It does not affect the requests.
	SLO SLO

	Seed      uint64
	IgnoreEOS bool // ask vLLM to generate the full output length

	// Duration ends the run; requests in flight are then cut off, and counted as unfinished. 0 sets
	// no limit beyond that of the phases.
	Duration time.Duration
	// Requests is the total number of requests to send, including failed ones; the run ends when
	// the last one is answered. 0 sets no limit.
	Requests int
}

const (
	staggerEach = 50 * time.Millisecond
	staggerMost = 10 * time.Second
	// maxClients limits what a mistyped number can allocate.
	maxClients = 1 << 20
	maxRate    = 1e6
	maxGroups  = 1 << 20
	// maxPhases limits the distributions that a run keeps.
	maxPhases = 256
)

// open reports whether the schedule is independent of answers.
func (l *Load) open() bool { return l.Arrival != Closed }

// phases returns the phases. The last one may be unlimited.
func (l *Load) phases() []Phase {
	switch {
	case len(l.Phases) > 0:
		return l.Phases
	case l.open():
		return []Phase{Hold(l.Rate, l.Duration)}
	}
	return []Phase{Hold(float64(l.Clients), l.Duration)}
}

// End returns when a run of the load ends, after its start, or false if it has no time limit.
func (l *Load) End() (time.Duration, bool) {
	end := l.Duration
	var sum time.Duration
	for i, p := range l.Phases {
		sum += p.Duration
		if p.Duration > 0 && i == len(l.Phases)-1 && (end == 0 || sum < end) {
			end = sum
		}
	}
	return end, end > 0
}

func (l *Load) tokensPerWord() float64 { return cmp.Or(l.TokensPerWord, 1) }
func (l *Load) groups() int            { return max(l.PrefixGroups, 1) }
func (l *Load) traceSpeed() float64    { return cmp.Or(l.TraceSpeed, 1) }

// turns returns the distribution of turns.
func (l *Load) turns() Lengths {
	if l.Turns.IsZero() {
		return Fixed(1)
	}
	return l.Turns
}

// problems collects validation errors.
type problems []error

func (p *problems) refuse(bad bool, format string, values ...any) {
	if bad {
		*p = append(*p, fmt.Errorf(format, values...))
	}
}

// Validate returns all errors of a load, joined.
func (l *Load) Validate() error {
	var p problems
	p.refuse(l.Arrival < Closed || l.Arrival > Replay, "arrival %d is unknown", int(l.Arrival))
	l.checkLevels(&p)
	l.checkLengths(&p)
	p.refuse(!stat.IsFinite(l.TokensPerWord) || l.TokensPerWord < 0, "tokens per word is %v, must be above 0", l.TokensPerWord)
	p.refuse(!(l.Cancel >= 0 && l.Cancel <= 1), "cancelled share is %v, must be 0 to 1", l.Cancel)
	p.refuse(l.Stagger < 0 || l.Duration < 0 || l.Deadline < 0, "a time of the load is negative")
	p.refuse(l.Requests < 0, "requests is %d, must be at least 0", l.Requests)
	p.refuse(l.Retry && !l.open(), "retries need an open loop: a client of a closed loop continues with its next request")
	if err := l.Think.check(); err != nil {
		p = append(p, fmt.Errorf("think time: %w", err))
	}
	for _, a := range l.Adapters {
		p.refuse(a.Model == "", "an adapter has no name")
		p.refuse(!(a.Weight > 0) || !stat.IsFinite(a.Weight), "weight of adapter %q is %v, must be above 0", a.Model, a.Weight)
	}
	return errors.Join(p...)
}

func (l *Load) checkLevels(p *problems) {
	switch {
	case l.Arrival == Replay:
		p.refuse(l.Trace == nil || !l.Trace.Timed, "the trace has no arrival times: give a rate or clients")
		p.refuse(len(l.Phases) > 0, "a replayed trace has its own arrival times, so phases do not apply")
		p.refuse(!(l.traceSpeed() > 0) || !stat.IsFinite(l.TraceSpeed), "trace speed is %v, must be above 0", l.TraceSpeed)
		return
	case len(l.Phases) > 0:
		l.checkPhases(p)
	case l.Arrival == Closed:
		p.refuse(l.Clients < 1, "clients is %d, must be at least 1", l.Clients)
		p.refuse(l.Clients > maxClients, "clients is %d, must be at most %d", l.Clients, maxClients)
	default:
		p.refuse(!(l.Rate > 0 && l.Rate <= maxRate), "rate is %v requests a second, must be above 0 and at most %.0f", l.Rate, maxRate)
	}
	p.refuse(l.Arrival == Gamma && !(l.CV > 0 && l.CV <= 100), "coefficient of variation is %v, must be above 0 and at most 100", l.CV)
}

func (l *Load) checkPhases(p *problems) {
	most, unit := maxRate, "requests a second"
	if l.Arrival == Closed {
		most, unit = maxClients, "clients"
	}
	p.refuse(len(l.Phases) > maxPhases, "%d phases exceed the limit of %d", len(l.Phases), maxPhases)
	some := false
	for i, phase := range l.Phases {
		last := i == len(l.Phases)-1
		p.refuse(phase.Duration < 0 || phase.Duration == 0 && !last, "phase %d lasts %v, must be above 0", i+1, phase.Duration)
		p.refuse(phase.Duration == 0 && phase.From != phase.To, "phase %d is a ramp without a duration", i+1)
		for _, level := range []float64{phase.From, phase.To} {
			p.refuse(!(level >= 0 && level <= most), "phase %d has %v %s, must be 0 to %.0f", i+1, level, unit, most)
			some = some || level > 0
		}
	}
	p.refuse(!some, "no phase has a level above 0")
}

func (l *Load) checkLengths(p *problems) {
	named := func(name string, lengths Lengths) {
		if err := lengths.check(); err != nil {
			*p = append(*p, fmt.Errorf("%s tokens %w", name, err))
		}
	}
	if l.Trace == nil {
		named("prompt", l.PromptTokens)
		named("output", l.OutputTokens)
		short := l.PromptTokens.least()
		p.refuse(l.SharedPrefixTokens > 0 && l.SharedPrefixTokens >= short && short > 0,
			"shared prefix of %d tokens leaves no room in a prompt of %d", l.SharedPrefixTokens, short)
		if l.PromptTokens.Shape == Lognormal && l.PromptTokens.check() == nil && l.SharedPrefixTokens > 0 {
			mean := l.PromptTokens.mean()
			p.refuse(float64(l.SharedPrefixTokens) >= mean, "shared prefix of %d tokens leaves no room in prompts of %.0f on average", l.SharedPrefixTokens, mean)
		}
	} else {
		p.refuse(len(l.Trace.Requests) == 0, "the trace contains no requests")
		p.refuse(l.SharedPrefixTokens > 0, "a trace has its own prompts, so a shared prefix does not apply")
	}
	if !l.Turns.IsZero() {
		if err := l.Turns.check(); err != nil {
			*p = append(*p, fmt.Errorf("turns %w", err))
		}
		p.refuse(l.Trace != nil && l.Turns.most() > 1, "a trace has its own turns, so further turns do not apply")
	}
	p.refuse(l.SharedPrefixTokens < 0, "shared prefix is %d tokens, must be at least 0", l.SharedPrefixTokens)
	p.refuse(l.PrefixGroups < 0 || l.PrefixGroups > maxGroups, "prefix groups is %d, must be 1 to %d", l.PrefixGroups, maxGroups)
}
