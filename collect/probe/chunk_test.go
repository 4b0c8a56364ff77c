package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Messages as vLLM 0.32.0 sends them.
const (
	vllmToken     = `{"id":"cmpl-9a","object":"text_completion","created":1760000000,"model":"m","choices":[{"index":0,"text":" roof","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null}],"usage":null}`
	vllmLast      = `{"id":"cmpl-9a","object":"text_completion","created":1760000000,"model":"m","choices":[{"index":0,"text":"\n\u00e9","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":null}`
	vllmUsage     = `{"id":"cmpl-9a","object":"text_completion","created":1760000000,"model":"m","choices":[],"usage":{"prompt_tokens":11,"total_tokens":14,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}`
	vllmChatOpens = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}`
	vllmChatToken = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" héllo"},"logprobs":null,"finish_reason":"stop","stop_reason":2}]}`
)

// What servers send beside the common forms, which TestSendEngines has.
func TestParseChunkTolerates(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     chunk
	}{
		{"an end with text", vllmLast, chunk{choice: true, says: true, finish: "length", text: []byte("\né")}},
		{"empty beside the role", `{"choices":[{"delta":{"role":"assistant","reasoning":"","tool_calls":[ ],"function_call":{},"refusal":null}}]}`, chunk{choice: true, role: true}},
		{"a list of contents", `{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]}}]}`, chunk{choice: true, says: true, text: []byte("ab")}},
		{"no content in the list", `{"choices":[{"delta":{"content":[]}}]}`, chunk{choice: true}},
		{"a numeric finish reason", `{"choices":[{"text":"a","finish_reason":2}]}`, chunk{choice: true, says: true, finish: "2", text: []byte("a")}},
		{"a numeric object", `{"object":7,"choices":[{"text":"a"}]}`, chunk{choice: true, says: true, text: []byte("a")}},
		{"choices of another kind", `{"choices":{"text":"a"}}`, chunk{}},
		{"a choice of another kind", `{"choices":["a"]}`, chunk{}},
		{"a delta of another kind", `{"choices":[{"delta":"a"}]}`, chunk{choice: true}},
		{"counts with a point", `{"usage":{"prompt_tokens":3.0,"completion_tokens":2e1}}`, chunk{prompt: stat.Some(3), tokens: stat.Some(20)}},
		{"half a token", `{"usage":{"prompt_tokens":3.5,"completion_tokens":2}}`, chunk{}},
		{"an empty report is none", `{"usage":{}}`, chunk{}},
		{"a report without the output is none", `{"usage":{"prompt_tokens":3,"completion_tokens":null}}`, chunk{}},
		{"a report without the prompt", `{"usage":{"completion_tokens":3}}`, chunk{tokens: stat.Some(3)}},
		{"details that are a list", `{"usage":{"prompt_tokens":3,"completion_tokens":3,"prompt_tokens_details":[]}}`, chunk{prompt: stat.Some(3), tokens: stat.Some(3)}},
		{"a count beyond belief", `{"usage":{"prompt_tokens":3,"completion_tokens":999999999999999}}`, chunk{}},
	} {
		got, err := parseChunk([]byte(tc.in))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(chunk{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if _, err := parseChunk([]byte(`{"usage":[1]}`)); err == nil {
		t.Error("counts of an unknown form are taken")
	}
}
