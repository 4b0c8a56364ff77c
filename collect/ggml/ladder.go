package ggml

// Rung is one requirement of a full trace: what this process and machine need, whether it is
// there, and the one command that gets it.
type Rung struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Needed reports whether nothing can be traced without it; other rungs only add something.
	Needed bool `json:"needed"`
	// Found is what there is, Missing what a trace lacks without it; "" is nothing.
	Found   string `json:"found"`
	Missing string `json:"missing,omitempty"`
	// Next is the command that gets it, "" if there is none.
	Next string `json:"next,omitempty"`
}
