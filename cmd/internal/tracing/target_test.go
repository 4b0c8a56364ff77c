package tracing

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
)

// Processes of one program often differ only at the ends of long command lines.
func TestCandidateList(t *testing.T) {
	const command = "/usr/bin/python /opt/serve/here.py /very/long/path/of/models/tiny.gguf --port 841"
	got := candidateList([]binary.Candidate{
		{PID: 7, Command: command + "1"}, {PID: 8, Command: command + "2"}, {PID: 1234567, Command: "x " + strings.Repeat("é", 200)},
	})
	for _, want := range []string{
		"; these do:\n  --pid 7       python /opt/", "--port 8411\n", "--port 8412\n", "\n  --pid 1234567 x éé", "é…",
	} {
		if !strings.Contains(got, want) || strings.Contains(got, "\ufffd") {
			t.Errorf("%q is missing from %q", want, got)
		}
	}
	if got := candidateList(nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
