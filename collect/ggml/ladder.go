package ggml

// Rung is one step of the ladder to a full trace: what this process and machine need,
// whether it is there, and the one command that gets it.
type Rung struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Needed says that nothing can be traced without it; the others add something.
	Needed bool `json:"needed"`
	// Found is what there is, Missing what a trace lacks without it; "" nothing.
	Found   string `json:"found"`
	Missing string `json:"missing,omitempty"`
	// Next is the command that gets it, "" where there is none.
	Next string `json:"next,omitempty"`
}
