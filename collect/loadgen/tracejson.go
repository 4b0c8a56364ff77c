package loadgen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// traceLine is one line of a JSON trace.
type traceLine struct {
	Timestamp     *float64  `json:"timestamp"` // milliseconds
	InputLength   *int      `json:"input_length"`
	OutputLength  *int      `json:"output_length"`
	HashIDs       []uint64  `json:"hash_ids"`
	Conversations []message `json:"conversations"`
	Messages      []message `json:"messages"`
}

// message is one message of a recorded conversation, in either format.
type message struct {
	From    string `json:"from"`
	Value   string `json:"value"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

// parseLines parses JSON lines of requests or conversations.
func parseLines(in *bufio.Reader) (*Trace, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineBytes)
	t := &Trace{Timed: true}
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var line traceLine
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, &lineError{n, jsonError(err)}
		}
		request, timed, err := line.request(n)
		if err != nil {
			return nil, err
		}
		if len(t.Requests) > 0 && timed != t.Timed {
			return nil, wrongAt(n, "timestamp: some lines have one and some have none")
		}
		t.Timed = timed
		if request.Turns == nil || len(request.Turns) > 0 {
			t.Requests = append(t.Requests, request)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, wrongAt(n+1, "longer than %d MiB", maxLineBytes>>20)
	}
	return t, lines.Err()
}

// request returns the request of a line. For a conversation without answers, Turns is empty but not
// nil.
func (l *traceLine) request(line int) (request Traced, timed bool, err error) {
	if l.Conversations != nil || l.Messages != nil {
		return Traced{Turns: turnsOf(append(l.Conversations, l.Messages...))}, false, nil
	}
	for _, field := range []struct {
		name  string
		value *int
		to    *int
	}{{"input_length", l.InputLength, &request.PromptTokens}, {"output_length", l.OutputLength, &request.OutputTokens}} {
		if field.value == nil {
			return Traced{}, false, wrongAt(line, "%s is missing", field.name)
		}
		if err := checkTokens(line, field.name, *field.value); err != nil {
			return Traced{}, false, err
		}
		*field.to = *field.value
	}
	if l.Timestamp != nil {
		if !(math.Abs(*l.Timestamp) < maxTraceSpan.Seconds()*1e3) {
			return Traced{}, false, wrongAt(line, "timestamp is %v ms, must be a time since the start of the trace", *l.Timestamp)
		}
		request.At = time.Duration(math.Round(*l.Timestamp * float64(time.Millisecond)))
	}
	if blocks := (request.PromptTokens + BlockTokens - 1) / BlockTokens; len(l.HashIDs) > max(1, blocks) {
		return Traced{}, false, wrongAt(line, "hash_ids has %d blocks of %d tokens for an input_length of %d", len(l.HashIDs), BlockTokens, request.PromptTokens)
	}
	request.Blocks = l.HashIDs
	return request, l.Timestamp != nil, nil
}

// turnsOf returns the turns of a conversation: the user's text up to each answer, with the system
// prompt before the first.
func turnsOf(messages []message) []TracedTurn {
	turns := []TracedTurn{}
	said := ""
	for _, m := range messages {
		who, text := m.From+m.Role, m.Value+m.Content
		switch {
		case who == "human" || who == "user" || who == "system":
			if said != "" && text != "" {
				said += "\n"
			}
			said += text
		case said != "":
			turns = append(turns, TracedTurn{Text: said, OutputTokens: max(1, pieces(text))})
			said = ""
		}
	}
	return turns
}

// jsonError names the field with the wrong type.
func jsonError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return fmt.Errorf("%s is of type %s, not %s", kind.Field, kind.Value, kind.Type)
	}
	return err
}

// parseConversations parses a JSON list of conversations. Errors name the conversation, counted from 1.
func parseConversations(in io.Reader) (*Trace, error) {
	decoder := json.NewDecoder(in)
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	t := &Trace{}
	n := 1
	for ; decoder.More(); n++ {
		var line traceLine
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("conversation %d: %w", n, unexpectedEnd(jsonError(err)))
		}
		if line.Conversations == nil && line.Messages == nil {
			return nil, fmt.Errorf("entry %d: conversations is missing: a JSON list must hold conversations; write requests one per line", n)
		}
		if turns := turnsOf(append(line.Conversations, line.Messages...)); len(turns) > 0 {
			t.Requests = append(t.Requests, Traced{Turns: turns})
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("after conversation %d: %w", n-1, unexpectedEnd(err))
	}
	return t, nil
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the list is truncated")
	}
	return err
}
