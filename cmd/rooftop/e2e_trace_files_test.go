//go:build e2e && linux

package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
)

// TestE2ETraceFiles writes the files of a trace, and shows its recording again with the figures
// of the live document.
func TestE2ETraceFiles(t *testing.T) {
	needsRoot(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(kind string) string { return filepath.Join(dir, "live."+kind) }
	d := drive(t, "npm-new", gguf.MoE, 1)
	r := beginTrace(t, d, "--trace", file("trace"), "--html", file("html"), "--dot", file("dot"))
	r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
	for range 3 {
		d.run(t, tracePrompt, traceTokens)
	}
	r.end(t)
	shown, err := exec.CommandContext(testContext(t), path, "trace", r.file, "--json").Output()
	var live, again map[string]any
	if err := errors.Join(err, json.Unmarshal(r.stdout.Bytes(), &live), json.Unmarshal(shown, &again)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live, again); diff != "" {
		t.Errorf("the recording shown again differs from the live document (-live +again):\n%s", diff)
	}
	for kind, want := range map[string]string{"trace": `"ph":"X"`, "html": "<svg", "dot": "digraph"} {
		text, err := os.ReadFile(file(kind))
		if n := strings.Count(string(text), want); err != nil || n == 0 || !strings.Contains(string(text), "MUL_MAT_ID") {
			t.Errorf("%s of %d bytes: %d times %s, %v", kind, len(text), n, want, err)
		}
		if kind == "trace" && !json.Valid(text) {
			t.Errorf("no JSON: %.400s", text)
		}
	}
}
