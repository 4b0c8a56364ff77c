package loadgen

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
)

// Intent is one request as the load wants it sent. It depends only on the load and its seed, not on
// the server, except that a closed loop's At follows the previous answer and a session's prompt
// contains it.
type Intent struct {
	ID           int             // counts from 0 in the order of At
	At           time.Duration   // intended send time, since the start of the run
	Prompt       string          // "" if there are Messages
	Messages     []probe.Message // of a chat; otherwise nil
	PromptTokens int             // target length; the result has the server's count
	MaxTokens    int
	IgnoreEOS    bool
	Model        string // served name or adapter; "" is the client's own
	Session      int    // conversation it belongs to, -1 for none
	Turn         int    // within the session, from 0
	// Attempt counts from 0. A failed request that is sent again keeps its ID and its At, so that
	// its latency includes the failed attempts.
	Attempt int
	// CancelAfter is the number of output tokens after which the client disconnects; 0 is never.
	CancelAfter int
	Deadline    time.Duration // after At; the client then disconnects; 0 is none
}

// Outcome is how a request ended.
type Outcome struct {
	At time.Duration // since the start of the run
	// OK reports whether the request was answered in full, or cancelled by the client as the intent
	// demands. A client whose request failed backs off.
	OK bool
	// Refused reports whether the server refused the request itself, so that it is not retried.
	Refused bool
	Text    string // what was generated, for the next turn of a session
}
