package probe

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type event struct{ Name, Data string }

func readEvents(r io.Reader) ([]event, error) {
	var got []event
	for e := newEventReader(&timedReader{in: r, now: func() time.Duration { return 0 }}); ; {
		name, data, err := e.next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, event{string(name), string(data)})
	}
}

func TestEventReader(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []event
	}{
		{"two events", "data: a\n\ndata: b\n\n", []event{{"", "a"}, {"", "b"}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []event{{"", "a"}, {"", "b"}}},
		{"CR", "data: a\r\rdata: b\r\r", []event{{"", "a"}, {"", "b"}}},
		{"mixed ends", "data: a\r\n\ndata: b\n\r\n", []event{{"", "a"}, {"", "b"}}},
		{"comments and unknown fields", ": ping\nid: 3\nretry: 5\ndata: a\n\n: ping\n\n", []event{{"", "a"}}},
		{"data over several lines", "data: {\ndata: }\n\n", []event{{"", "{\n}"}}},
		{"first data line is empty", "data:\ndata: x\n\n", []event{{"", "\nx"}}},
		{"no space after the colon", "data:a\n\n", []event{{"", "a"}}},
		{"only one space is taken off", "data:  a\n\n", []event{{"", " a"}}},
		{"field without a colon", "data\n\n", []event{{"", ""}}},
		{"event name", "event: error\ndata: a\n\ndata: b\n\n", []event{{"error", "a"}, {"", "b"}}},
		{"name without data is not an event", "event: error\n\ndata: b\n\n", []event{{"", "b"}}},
		{"byte order mark", "\ufeffdata: a\n\n", []event{{"", "a"}}},
		{"last empty line missing", "data: a\n\ndata: [DONE]\n", []event{{"", "a"}, {"", "[DONE]"}}},
		{"no empty lines between JSON", "data: {}\ndata: {\"a\":1}\ndata: [DONE]\n\ndata: b\n\n", []event{{"", "{}"}, {"", "{\"a\":1}"}, {"", "[DONE]"}, {"", "b"}}},
		{"last line not ended", "data: a\n\ndata: [DONE]", []event{{"", "a"}, {"", "[DONE]"}}},
		{"last line cut", "data: a\n\ndata: [DO", []event{{"", "a"}}},
		{"nothing", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readEvents(strings.NewReader(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			got, err = readEvents(iotest.OneByteReader(strings.NewReader(tc.in)))
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("a byte at a time: %v\n%s", err, diff)
			}
		})
	}
}

// An event must not wait for the next one: a token would get the time of its successor.
func TestEventReaderDoesNotReadAhead(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		head := strings.NewReader("data: a" + end + end)
		e := newEventReader(&timedReader{in: io.MultiReader(head, iotest.ErrReader(errors.New("read beyond the event"))), now: func() time.Duration { return 0 }})
		_, data, err := e.next()
		if err != nil || string(data) != "a" {
			t.Errorf("line end %q: got %q, %v", end, data, err)
		}
	}
}

func TestEventReaderBoundsMemory(t *testing.T) {
	long := strings.Repeat("x", maxEventBytes)
	for name, in := range map[string]string{
		"one line":   "data: " + long + "\n\n",
		"many lines": strings.Repeat("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", maxEventBytes/50),
		"comment":    ":" + long + "\n\n",
	} {
		if _, err := readEvents(strings.NewReader(in)); !errors.Is(err, errEventTooLong) {
			t.Errorf("%s: got %v, want %v", name, err, errEventTooLong)
		}
	}
}
