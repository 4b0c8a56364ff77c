package probe

import "time"

// Intent is one request as the load wants it sent. It is a function of the load
// and its seed alone, and of nothing the server did, except that a closed loop's
// At follows the previous answer and a session's prompt contains it.
type Intent struct {
	ID           int           // counts from 0 in order of At
	At           time.Duration // intended send time, since the start of the run
	Prompt       string        // "" where Messages are set
	Messages     []Message     // of a chat; else nil
	PromptTokens int           // length aimed at; the server's count is in Result
	MaxTokens    int
	IgnoreEOS    bool
	Model        string // served name or adapter to ask for; "" is the client's own
	Session      int    // conversation it belongs to, -1 none
	Turn         int    // within the session, from 0
	// Attempt counts from 0. A request that failed and is sent again keeps its ID
	// and its At, so that what it waited is in its latency.
	Attempt int
	// CancelAfter is the number of output tokens after which the client goes
	// away; 0 is never.
	CancelAfter int
	Deadline    time.Duration // since At, after which the client goes away; 0 is none
}

// Message is one message of a chat.
type Message struct {
	Role    string `json:"role"` // "system", "user" or "assistant"
	Content string `json:"content"`
}

// Outcome is how an intended request ended.
type Outcome struct {
	At time.Duration // since the start of the run
	// OK says that it was answered in full, or that the client went away when the
	// intent said so. A client whose request failed backs off.
	OK bool
	// Refused says that the server refused the request as such, so that sending
	// it again would be answered alike; it is not retried.
	Refused bool
	Text    string // what was generated, for the next turn of a session
}
