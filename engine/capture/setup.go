package capture

import "github.com/rooftop-dev/rooftop/engine"

// APIs of a request.
const (
	Chat       = "chat"       // /v1/chat/completions
	Completion = "completion" // /v1/completions
)

// Setup describes the requests, the target, and the version of rooftop. It contains no secret: only
// the names of headers, and the digest of a prompt.
type Setup struct {
	Version string // of rooftop
	Target  engine.Target
	Request *RequestSetup // nil for an observation
}

// Record is a capture with its setup and its summary.
type Record struct {
	Setup   Setup
	Capture *Capture
	Summary *Summary
}

// RequestSetup describes the requests of a probe.
type RequestSetup struct {
	API string `json:"api"` // Chat or Completion
	// PromptSHA256 is the lower-case hexadecimal SHA-256 of the prompt, preceded by the system
	// message and a line feed if there is one.
	PromptSHA256 string   `json:"prompt_sha256"`
	PromptBytes  int      `json:"prompt_bytes"`
	MaxTokens    int      `json:"max_tokens"` // 0 is the server's own limit
	Repeat       int      `json:"repeat"`     // requests in all
	Concurrency  int      `json:"concurrency"`
	HeaderNames  []string `json:"header_names"` // of headers that the user added
}
