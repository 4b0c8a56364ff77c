package probe

import (
	"encoding/json"
	"time"
)

// Schema names the document that a Summary is marshalled to.
const Schema = "rooftop.load/v1"

// Score is what the requests of a run or phase came to. Requests belong to the
// phase of their intended time, output tokens to the one in which they arrived.
// The latencies of requests that were cut off are left out, except the TTFT and
// ITL they had.
type Score struct {
	Sent      int // first attempts
	Requests  int // answered in full
	Errors    int // failed for good
	Retries   int // failed attempts that were followed by another
	Cancelled int // by their client, as the load says
	Expired   int // given up at their deadline
	// NoFirstToken is how many of those given up had no output yet. They are not
	// in TTFT, which is then of the faster requests alone.
	NoFirstToken int
	Unfinished   int // cut by the end of the run

	PromptTokens int // of requests answered in full, by the server's count
	CachedTokens int // of these, found in a cache; 0 where the server does not tell
	OutputTokens int // all that arrived

	OutputPerSecond   float64 // output tokens
	RequestsPerSecond float64 // answered in full
	OfferedPerSecond  float64 // sent

	// TTFT and E2E are from the intended send time, so that what a request waited
	// for its turn is in them; TTFTSent and E2ESent are from the actual one.
	TTFT, ITL, TPOT, E2E Latency
	TTFTSent, E2ESent    Latency
	// SendLag is how much later than intended first attempts went out.
	SendLag Latency
	Goodput *Goodput // nil without objectives
}

// Summary is what a run offered and got. Rates are over Elapsed and count
// whatever arrived in it, also of requests that the end cut off.
type Summary struct {
	Started time.Time
	Elapsed time.Duration
	Clients int // of a closed loop, at most; else 0
	Arrival Arrival
	Seed    uint64
	// TokensPerWord is what prompts were written for; 0 where a character is
	// taken as a token.
	TokensPerWord float64
	Simulated     bool // the server says that it is a simulation
	Score
	Phases []PhaseSummary // of a load with several; else nil
	// Failures tells the errors apart, most frequent first.
	Failures []Failure
}

// PhaseSummary is what one phase of a run came to.
type PhaseSummary struct {
	Name               string
	From, To           time.Duration // since the start of the run
	FromLevel, ToLevel float64       // clients, or requests a second
	Score
}

// Failure is one kind of error of a run.
type Failure struct {
	Kind    string `json:"kind"` // "status 503", "connection refused", "truncated", ...
	Count   int    `json:"count"`
	Example string `json:"example"` // the first of its kind
}

// Progress is a run so far.
type Progress struct {
	Elapsed      time.Duration
	Phase        int // from 0
	InFlight     int
	Sent         int // first attempts
	Requests     int // answered in full
	Errors       int // failed attempts
	OutputTokens int // chunks of requests in flight count as one token each
	LastError    string
}

// scoreJSON is a Score with units in its names.
type scoreJSON struct {
	Sent              int      `json:"sent"`
	Requests          int      `json:"requests"`
	Errors            int      `json:"errors"`
	Retries           int      `json:"retries"`
	Cancelled         int      `json:"cancelled"`
	Expired           int      `json:"expired"`
	NoFirstToken      int      `json:"expired_without_first_token"`
	Unfinished        int      `json:"unfinished"`
	PromptTokens      int      `json:"prompt_tokens"`
	CachedTokens      int      `json:"cached_tokens"`
	OutputTokens      int      `json:"output_tokens"`
	OutputPerSecond   float64  `json:"output_tokens_per_s"`
	RequestsPerSecond float64  `json:"requests_per_s"`
	OfferedPerSecond  float64  `json:"offered_per_s"`
	TTFT              Latency  `json:"ttft"`
	ITL               Latency  `json:"itl"`
	TPOT              Latency  `json:"tpot"`
	E2E               Latency  `json:"e2e"`
	TTFTSent          Latency  `json:"ttft_from_send"`
	E2ESent           Latency  `json:"e2e_from_send"`
	SendLag           Latency  `json:"send_lag"`
	Goodput           *Goodput `json:"goodput"`
}

func (s *Score) spelled() scoreJSON {
	return scoreJSON{
		s.Sent, s.Requests, s.Errors, s.Retries, s.Cancelled, s.Expired, s.NoFirstToken, s.Unfinished,
		s.PromptTokens, s.CachedTokens, s.OutputTokens, s.OutputPerSecond, s.RequestsPerSecond, s.OfferedPerSecond,
		s.TTFT, s.ITL, s.TPOT, s.E2E, s.TTFTSent, s.E2ESent, s.SendLag, s.Goodput,
	}
}

// MarshalJSON writes the summary as rooftop.load/v1, with units in its names.
func (s Summary) MarshalJSON() ([]byte, error) {
	var perWord *float64
	if s.TokensPerWord > 0 {
		perWord = &s.TokensPerWord
	}
	return json.Marshal(struct {
		Schema  string    `json:"schema"`
		Started time.Time `json:"started"`
		Elapsed float64   `json:"elapsed_s"`
		Clients int       `json:"clients"`
		Arrival string    `json:"arrival"`
		Seed    uint64    `json:"seed"`
		PerWord *float64  `json:"tokens_per_word"`
		Sim     bool      `json:"simulated"`
		scoreJSON
		Phases   []PhaseSummary `json:"phases"`
		Failures []Failure      `json:"failures"`
	}{
		Schema, s.Started, s.Elapsed.Seconds(), s.Clients, s.Arrival.String(), s.Seed, perWord, s.Simulated, s.spelled(),
		append([]PhaseSummary{}, s.Phases...), append([]Failure{}, s.Failures...),
	})
}

// MarshalJSON writes the phase with units in its names.
func (p PhaseSummary) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name      string  `json:"name"`
		From      float64 `json:"from_s"`
		To        float64 `json:"to_s"`
		FromLevel float64 `json:"from_level"`
		ToLevel   float64 `json:"to_level"`
		scoreJSON
	}{p.Name, p.From.Seconds(), p.To.Seconds(), p.FromLevel, p.ToLevel, p.spelled()})
}
