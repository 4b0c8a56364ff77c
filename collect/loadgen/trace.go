package loadgen

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode"
)

// Trace is a recorded load.
type Trace struct {
	Timed    bool     // requests have arrival times
	Requests []Traced // in order of At
}

// Traced is one request or one conversation of a trace.
type Traced struct {
	At           time.Duration // since the first
	PromptTokens int
	OutputTokens int
	// Blocks identify the content of each BlockTokens tokens of the prompt: equal blocks have equal
	// text.
	Blocks []uint64
	// Turns are the texts of a conversation; they replace the lengths.
	Turns []TracedTurn
}

// TracedTurn is one request of a conversation.
type TracedTurn struct {
	Text         string // of the user
	OutputTokens int    // of the recorded answer, estimated from its text
}

// BlockTokens is the number of tokens of a block, as in the Mooncake traces (Qin et al., FAST
// 2025).
const BlockTokens = 512

// maxLineBytes limits one line of a trace.
const maxLineBytes = 64 << 20

// ParseTrace parses a recorded load in one of these public formats, detected by the first
// character:
//
//   - CSV with a header: TIMESTAMP, ContextTokens, GeneratedTokens (Azure LLM
//     inference traces), or the columns of BurstGPT and of Vidur. Times are dates
//     or seconds; without a column of times the trace has none.
//   - JSON lines with timestamp in milliseconds, input_length, output_length and
//     hash_ids (Mooncake); timestamp and hash_ids may be missing from all.
//   - conversations with their texts (ShareGPT): {"conversations": [{"from",
//     "value"}]} or {"messages": [{"role", "content"}]}, as a list or as lines.
//     Output lengths are estimated from the answers; there are no times.
//
// name is the name of the file for errors, which include the line and the field.
func ParseTrace(name string, r io.Reader) (*Trace, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	first, err := firstByte(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var t *Trace
	switch first {
	case '[':
		t, err = parseConversations(in)
	case '{':
		t, err = parseLines(in)
	default:
		t, err = parseCSV(in)
	}
	var at *lineError
	switch {
	case errors.As(err, &at):
		return nil, fmt.Errorf("%s:%d: %w", name, at.line, at.err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(t.Requests) == 0:
		return nil, fmt.Errorf("%s: the trace contains no requests", name)
	}
	slices.SortStableFunc(t.Requests, func(a, b Traced) int { return cmp.Compare(a.At, b.At) })
	begin := t.Requests[0].At
	for i := range t.Requests {
		t.Requests[i].At -= begin
	}
	return t, nil
}

// firstByte returns the first byte that is not white space, without consuming it.
func firstByte(in *bufio.Reader) (byte, error) {
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = in.Discard(3)
	}
	for {
		b, err := in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return 0, errors.New("the trace is empty")
		case err != nil:
			return 0, err
		case b > ' ':
			return b, in.UnreadByte()
		case !unicode.IsSpace(rune(b)): // as in /dev/zero, which has no end
			return 0, errors.New("this is not a text file")
		}
	}
}

// lineError is an error in a line, counted from 1.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }

func (e *lineError) Unwrap() error { return e.err }

func wrongAt(line int, format string, values ...any) error {
	return &lineError{line, fmt.Errorf(format, values...)}
}

// checkTokens returns an error for an implausible length. Zero is valid: such a request is sent
// with one token.
func checkTokens(line int, field string, n int) error {
	if n < 0 || n > MaxTokens {
		return wrongAt(line, "%s is %d, must be 0 to %d", field, n, MaxTokens)
	}
	return nil
}
