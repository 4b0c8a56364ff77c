package probe

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// piecewise is a body with reads of given lengths, the last one repeated. It counts the reads; the
// count serves as the clock.
type piecewise struct {
	rest    string
	lengths []int
	reads   int
}

func (p *piecewise) Read(to []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := min(len(to), len(p.rest), max(1, p.lengths[0]))
	if len(p.lengths) > 1 {
		p.lengths = p.lengths[1:]
	}
	copy(to, p.rest[:n])
	p.rest = p.rest[n:]
	p.reads++
	return n, nil
}

func (p *piecewise) clock() time.Duration { return time.Duration(p.reads) }

// cut sends a request whose stream arrives in pieces. Times are the numbers of the reads.
func cut(t *testing.T, body string, lengths ...int) capture.Request {
	t.Helper()
	p := &piecewise{rest: body, lengths: lengths}
	c := newTestClient(t, Options{Model: "m"}, func(*http.Request) (*http.Response, error) {
		return answer(http.StatusOK, "text/event-stream", io.NopCloser(p)), nil
	})
	record, _ := c.Send(t.Context(), Request{MaxTokens: 8, KeepText: true}, p.clock)
	return record
}

// differs describes the differences between two records, except those that depend on the cuts.
func differs(a, b capture.Request) string {
	bare := func(r capture.Request) capture.Request {
		r.End, r.Chunks = 0, slices.Clone(r.Chunks)
		for i := range r.Chunks {
			r.Chunks[i].At = 0
		}
		return r
	}
	if reflect.DeepEqual(bare(a), bare(b)) {
		return "" // cmp.Diff takes a hundred times as long
	}
	return cmp.Diff(a, b, timeless)
}

// timeless ignores what depends on the cuts.
var timeless = cmp.Options{cmpopts.IgnoreFields(capture.Request{}, "End"), cmpopts.IgnoreFields(capture.Chunk{}, "At")}

// Streams are cut at each byte into two reads, and into single bytes: the record is the same, and
// the time of each chunk is the read with the last byte of its event.
func TestSendCutEverywhere(t *testing.T) {
	events := []string{
		": ping\n\n", "data: " + vllmChatOpens + "\n\n", "data: " + `{"choices":[{"delta":{"reasoning_content":"因"}}]}` + "\n\n",
		"id: 7\n: keep-alive\nevent: message\ndata: " + `{"choices":[{"delta":` + "\ndata: " + `{"content":"屋根🏠"}}]}` + "\n\n",
		"data: " + vllmChatToken + "\n\n", "data:" + vllmUsage + "\n\n", done,
	}
	const opens, ends = 1, 2 // these and what precedes them are no chunks, nor are the last ends events
	for _, end := range []string{"\n", "\r\n", "\r"} {
		var body string
		var last []int // offset of each chunk's last byte
		for i, event := range events {
			body += strings.ReplaceAll(event, "\n", end)
			if i > opens && i < len(events)-ends {
				// A line ends at its CR.
				last = append(last, len(body)-len(end))
			}
		}
		if len(body) > eventBufferBytes {
			t.Fatal("the stream does not fit into one read")
		}
		whole := cut(t, body, len(body))
		if whole.Error != "" || whole.Text != "屋根🏠 héllo" || whole.OutputTokens.V != 3 {
			t.Fatalf("line end %q: %+v", end, whole)
		}
		bytewise := cut(t, body, 1)
		if diff := differs(whole, bytewise); diff != "" {
			t.Errorf("line end %q, a byte at a time: %s", end, diff)
		}
		for i, chunk := range bytewise.Chunks {
			if int(chunk.At) != last[i]+1 {
				t.Errorf("line end %q, a byte at a time: chunk %d came with read %d, want %d", end, i, chunk.At, last[i]+1)
			}
		}
		for at := 1; at < len(body); at++ {
			got := cut(t, body, at, len(body))
			if diff := differs(whole, got); diff != "" {
				t.Fatalf("line end %q, cut at %d: %s", end, at, diff)
			}
			for i, chunk := range got.Chunks {
				want := time.Duration(1)
				if last[i] >= at {
					want = 2
				}
				if chunk.At != want {
					t.Fatalf("line end %q, cut at %d: chunk %d came with read %d, want %d", end, at, i, chunk.At, want)
				}
			}
		}
	}
}

