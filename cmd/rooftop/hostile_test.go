package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
)

// escapes is text that sets a terminal's title, clears it, moves its cursor and rings its bell, in both notations.
const escapes = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b\u009b2J\r\u202e\x00"

// inert fails if output does anything to a terminal except print.
func inert(t *testing.T, what, out string) {
	t.Helper()
	for i, r := range out {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) || r == unicode.ReplacementChar && !strings.HasPrefix(out[i:], "\ufffd")) {
			t.Errorf("%s: %q is printed: %.300q", what, r, out[max(0, i-60):])
			return
		}
	}
}

// No text of a server, a recording, a catalog or a stored run affects the terminal, neither in a report nor in an
// error.
func TestNothingForeignControlsTheTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			label := strings.NewReplacer("\r", "", "\n", "").Replace(escapes)
			fmt.Fprintf(w, "# HELP vllm:num_requests_running %[1]s\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"%[1]s\"} 1\n%[1]s 1\n", label)
		case "/health":
			http.Error(w, escapes, http.StatusInternalServerError)
		default:
			http.Error(w, `{"error": {"message": "`+escapes+`"}}`, http.StatusBadRequest)
		}
	}))
	defer server.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "x")
		http.Error(w, escapes, http.StatusForbidden)
	}))
	defer refusing.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	recording := rewritten(t, filepath.Join("..", "..", "testdata", "recordings", "slots4-cpu.gz"), func(h *session.Header) {
		h.Target.Model, h.Model, h.GPUWhy = escapes, "", escapes
		h.Notes = append(h.Notes, escapes)
		for i := range h.Missing {
			h.Missing[i].Reason = escapes
		}
	})
	catalog := file("hostile.yaml", "gpus:\n  - name: \"\\e]0;owned\\a\\e[2J\"\n    \"\\e[2J\": 1\n")
	for _, args := range [][]string{
		{"replay", recording}, {"replay", recording, "-v"}, {"replay", recording, "--json"},
		{"replay", file("hostile.gz", escapes)},
		{"catalog", "check", catalog}, {"catalog", "list", "--catalog", catalog}, {"catalog", "show", escapes},
		{"probe", "compare", file("hostile.json", `{"schema": "`+escapes+`"}`), file("other.json", `{"schema": "\u001b[2J\u009b"}`)},
		{"explain", escapes}, {"help", escapes}, {escapes}, {"diagnose", "--" + escapes},
		{"doctor", "--url", server.URL}, {"doctor", "--url", refusing.URL},
		{"diagnose", "--url", refusing.URL, "--duration", "8s"},
		{"probe", "--url", server.URL, "--model", "m"}, {"probe", "--url", refusing.URL, "--model", "m"},
		{"load", "--url", refusing.URL, "--duration", "1s", "--clients", "1"},
	} {
		out, errs, _ := call(t, []string{"HOME=" + dir}, args...)
		inert(t, fmt.Sprintf("%.60q, stdout", args), out)
		inert(t, fmt.Sprintf("%.60q, stderr", args), errs)
	}
}
