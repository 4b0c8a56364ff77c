package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Messages as vLLM 0.32.0 sends them.
const (
	vllmToken     = `{"id":"cmpl-9a","object":"text_completion","created":1760000000,"model":"m","choices":[{"index":0,"text":" roof","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null}],"usage":null}`
	vllmLast      = `{"id":"cmpl-9a","object":"text_completion","created":1760000000,"model":"m","choices":[{"index":0,"text":"\n\u00e9","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":null}`
	vllmUsage     = `{"id":"cmpl-9a","object":"text_completion","created":1760000000,"model":"m","choices":[],"usage":{"prompt_tokens":11,"total_tokens":14,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}`
	vllmChatOpens = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}`
	vllmChatToken = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" héllo"},"logprobs":null,"finish_reason":"stop","stop_reason":2}]}`
)

func TestScanChunk(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     chunk
	}{
		{"token", vllmToken, chunk{choice: true, says: true, text: []byte(" roof")}},
		{"last", vllmLast, chunk{choice: true, says: true, finish: "length", text: []byte("\né")}},
		{"usage", vllmUsage, chunk{counted: true, tellsPrompt: true, prompt: 11, tokens: 3, cached: 8, tellsCached: true}},
		{"chat opens", vllmChatOpens, chunk{choice: true, role: true}},
		{"chat token", vllmChatToken, chunk{choice: true, says: true, finish: "stop", text: []byte(" héllo")}},
		{"reasoning", `{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"so"}}]}`, chunk{choice: true, role: true, thinks: true, thought: 2}},
		{"empty beside the role", `{"choices":[{"delta":{"role":"assistant","reasoning":"","tool_calls":[ ],"function_call":{},"refusal":null}}]}`, chunk{choice: true, role: true}},
	} {
		got, ok := scanChunk([]byte(tc.in), true)
		if !ok {
			t.Errorf("%s: goes to the full parser", tc.name)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(chunk{})); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if _, ok := scanChunk([]byte(`{"error":{"message":"x"}}`), false); ok {
		t.Error("an error is scanned")
	}
}

// What servers other than vLLM send.
func TestParseChunkTolerates(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     chunk
	}{
		{"a list of contents", `{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]}}]}`, chunk{choice: true, says: true, text: []byte("ab")}},
		{"no content in the list", `{"choices":[{"delta":{"content":[]}}]}`, chunk{choice: true}},
		{"a numeric finish reason", `{"choices":[{"text":"a","finish_reason":2}]}`, chunk{choice: true, says: true, finish: "2", text: []byte("a")}},
		{"a numeric object", `{"object":7,"choices":[{"text":"a"}]}`, chunk{choice: true, says: true, text: []byte("a")}},
		{"choices of another kind", `{"choices":{"text":"a"}}`, chunk{}},
		{"a choice of another kind", `{"choices":["a"]}`, chunk{}},
		{"a delta of another kind", `{"choices":[{"delta":"a"}]}`, chunk{choice: true}},
		{"counts with a point", `{"usage":{"prompt_tokens":3.0,"completion_tokens":2e1}}`, chunk{counted: true, tellsPrompt: true, prompt: 3, tokens: 20}},
		{"half a token", `{"usage":{"prompt_tokens":3.5,"completion_tokens":2}}`, chunk{}},
		{"an empty report is none", `{"usage":{}}`, chunk{}},
		{"a report without the output is none", `{"usage":{"prompt_tokens":3,"completion_tokens":null}}`, chunk{}},
		{"a report without the prompt", `{"usage":{"completion_tokens":3}}`, chunk{counted: true, tokens: 3}},
		{"details that are a list", `{"usage":{"prompt_tokens":3,"completion_tokens":3,"prompt_tokens_details":[]}}`, chunk{counted: true, tellsPrompt: true, prompt: 3, tokens: 3}},
		{"a count beyond belief", `{"usage":{"prompt_tokens":3,"completion_tokens":999999999999999}}`, chunk{}},
	} {
		got, err := parseChunk([]byte(tc.in), true)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(chunk{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if _, err := parseChunk([]byte(`{"usage":[1]}`), false); err == nil {
		t.Error("counts of an unknown form are taken")
	}
}

func TestScanChunkAllocates(t *testing.T) {
	for _, in := range []string{vllmToken, vllmUsage, vllmLast} {
		if n := testing.AllocsPerRun(100, func() { scanChunk([]byte(in), false) }); n > 1 {
			t.Errorf("%v allocations for %s", n, in)
		}
	}
}

// What the scanner reads is what encoding/json reads; whatever else there is it
// leaves alone.
func FuzzScanChunk(f *testing.F) {
	for _, in := range []string{
		vllmToken, vllmLast, vllmUsage, vllmChatOpens, vllmChatToken,
		`{"choices":[{"text":"a"}],"Choices":[]}`, `{"choices":[{"delta":{"role":"a","tool_calls":[{}],"reasoning":"","refusal":{ }}}]}`, `{"usage":{"prompt_tokens":3.0}}`, `{"choices":[{"delta":{"content":[{"text":"a"}]},"finish_reason":1}]}`, `{"choices":[{"delta":{"content":"b"},"text":"a"}]}`, `{"choices":null,"usage":{"prompt_tokens":-1}}`,
		`{"choices":[{"text":"a"},{"text":"b"}]}`, `{"choices":[{"text":"\ud800\udc00"}],"x":[1,-0.5e+3,{"y":true}]} `, `{"error":null,"object":"error"}`, `{"usage":{"completion_tokens":01}}`,
		`{"usage":{}}`, `{"usage":{"prompt_tokens":1,"completion_tokens":null}}`, `{"usage":{"prompt_tokens":null,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":null}}}`,
	} {
		f.Add([]byte(in), true)
		f.Add([]byte(in), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, keep bool) {
		got, ok := scanChunk(in, keep)
		if !ok {
			return
		}
		want, err := decodeChunk(in, keep)
		if err != nil {
			t.Fatalf("scanned %q, which is wrong: %v", in, err)
		}
		if len(got.text) == 0 && len(want.text) == 0 {
			got.text, want.text = nil, nil
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(chunk{})); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	})
}

func BenchmarkParseChunk(b *testing.B) {
	data := []byte(vllmToken)
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = parseChunk(data, false)
		}
	})
	b.Run("full", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = decodeChunk(data, false)
		}
	})
}
