package probe

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// Arrival says what makes the next request come.
type Arrival int

// Arrivals. Only the closed loop waits for the server; the others are open
// loops, whose schedule is fixed before the first request.
const (
	// Closed is a loop of clients: each sends a request, waits for its last
	// token, thinks, and sends the next. A slow server is offered less.
	Closed Arrival = iota
	// Poisson is independent arrivals at a rate.
	Poisson
	// Gamma is arrivals at a rate with gaps drawn from a gamma distribution:
	// burstier than Poisson above a CV of 1, more even below.
	Gamma
	// Constant is arrivals at equal gaps.
	Constant
	// Replay is the arrivals of a trace.
	Replay
)

var arrivalNames = [...]string{"closed", "poisson", "gamma", "constant", "trace"}

// String returns the name that ParseArrival reads.
func (a Arrival) String() string {
	if a < 0 || int(a) >= len(arrivalNames) {
		return fmt.Sprintf("arrival %d", int(a))
	}
	return arrivalNames[a]
}

// ParseArrival reads the name of an arrival.
func ParseArrival(name string) (Arrival, error) {
	for i, known := range arrivalNames {
		if name == known {
			return Arrival(i), nil
		}
	}
	return 0, fmt.Errorf("arrival is closed, poisson, gamma, constant or trace, not %q", name)
}

// Style is how prompts are written.
type Style int

const (
	// Words are common words of at most six lower-case letters, joined by single
	// blanks: about one token each. Load.TokensPerWord corrects that.
	Words Style = iota
	// Characters are printable ASCII of which one character is taken as one
	// token: exact for byte-level tokenizers without merges.
	Characters
)

// Phase is a part of a run in which the level, clients of a closed loop or
// requests a second of an open one, stays or changes linearly.
type Phase struct {
	Name     string        // for the summary; may be empty
	Duration time.Duration // of the last phase, 0 is without end
	From, To float64       // level at its start and end
}

// Hold returns a phase of one level.
func Hold(level float64, d time.Duration) Phase { return Phase{Duration: d, From: level, To: level} }

// Ramp returns a phase whose level changes linearly.
func Ramp(from, to float64, d time.Duration) Phase { return Phase{Duration: d, From: from, To: to} }

// Weighted is a model to ask for and its share among all.
type Weighted struct {
	Model  string
	Weight float64 // above 0, in any unit
}

