package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestNoSecretIsRepeated checks that neither the API key nor the user's headers are shown or stored
// if a server repeats them.
func TestNoSecretIsRepeated(t *testing.T) {
	const key, own = "sk-0123456789abcdef", "tenant-9f8e7d6c"
	words := func(r *http.Request) string {
		return "no: " + r.Header.Get("Authorization") + " of " + r.Header.Get("X-Tenant")
	}
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a status": func(w http.ResponseWriter, r *http.Request) { http.Error(w, words(r), http.StatusUnauthorized) },
		"a status, cut within the key": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat("x", maxMessageRunes-10)+r.Header.Get("X-Tenant"), http.StatusUnauthorized)
		},
		"an error in the stream": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"error\":{\"message\":%q}}\n\n", words(r))
		},
		"an error in the stream, cut within the key": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"error\":{\"message\":%q}}\n\n", strings.Repeat("x", maxMessageRunes-10)+r.Header.Get("X-Tenant"))
		},
		"200 with an error": func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "{\"error\":%q}", words(r)) },
		"200 with text":     func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, words(r)) },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(answer))
			defer server.Close()
			c, err := NewClient(address(server.URL), Options{APIKey: key, Model: "m", Headers: http.Header{"X-Tenant": {own}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r := Request{Prompt: "p", MaxTokens: 4}
			record, sendErr := c.Send(t.Context(), r, func() time.Duration { return 0 })
			c.model = ""
			_, listed := c.Model(t.Context())
			for _, s := range []string{record.Error, fmt.Sprint(sendErr), fmt.Sprint(listed)} {
				if strings.Contains(s, key) || strings.Contains(s, own[:8]) {
					t.Errorf("%q", s)
				}
			}
			if record.Error == "" || sendErr == nil {
				t.Error("nothing failed: nothing was tested")
			}
		})
	}
}