// Recorded streams of real servers (testdata), complete, cut at each byte and in single bytes.
func TestSendRecorded(t *testing.T) {
	some := stat.Some
	chunks := func(kind capture.ChunkKind, bytes ...int) (all []capture.Chunk) {
		for _, n := range bytes {
			all = append(all, capture.Chunk{Kind: kind, Bytes: n})
		}
		return all
	}
	for _, tc := range []struct {
		file string
		want capture.Request
	}{
		{"llamacpp/chat.txt", capture.Request{
			Chunks: chunks(capture.Text, 4, 4, 4, 4, 4, 4), Finish: "length", PromptTokens: some(6), CachedTokens: some(0), OutputTokens: some(6),
			PrefillSeconds: some(0.023335), DecodeSeconds: some(0.045333),
		}},
		// The token with the finish reason had no text.
		{"vllm-0.32.0/chat.txt", capture.Request{
			Chunks: slices.Concat(chunks(capture.Empty, 0, 0), chunks(capture.Text, 4), chunks(capture.Empty, 0), chunks(capture.Text, 1)),
			Finish: "length", PromptTokens: some(5), OutputTokens: some(6),
		}},
		{"vllm-0.32.0/chat-continuous-usage.txt", capture.Request{
			Chunks: chunks(capture.Empty, 0, 0), Finish: "length", PromptTokens: some(5), OutputTokens: some(3),
		}},
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", tc.file))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n\n")
		tc.want.Status = http.StatusOK
		got := cut(t, body, len(body))
		if diff := cmp.Diff(tc.want, got, timeless, cmpopts.IgnoreFields(capture.Request{}, "Text"), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("%s: %s", tc.file, diff)
		}
		for at := 1; at < len(body); at++ {
			if diff := differs(got, cut(t, body, at, len(body))); diff != "" {
				t.Fatalf("%s, cut at %d: %s", tc.file, at, diff)
			}
		}
		if diff := differs(got, cut(t, body, 1)); diff != "" {
			t.Errorf("%s, a byte at a time: %s", tc.file, diff)
		}
	}
}

// For any data in any pieces there is no panic, there are at most as many chunks as messages, times
// do not decrease, and the record is the same however it is cut.
func FuzzSend(f *testing.F) {
	for _, in := range []string{
		token + token + last + usage + done, "data: " + vllmChatToken + "\r\n\r\n" + ": c\r\r" + done, token + "event: error\ndata: {\"error\":\"x\"}\n\n",
		"\ufeffdata: {}\ndata: {\"choices\":[{\"text\":\"é\"}],\"timings\":{\"prompt_ms\":1e400}}\ndata: [DONE]", `{"error":{"message":"no"}}`, "<title>", "data",
		token + usage, "data: null\n\n" + done, "data: {\"usage\":{\"completion_tokens\":-1}}\n\n" + done, token + "data: {\"cho", strings.ReplaceAll(token+token+usage+done, "\n\n", "\n"),
		`{"choices":[{"text":"a","finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, "<html><title>é</title></html>", token + last,
	} {
		f.Add(in, []byte{3, 1, 7, 200})
	}
	f.Fuzz(func(t *testing.T, body string, cuts []byte) {
		lengths := make([]int, 0, len(cuts)+1)
		for _, cut := range cuts {
			lengths = append(lengths, int(cut))
		}
		whole, got := cut(t, body, len(body)), cut(t, body, append(lengths, 1)...)
		if diff := differs(whole, got); diff != "" {
			t.Fatalf("cuts %v: %s", lengths, diff)
		}
		messages := 0
		for _, line := range strings.FieldsFunc(body, func(r rune) bool { return r == '\n' || r == '\r' }) {
			if strings.Contains(line, "data") {
				messages++
			}
		}
		if len(got.Chunks) > messages {
			t.Errorf("%d chunks in %d messages", len(got.Chunks), messages)
		}
		if len(got.Chunks) > 8*chunksPerToken+extraChunks || got.OutputTokens.V < 0 || got.PromptTokens.V < 0 {
			t.Errorf("%d chunks of a request of 8 tokens, %v and %v counted", len(got.Chunks), got.PromptTokens, got.OutputTokens)
		}
		at := got.Sent
		for _, chunk := range got.Chunks {
			if chunk.At < at {
				t.Errorf("a chunk at %d after one at %d", chunk.At, at)
			}
			at = chunk.At
		}
		if got.End < at {
			t.Errorf("the end at %d before the last chunk at %d", got.End, at)
		}
		if got.Error == "" && got.Finish == "" && !strings.Contains(body, "[DONE]") {
			t.Error("a stream without [DONE] or a finish reason passed for whole")
		}
	})
}
