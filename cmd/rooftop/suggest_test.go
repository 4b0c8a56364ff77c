package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// A recording that cannot be created is refused before anything is measured.
func TestWhereNoRecordingCanBe(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `vllm:num_requests_running{model_name="m"} 0`)
	}))
	defer s.Close()
	for path, want := range map[string]string{
		".":           "--record: . is a directory; give the name of a new file, such as run.gz",
		"gone/run.gz": "--record: there is no directory gone for run.gz; create it, or choose another one",
		"main.go":     "--record: main.go exists already",
	} {
		if _, stderr, code := call(t, nil, "diagnose", "--url", s.URL, "--record", path); code != cli.ExitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("exit code %d: %s, want %q", code, stderr, want)
		}
	}
}
