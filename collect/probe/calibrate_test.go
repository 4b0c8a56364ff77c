package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
)

// someWords have different lengths, so that characters and words have different counts.
var someWords = strings.Fields(strings.Repeat("about car the horse ", 32))

func TestCalibrate(t *testing.T) {
	words := func(s string) int { return len(strings.Fields(s)) }
	for _, tc := range []struct {
		name       string
		tokenize   bool
		count      func(string) int
		want       float64
		characters bool
		source     string
	}{
		{"a token a word, one before the text", true, func(s string) int { return 1 + words(s) }, 1, false, "/tokenize"},
		{"three tokens for two words", true, func(s string) int { return words(s) * 3 / 2 }, 1.5, false, "/tokenize"},
		{"bytes", true, func(s string) int { return len(s) }, 0, true, "/tokenize"},
		{"bytes after a first token", true, func(s string) int { return 1 + len(s) }, 0, true, "/tokenize"},
		{"no such path", false, func(s string) int { return 2 * words(s) }, 2, false, "a request of 64 words"},
		{"bytes by a request", false, func(s string) int { return 1 + len(s) }, 0, true, "a request of 64 words"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newTestClient(t, Options{Model: "m"}, func(r *http.Request) (*http.Response, error) {
				var body struct{ Prompt string }
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				n := tc.count(body.Prompt)
				switch {
				case r.URL.Path == "/tokenize" && tc.tokenize:
					return answer(http.StatusOK, "application/json", text(fmt.Sprintf(`{"count":%d,"max_model_len":2048}`, n))), nil
				case r.URL.Path == "/v1/completions":
					return answer(http.StatusOK, "text/event-stream", text(token+fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, n)+"\n\n"+done)), nil
				}
				return answer(http.StatusNotFound, "application/json", text(`{"detail":"Not Found"}`)), nil
			})
			got, err := c.Calibrate(t.Context(), someWords)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want > 0 && math.Abs(got.TokensPerWord-tc.want) > 0.01 || got.Characters != tc.characters || got.Source != tc.source {
				t.Errorf("got %+v, want %v, %v, %s", got, tc.want, tc.characters, tc.source)
			}
		})
	}
	for name, f := range map[string]transport{
		"unreachable":     func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"no count at all": streaming(token + done),
		"nonsense": func(*http.Request) (*http.Response, error) {
			return answer(http.StatusOK, "application/json", text(`{"count":1}`)), nil
		},
	} {
		c := newTestClient(t, Options{Model: "m"}, f)
		if got, err := c.Calibrate(t.Context(), someWords); err == nil || !strings.HasPrefix(err.Error(), "count tokens: ") {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}
