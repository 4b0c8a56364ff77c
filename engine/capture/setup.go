package capture

import "github.com/rooftop-dev/rooftop/engine"

// APIs of a request.
const (
	Chat       = "chat"       // /v1/chat/completions
	Completion = "completion" // /v1/completions
)

// Setup is what was asked, of whom, and by which rooftop. It holds no secret: of
// headers the names alone, of a prompt its digest.
type Setup struct {
	Version string // of rooftop
	Target  engine.Target
	Request *RequestSetup // nil of an observation
}

// RequestSetup is what every request of a probe asked for.
type RequestSetup struct {
	API string `json:"api"` // Chat or Completion
	// PromptSHA256 is of the prompt's bytes, behind those of a system message and a
	// line feed where there is one; in lower-case hexadecimal.
	PromptSHA256 string   `json:"prompt_sha256"`
	PromptBytes  int      `json:"prompt_bytes"`
	MaxTokens    int      `json:"max_tokens"` // 0 is the server's own limit
	Repeat       int      `json:"repeat"`     // requests in all
	Concurrency  int      `json:"concurrency"`
	HeaderNames  []string `json:"header_names"` // of headers that the user added
}
