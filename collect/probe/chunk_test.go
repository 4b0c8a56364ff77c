package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{"token", vllmToken, chunk{choice: true, text: []byte(" roof")}},
		{"last", vllmLast, chunk{choice: true, finish: "length", text: []byte("\né")}},
		{"usage", vllmUsage, chunk{counted: true, prompt: 11, output: 3, cached: 8}},
		{"chat opens", vllmChatOpens, chunk{choice: true, opens: true}},
		{"chat token", vllmChatToken, chunk{choice: true, finish: "stop", text: []byte(" héllo")}},
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
		`{"choices":[{"text":"a"}],"Choices":[]}`, `{"choices":[{"delta":{"content":"b"},"text":"a"}]}`, `{"choices":null,"usage":{"prompt_tokens":-1}}`,
		`{"choices":[{"text":"a"},{"text":"b"}]}`, `{"choices":[{"text":"\ud800\udc00"}],"x":[1,-0.5e+3,{"y":true}]} `, `{"error":null,"object":"error"}`, `{"usage":{"completion_tokens":01}}`,
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