// Load is what is offered to a server. It is a function of its fields alone,
// Seed among them: an open loop's n-th request comes at the same time with the
// same text and lengths in every run, a closed loop's client sends the same n-th
// request, whatever the server did in between. (The later turns of a session
// follow its answers and contain them.) So a second run with the same seed finds
// the first one's prompts in the cache of a server that stayed up; give it
// another seed.
type Load struct {
	Arrival Arrival
	Clients int     // of a closed loop, at least 1
	Rate    float64 // of an open loop: requests a second on average, above 0
	// CV is the coefficient of variation of a Gamma arrival's gaps, above 0: 1 is
	// Poisson. The burstiness of vLLM's own benchmark is 1/CV².
	CV float64
	// Phases, where there are any, replace Clients or Rate.
	Phases []Phase

	// PromptTokens is the length of a prompt, shared prefix included; of a
	// session, that of its first turn.
	PromptTokens Lengths
	OutputTokens Lengths
	Style        Style
	// TokensPerWord is what the server's tokenizer makes of a word of Words, with
	// the blank before it; 0 is 1. Summary.PromptTokens is what it counted.
	TokensPerWord float64
	Chat          bool // messages for a chat template instead of a plain prompt

	// SharedPrefixTokens begin every prompt of a group. What follows is unique to
	// the request, so that nothing but this prefix, and of a session what was
	// said before, can be found in a prefix cache.
	SharedPrefixTokens int
	PrefixGroups       int // how many different prefixes; 0 is 1
	// PrefixZipf makes group i as likely as 1/(i+1)^PrefixZipf; 0 is equally.
	PrefixZipf float64

	// Turns is how many requests a session has, each with what was said before in
	// its prompt; the zero value is 1. Rate counts requests, so that sessions
	// start at Rate over the mean of Turns.
	Turns Lengths
	// TurnTokens is what a later turn adds; the zero value is as much as the
	// first turn's prompt without the shared prefix.
	TurnTokens Lengths
	// Think is the pause between a request's last token and the next request of
	// the same client or session.
	Think Delay

	Cancel   float64       // share of requests that are cancelled after a drawn number of tokens
	Deadline time.Duration // after which a client gives a request up, from its intended time; 0 is none
	// Retry sends a failed request of an open loop again, after about 100 ms (half
	// to all of it, drawn) and twice as long after each further failure up to 2 s,
	// until its deadline and at most 99 times. It repeats none that the server
	// refused as such (status 400, 401, 403, 404, 422), and keeps at most 16384
	// waiting.
	Retry    bool
	Adapters []Weighted // models to ask for; none is the client's own

	// Trace gives lengths in turn, over and over, and with Replay the arrivals,
	// once. It replaces PromptTokens and OutputTokens.
	Trace *Trace
	// TraceSpeed divides the times of a trace; 0 is 1.
	TraceSpeed float64

	// Stagger spreads the starts of clients over this time, each at a drawn point
	// of its share: clients of equal lengths that start together stay in
	// lock-step, and the server swings between prefill and decode. 0 is 50 ms for
	// each client, at most 10 s.
	Stagger  time.Duration
	Together bool // start clients at once

	// SLO is what Summary.Goodput holds requests against; it changes nothing that
	// is offered.
	SLO SLO

	Seed      uint64
	IgnoreEOS bool // ask vLLM to generate the full output length

	// Duration ends the run; what is in flight then is cut, and counted as
	// unfinished. 0 sets no limit beyond that of the phases.
	Duration time.Duration
	// Requests is how many are sent in all, failed ones included; the run ends
	// when the last has its answer. 0 sets no limit.
	Requests int
}

const (
	staggerEach = 50 * time.Millisecond
	staggerMost = 10 * time.Second
	// maxClients bounds what a mistyped number can allocate.
	maxClients = 1 << 20
	maxRate    = 1e6
	maxGroups  = 1 << 20
	// maxPhases bounds the distributions that a run keeps.
	maxPhases = 256
)

// open says that the schedule does not wait for answers.
func (l *Load) open() bool { return l.Arrival != Closed }

// phases returns the phases, of which the last may be without end.
func (l *Load) phases() []Phase {
	switch {
	case len(l.Phases) > 0:
		return l.Phases
	case l.open():
		return []Phase{Hold(l.Rate, l.Duration)}
	}
	return []Phase{Hold(float64(l.Clients), l.Duration)}
}

// End returns when a run of the load ends by the clock, since its start; false
// where it does not.
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

// problems collects what is wrong.
type problems []error

func (p *problems) refuse(bad bool, format string, values ...any) {
	if bad {
		*p = append(*p, fmt.Errorf(format, values...))
	}
}

// Validate says what is wrong with a load, all of it at once.
func (l *Load) Validate() error {
	var p problems
	p.refuse(l.Arrival < Closed || l.Arrival > Replay, "arrival %d is unknown", int(l.Arrival))
	l.checkLevels(&p)
	l.checkLengths(&p)
	p.refuse(!finite(l.TokensPerWord) || l.TokensPerWord < 0, "tokens per word is %v: above 0", l.TokensPerWord)
	p.refuse(!(l.Cancel >= 0 && l.Cancel <= 1), "cancelled share is %v: 0 to 1", l.Cancel)
	p.refuse(l.Stagger < 0 || l.Duration < 0 || l.Deadline < 0, "a time of the load is negative")
	p.refuse(l.Requests < 0, "requests is %d: at least 0", l.Requests)
	p.refuse(l.Retry && !l.open(), "retries belong to an open loop: a client of a closed one goes on with its next request")
	if err := l.Think.check(); err != nil {
		p = append(p, fmt.Errorf("think time: %w", err))
	}
	for _, a := range l.Adapters {
		p.refuse(a.Model == "", "an adapter has no name")
		p.refuse(!(a.Weight > 0) || !finite(a.Weight), "weight of adapter %q is %v: above 0", a.Model, a.Weight)
	}
	return errors.Join(p...)
}

