package probe

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGreedy(t *testing.T) {
	for _, c := range []struct {
		name     string
		answer   string
		logprobs bool // the server knows them
		want     Answer
	}{
		{"with log probabilities", `{"choices":[{"text":" a b","logprobs":{"tokens":[" a"," b"],"token_logprobs":[-0.25,-1.5]}}]}`, true,
			Answer{Text: " a b", Tokens: []string{" a", " b"}, Logprobs: []float64{-0.25, -1.5}}},
		{"none asked for after a refusal", `{"choices":[{"text":" a b","logprobs":null}]}`, false, Answer{Text: " a b"}},
		{"a token without", `{"choices":[{"text":"a","logprobs":{"tokens":["a"],"token_logprobs":[null]}}]}`, true, Answer{Text: "a", Tokens: []string{"a"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked map[string]any
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				if asked["temperature"] != 0.0 || asked["max_tokens"] != 8.0 || asked["model"] != "m" || asked["seed"] != nil {
					t.Errorf("request %v", asked)
				}
				if !c.logprobs && asked["logprobs"] != nil {
					http.Error(w, `{"error":{"message":"logprobs are limited to 0"}}`, http.StatusBadRequest)
					return
				}
				_, _ = w.Write([]byte(c.answer))
			}))
			defer server.Close()
			client, err := NewClient(address(server.URL), Options{Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			got, err := client.Greedy(t.Context(), "x", 8)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := parseAnswer([]byte(`{"choices":[]}`)); err == nil {
		t.Error("an answer without a choice is taken")
	}
}
