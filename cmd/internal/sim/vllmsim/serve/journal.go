package serve

import (
	"encoding/json"
	"sync"
	"time"
)

// journalLines is the maximum number of lines: the last hours of a demonstration, or the last minutes of a heavy
// load.
const journalLines = 1 << 14

// entry is one line of the journal without its time and kind. Fields that a kind does not have are omitted.
type entry struct {
	Request  string  `json:"request,omitempty"`
	Endpoint string  `json:"endpoint,omitempty"`
	Status   int     `json:"status,omitempty"`
	Message  string  `json:"message,omitempty"`
	Prompt   int     `json:"prompt_tokens,omitempty"`
	Output   int     `json:"output_tokens,omitempty"`
	Cached   int     `json:"cached_tokens,omitempty"`
	Preempts int     `json:"preemptions,omitempty"`
	TTFT     float64 `json:"ttft_s,omitempty"` // simulated seconds
	E2E      float64 `json:"e2e_s,omitempty"`
	Finish   string  `json:"finish_reason,omitempty"`
	Fault    string  `json:"fault,omitempty"`
	Scale    float64 `json:"scale,omitempty"`
	Address  string  `json:"address,omitempty"`
	Command  string  `json:"command,omitempty"`
}

// line is one line of the journal. T is simulated seconds of the host's clock.
type line struct {
	T       float64   `json:"t"`
	Kind    string    `json:"kind"`
	Started time.Time `json:"life"` // when the server was started
	entry
}

// journal keeps the latest events of a host.
type journal struct {
	mu    sync.Mutex
	lines [][]byte // a ring once it is full
	next  int
}

// add appends a line.
func (j *journal) add(t time.Duration, kind string, started time.Time, e entry) {
	text, err := json.Marshal(line{T: t.Seconds(), Kind: kind, Started: started.UTC().Round(time.Millisecond), entry: e})
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) < journalLines {
		j.lines = append(j.lines, text)
		return
	}
	j.lines[j.next] = text
	j.next = (j.next + 1) % journalLines
}

// appendTo appends all lines, oldest first.
func (j *journal) appendTo(b []byte) []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.lines {
		b = append(b, j.lines[(j.next+i)%len(j.lines)]...)
		b = append(b, '\n')
	}
	return b
}