func (l *Load) checkLevels(p *problems) {
	switch {
	case l.Arrival == Replay:
		p.refuse(l.Trace == nil || !l.Trace.Timed, "the trace has no arrival times: give a rate or clients")
		p.refuse(len(l.Phases) > 0, "a replayed trace has its own arrivals: no phases")
		p.refuse(!(l.traceSpeed() > 0) || !finite(l.TraceSpeed), "trace speed is %v: above 0", l.TraceSpeed)
		return
	case len(l.Phases) > 0:
		l.checkPhases(p)
	case l.Arrival == Closed:
		p.refuse(l.Clients < 1, "clients is %d: at least 1", l.Clients)
		p.refuse(l.Clients > maxClients, "clients is %d: at most %d", l.Clients, maxClients)
	default:
		p.refuse(!(l.Rate > 0 && l.Rate <= maxRate), "rate is %v requests a second: above 0, at most %.0f", l.Rate, maxRate)
	}
	p.refuse(l.Arrival == Gamma && !(l.CV > 0 && l.CV <= 100), "coefficient of variation is %v: above 0, at most 100", l.CV)
}

func (l *Load) checkPhases(p *problems) {
	most, unit := maxRate, "requests a second"
	if l.Arrival == Closed {
		most, unit = maxClients, "clients"
	}
	p.refuse(len(l.Phases) > maxPhases, "there are %d phases: at most %d", len(l.Phases), maxPhases)
	some := false
	for i, phase := range l.Phases {
		last := i == len(l.Phases)-1
		p.refuse(phase.Duration < 0 || phase.Duration == 0 && !last, "phase %d lasts %v: above 0", i+1, phase.Duration)
		p.refuse(phase.Duration == 0 && phase.From != phase.To, "phase %d is a ramp without end", i+1)
		for _, level := range []float64{phase.From, phase.To} {
			p.refuse(!(level >= 0 && level <= most), "phase %d has %v %s: 0 to %.0f", i+1, level, unit, most)
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
			"shared prefix of %d tokens leaves nothing of a prompt of %d", l.SharedPrefixTokens, short)
		if l.PromptTokens.Shape == Lognormal && l.PromptTokens.check() == nil && l.SharedPrefixTokens > 0 {
			mean := l.PromptTokens.mean()
			p.refuse(float64(l.SharedPrefixTokens) >= mean, "shared prefix of %d tokens leaves nothing of prompts of %.0f on average", l.SharedPrefixTokens, mean)
		}
	} else {
		p.refuse(len(l.Trace.Requests) == 0, "the trace holds no request")
		p.refuse(l.SharedPrefixTokens > 0, "a trace has prompts of its own: no shared prefix")
	}
	if !l.Turns.IsZero() {
		if err := l.Turns.check(); err != nil {
			*p = append(*p, fmt.Errorf("turns %w", err))
		}
		p.refuse(l.Trace != nil && l.Turns.most() > 1, "a trace has turns of its own: no further ones")
	}
	if !l.TurnTokens.IsZero() {
		named("turn", l.TurnTokens)
	}
	p.refuse(l.SharedPrefixTokens < 0, "shared prefix is %d tokens: at least 0", l.SharedPrefixTokens)
	p.refuse(l.PrefixGroups < 0 || l.PrefixGroups > maxGroups, "prefix groups is %d: 1 to %d", l.PrefixGroups, maxGroups)
	p.refuse(!(l.PrefixZipf >= 0 && l.PrefixZipf <= 10), "Zipf exponent of the groups is %v: 0 to 10", l.PrefixZipf)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
