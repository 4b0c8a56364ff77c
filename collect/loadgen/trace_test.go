package loadgen

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	azureTrace = "TIMESTAMP,ContextTokens,GeneratedTokens\n" +
		"2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
	azure2024 = "TIMESTAMP,ContextTokens,GeneratedTokens\n" +
		"2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00.017335+00:00,2399,6\n"
	burstTrace = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"5,ChatGPT,472,18,490,Conversation log\n45.5,ChatGPT,1087,0,1317,Conversation log\n"
	mooncakeTrace = `{"timestamp": 27482, "input_length": 1100, "output_length": 52, "hash_ids": [46, 47, 2353]}` + "\n" +
		`{"timestamp": 30535, "input_length": 1024, "output_length": 26, "hash_ids": [46, 47]}` + "\n"
	chatTrace = `[
  {"id": "a", "conversations": [
    {"from": "system", "value": "Be brief."},
    {"from": "human", "value": "What is a roof?"},
    {"from": "gpt", "value": "A cover, of a house."},
    {"from": "human", "value": "And a top?"},
    {"from": "gpt", "value": "Its edge"},
    {"from": "human", "value": "Unanswered"}
  ]},
  {"id": "b", "conversations": [{"from": "gpt", "value": "Nobody asked"}]}
]`
)

func TestParseTrace(t *testing.T) {
	chat := []TracedTurn{{"Be brief.\nWhat is a roof?", 7}, {"And a top?", 2}}
	for _, tc := range []struct {
		name, in string
		want     Trace
	}{
		{"Azure 2023", azureTrace, Trace{Timed: true, Requests: []Traced{
			{PromptTokens: 374, OutputTokens: 44}, {At: 4314579 * time.Microsecond, PromptTokens: 396, OutputTokens: 109}}}},
		{"Azure 2024", azure2024, Trace{Timed: true, Requests: []Traced{
			{PromptTokens: 2162, OutputTokens: 5}, {At: 7405 * time.Microsecond, PromptTokens: 2399, OutputTokens: 6}}}},
		{"BurstGPT", burstTrace, Trace{Timed: true, Requests: []Traced{
			{PromptTokens: 472, OutputTokens: 18}, {At: 40500 * ms, PromptTokens: 1087}}}},
		{"Vidur", "arrived_at,num_prefill_tokens,num_decode_tokens\r\n0.5,10,20\r\n0.25,11,21\r\n", Trace{Timed: true, Requests: []Traced{
			{PromptTokens: 11, OutputTokens: 21}, {At: 250 * ms, PromptTokens: 10, OutputTokens: 20}}}},
		{"lengths alone", "ContextTokens,GeneratedTokens\n7,8\n", Trace{Requests: []Traced{{PromptTokens: 7, OutputTokens: 8}}}},
		{"Mooncake", mooncakeTrace, Trace{Timed: true, Requests: []Traced{
			{PromptTokens: 1100, OutputTokens: 52, Blocks: []uint64{46, 47, 2353}},
			{At: 3053 * ms, PromptTokens: 1024, OutputTokens: 26, Blocks: []uint64{46, 47}}}}},
		{"lines without times", "\n{\"input_length\":3,\"output_length\":4}\n\n", Trace{Requests: []Traced{{PromptTokens: 3, OutputTokens: 4}}}},
		{"ShareGPT", chatTrace, Trace{Requests: []Traced{{Turns: chat}}}},
		{"messages as lines", "\ufeff" + `{"messages":[{"role":"user","content":"And a top?"},{"role":"assistant","content":"Its edge"}]}`, Trace{Requests: []Traced{{Turns: chat[1:]}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseTrace("x", strings.NewReader(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseTraceRefuses(t *testing.T) {
	head := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for _, tc := range []struct{ name, in, want string }{
		{"empty", " \n", "x: the trace is empty"},
		{"no text", "\x00\x00", "x: this is not a text file"},
		{"header alone", head, "x: the trace contains no requests"},
		{"no column", "TIMESTAMP,Tokens\n", "x:1: the header has no column of contexttokens: give TIMESTAMP,ContextTokens,GeneratedTokens, or JSON lines"},
		{"no number", head + "2023-11-16 18:15:46,a few,4\n", `x:2: contexttokens is "a few", not a whole number`},
		{"negative", head + "1,2,3\n2,3,-1\n", "x:3: generatedtokens is -1, must be 0 to 16777216"},
		{"no time", head + "noon,2,3\n", `x:2: timestamp is "noon": give a date as 2023-11-16 18:15:46.68, or seconds`},
		{"centuries", head + "2023-11-16 18:15:46,2,3\n0001-11-16 18:15:46,2,3\n", `x:3: timestamp is "0001-11-16 18:15:46", which is years from the first`},
		{"missing field", head + "1,2\n", "x:2: column 1: wrong number of fields"},
		{"missing length", `{"timestamp":1,"input_length":5}`, "x:1: output_length is missing"},
		{"type", "{\"input_length\":5,\"output_length\":1}\n{\"input_length\":\"5\"}", "x:2: input_length is of type string, not int"},
		{"broken line", "{\"input_length\":5,\n", "x:1: unexpected end of JSON input"},
		{"blocks beyond the prompt", `{"input_length":512,"output_length":1,"hash_ids":[1,2]}`, "x:1: hash_ids has 2 blocks of 512 tokens for an input_length of 512"},
		{"some times", "{\"input_length\":1,\"output_length\":1}\n{\"input_length\":1,\"output_length\":1,\"timestamp\":3}", "x:2: timestamp: some lines have one and some have none"},
		{"list of requests", "[\n{\"input_length\":1}]", "x: entry 1: conversations is missing: a JSON list must hold conversations; write requests one per line"},
		{"list cut off", "[\n{\"conversations\":[]},\n", "x: conversation 2: the list is truncated"},
		{"no answers", `[{"conversations":[]}]`, "x: the trace contains no requests"},
		{"content in parts", "[{\"messages\":[{\"role\":\"user\",\"content\":[]}]}]", "x: conversation 1: messages.content is of type array, not string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseTrace("x", strings.NewReader(tc.in))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func FuzzParseTrace(f *testing.F) {
	for _, in := range []string{azureTrace, azure2024, burstTrace, mooncakeTrace, chatTrace, "[", "{}", "timestamp,input_length,output_length\n-1e9,1,1\n1e9,1,1"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		trace, err := ParseTrace("x", strings.NewReader(in))
		if err != nil {
			if trace != nil || strings.ContainsRune(err.Error(), '\n') && !strings.ContainsRune(in, '\n') {
				t.Errorf("got %v with error %v", trace, err)
			}
			return
		}
		last := time.Duration(0)
		tokens := 0
		for _, r := range trace.Requests {
			if r.At < last || r.PromptTokens < 0 || r.OutputTokens < 0 {
				t.Errorf("got %+v after %v", r, last)
			}
			last = r.At
			tokens += r.PromptTokens
		}
		load := Load{Arrival: Replay, Trace: trace}
		if !trace.Timed {
			load.Arrival, load.Rate = Poisson, 1
			load.Requests = len(trace.Requests)
		}
		if tokens > 1<<16 {
			return
		}
		for _, i := range take(t, load, len(trace.Requests)) {
			if i.MaxTokens < 1 || i.Prompt == "" {
				t.Errorf("got %+v", i)
			}
		}
	})
}
