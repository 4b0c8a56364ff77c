package loadgen

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// Schema names the document of a Summary.
const Schema = "rooftop.load/v1"

// Score has the results of a run or phase. Requests belong to the phase of their intended time,
// output tokens to the phase in which they arrived. Latencies of requests that were cut off are
// left out, except their TTFT and ITL.
type Score struct {
	Sent      int `json:"sent"`      // first attempts
	Requests  int `json:"requests"`  // answered in full
	Errors    int `json:"errors"`    // failed permanently
	Retries   int `json:"retries"`   // failed attempts that were repeated
	Cancelled int `json:"cancelled"` // by the client, as the load demands
	Expired   int `json:"expired"`   // given up at the deadline
	// NoFirstToken counts the expired requests without output. They are not in TTFT, which then
	// covers only the faster requests.
	NoFirstToken int `json:"expired_without_first_token"`
	Unfinished   int `json:"unfinished"` // cut off by the end of the run

	PromptTokens int `json:"prompt_tokens"` // of requests answered in full, by the server's count
	CachedTokens int `json:"cached_tokens"` // of these, found in a cache; 0 if the server does not report it
	OutputTokens int `json:"output_tokens"` // all that arrived

	OutputPerSecond   float64 `json:"output_tokens_per_s"`
	RequestsPerSecond float64 `json:"requests_per_s"` // answered in full
	OfferedPerSecond  float64 `json:"offered_per_s"`  // sent

	// TTFT and E2E count from the intended send time, so that they include waiting before the send;
	// TTFTSent and E2ESent count from the actual send.
	TTFT     capture.Distribution `json:"ttft"`
	ITL      capture.Distribution `json:"itl"`
	TPOT     capture.Distribution `json:"tpot"`
	E2E      capture.Distribution `json:"e2e"`
	TTFTSent capture.Distribution `json:"ttft_from_send"`
	E2ESent  capture.Distribution `json:"e2e_from_send"`
	// SendLag is the delay of first attempts after their intended send time.
	SendLag capture.Distribution `json:"send_lag"`
	Goodput *Goodput             `json:"goodput"` // nil without objectives
}

// Summary has the offered load and the results of a run; it is the document rooftop.load/v1. Rates
// are averages over Elapsed and include output of requests that were cut off at the end.
type Summary struct {
	Schema  string        `json:"schema"`
	Started time.Time     `json:"started"`
	Elapsed time.Duration `json:"elapsed_s"`
	Clients int           `json:"clients"` // of a closed loop, at most; otherwise 0
	Arrival Arrival       `json:"arrival"`
	Seed    uint64        `json:"seed"`
	// TokensPerWord is the value that prompts were written for; 0 if characters count as tokens.
	TokensPerWord float64 `json:"tokens_per_word,omitzero"`
	Simulated     bool    `json:"simulated"` // the server reports that it is a simulation
	Score
	Phases []PhaseSummary `json:"phases"` // of a load with several; otherwise nil
	// Failures counts errors by kind, the most frequent first.
	Failures []Failure `json:"failures"`
}

// PhaseSummary has the results of one phase of a run.
type PhaseSummary struct {
	Name      string        `json:"name"`
	From      time.Duration `json:"from_s"` // since the start of the run
	To        time.Duration `json:"to_s"`
	FromLevel float64       `json:"from_level"` // clients, or requests per second
	ToLevel   float64       `json:"to_level"`
	Score
}

// Failure is one kind of error of a run.
type Failure struct {
	Kind    string `json:"kind"` // "status 503", "connection refused", "truncated", ...
	Count   int    `json:"count"`
	Example string `json:"example"` // the first of its kind
}

// Progress is the state of a run.
type Progress struct {
	Elapsed      time.Duration
	Phase        int // from 0
	InFlight     int
	Sent         int // first attempts
	Requests     int // answered in full
	Errors       int // failed attempts
	OutputTokens int // a chunk of a request in flight counts as one token
	LastError    string
}
