package vllm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

const listOfModels = `{"object":"list","data":[
 {"id":"lora-1","object":"model","root":"/loras/1","parent":"tiny"},
 {"id":"tiny","object":"model","created":1795223489,"owned_by":"vllm","root":"org/tiny","parent":null,"max_model_len":4096}]}`

func TestDiscover(t *testing.T) {
	tests := []struct {
		name    string
		answers map[string]string // by path; the others are 404
		want    facts.ServerAnswers
		missing []string // "what: reason" contains; no /server_info is none
	}{
		{
			"in production",
			map[string]string{"/v1/models": listOfModels, "/version": `{"version":"0.32.0"}`},
			facts.ServerAnswers{Version: "0.32.0", Model: "tiny", Root: "org/tiny", MaxModelLen: 4096},
			nil,
		},
		{
			"in development mode",
			map[string]string{"/v1/models": listOfModels, "/version": `{"version":"0.32.0"}`, "/server_info": string(ours(t, "server_info-0.32.0.json"))},
			facts.ServerAnswers{Version: "0.32.0", Model: "tiny", Root: "org/tiny", MaxModelLen: 4096, Args: map[string]string{
				"model": "org/tiny", "max_num_seqs": "4", "max_num_batched_tokens": "2048", "enable_chunked_prefill": "true", "async_scheduling": "false",
				"max_model_len": "4096", "dtype": "bfloat16", "enforce_eager": "true", "tensor_parallel_size": "2", "pipeline_parallel_size": "1",
				"data_parallel_size": "1", "enable_expert_parallel": "false", "api_server_count": "1", "gpu_memory_utilization": "0.92",
				"block_size": "128", "kv_cache_dtype": "auto", "enable_prefix_caching": "true", "device": "cpu",
			}},
			nil,
		},
		{
			"answers that make no sense",
			map[string]string{"/v1/models": `{"data":[{"id":7}]}`, "/version": `<html>`, "/server_info": `{"vllm_config":[1]}`},
			facts.ServerAnswers{},
			[]string{"/version: /version answered without", "/v1/models: /v1/models answered with something other", "/server_info: /server_info answered with"},
		},
		{
			"empty answers",
			map[string]string{"/v1/models": `{"data":[]}`, "/version": `{}`, "/server_info": `{"vllm_config":{"a":1}}`},
			facts.ServerAnswers{},
			[]string{"/version: ", "/v1/models: /v1/models lists no model", "/server_info: /server_info names none"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{answer: func(w http.ResponseWriter, r *http.Request) {
				body, found := tt.answers[r.URL.Path]
				if !found {
					http.NotFound(w, r)
					return
				}
				fmt.Fprint(w, body)
			}}
			facts, missing, err := Discover(t.Context(), s.client(t, collect.Secret{}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, facts); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			var got []string
			for _, m := range missing {
				got = append(got, m.What+": "+m.Reason)
				if m.Effect == "" {
					t.Errorf("%s is missing without an effect", m.What)
				}
			}
			if !slices.EqualFunc(got, tt.missing, strings.Contains) {
				t.Errorf("missing %q, want %q", got, tt.missing)
			}
			for _, secret := range []string{"s3cret"} {
				if strings.Contains(fmt.Sprint(facts, missing), secret) {
					t.Errorf("a secret of the server came through: %v", facts)
				}
			}
			// No other endpoint is requested, and only with GET.
			want := []string{"GET /version", "GET /v1/models", "GET /server_info?config_format=json"}
			if !slices.Equal(s.requests(), want) {
				t.Errorf("requests %q, want %q", s.requests(), want)
			}
		})
	}
}

func TestDiscoverWithoutTheKey(t *testing.T) {
	s := &server{answer: func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") && r.Header.Get("Authorization") != "Bearer sk-s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, listOfModels)
	}}
	_, missing, err := Discover(t.Context(), s.client(t, collect.Secret{}))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(missing, func(m engine.Missing) bool { return m.What == "/v1/models" })
	if at < 0 || !strings.Contains(missing[at].Reason, "--api-key-file") {
		t.Errorf("missing %v, want the advice to give a key", missing)
	}
	key, err := collect.NewSecret("sk-s3cret")
	if err != nil {
		t.Fatal(err)
	}
	facts, missing, err := Discover(t.Context(), s.client(t, key))
	if err != nil || facts.Model != "tiny" || strings.Contains(fmt.Sprint(facts, missing), "s3cret") {
		t.Errorf("facts %v, missing %v, %v", facts, missing, err)
	}
}

func TestDiscoverEndsWithItsContext(t *testing.T) {
	s := &server{answer: http.NotFound}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Discover(ctx, s.client(t, collect.Secret{})); !errors.Is(err, ctx.Err()) || err == nil {
		t.Errorf("error %v, want that of the context", err)
	}
}

func FuzzServerInfo(f *testing.F) {
	f.Add(ours(f, "server_info-0.32.0.json"))
	f.Add([]byte(listOfModels))
	f.Fuzz(func(t *testing.T, body []byte) {
		var facts facts.ServerAnswers
		said := answers{&facts}
		for _, read := range []func([]byte) error{said.serverInfo, said.version, func(body []byte) error { return enginepage.ParseModels(body, &facts) }} {
			_ = read(body) // it must not panic, and what it lets through is bounded
		}
		for name, value := range facts.Args {
			if value == "" || len(value) > 512 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
				t.Errorf("%s is %q", name, value)
			}
		}
	})
}
