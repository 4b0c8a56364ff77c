package sglang

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/facts"
)

func TestServerInfo(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("testdata", "server_info-0.5.23.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got facts.ServerAnswers
	if err := info(body, &got); err != nil {
		t.Fatal(err)
	}
	want := facts.ServerAnswers{Version: "0.5.23", Args: map[string]string{
		"max_num_seqs": "4", "num_gpu_blocks_override": "8192", "max_num_batched_tokens": "4096", "gpu_memory_utilization": "0.95",
		"enable_prefix_caching": "true", "enforce_eager": "true", "async_scheduling": "false", "tensor_parallel_size": "1",
		"pipeline_parallel_size": "1", "data_parallel_size": "1", "kv_cache_dtype": "auto", "dtype": "bfloat16", "device": "cpu",
		"api_server_count": "1", "max_loras": "8",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Slots that the launch leaves open are those that the scheduler took.
	open := facts.ServerAnswers{}
	if err := info([]byte(`{"version":"0.5.3","max_running_requests":null,"internal_states":[{"effective_max_running_requests_per_dp":2048}]}`), &open); err != nil || open.Args["max_num_seqs"] != "2048" {
		t.Errorf("slots %q, %v", open.Args["max_num_seqs"], err)
	}
	// They are one rank's, and so is the chunk of a prefill as SGLang resolved it: the flags are of all attention ranks.
	for _, tt := range []struct{ body, slots, budget string }{
		{`{"attn_dp_size":4,"dp_size":1,"enable_dp_attention":true,"max_running_requests":66,"chunked_prefill_size":2048,"internal_states":[{"effective_max_running_requests_per_dp":16}]}`, "66", "8192"},
		{`{"attn_dp_size":4,"dp_size":1,"max_running_requests":null,"chunked_prefill_size":-1,"internal_states":[{"effective_max_running_requests_per_dp":2048}]}`, "8192", "-1"},
		{`{"dp_size":2,"enable_dp_attention":true,"max_running_requests":64,"chunked_prefill_size":2048,"internal_states":[{"effective_max_running_requests_per_dp":20}]}`, "40", "4096"},
		{`{"dp_size":2,"enable_dp_attention":false,"max_running_requests":64,"chunked_prefill_size":2048,"internal_states":[{"effective_max_running_requests_per_dp":64}]}`, "64", "2048"},
	} {
		var got facts.ServerAnswers
		if err := info([]byte(tt.body), &got); err != nil || got.Args["max_num_seqs"] != tt.slots || got.Args["max_num_batched_tokens"] != tt.budget {
			t.Errorf("%s: %v, %v", tt.body, got.Args, err)
		}
	}
	for _, bad := range []string{"", "[]", "{}", `{"detail":"Not Found"}`} {
		if err := info([]byte(bad), new(facts.ServerAnswers)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzServerInfo(f *testing.F) {
	f.Add([]byte(`{"version":"0.5.23","tp_size":1,"internal_states":[{}]}`))
	f.Fuzz(func(_ *testing.T, body []byte) { _ = info(body, new(facts.ServerAnswers)) })
}
