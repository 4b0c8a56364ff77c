//go:build e2e && linux

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The README's first command: a wrong setting is found, changed, and the gain
// measured, in under two minutes, without any file of the checkout.
func TestE2EDemo(t *testing.T) {
	path := built(t)
	cmd := exec.CommandContext(testContext(t), path, "demo", "--json")
	home := t.TempDir()
	cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%v after %v: %s\n%s", err, took, stderr.Bytes(), out)
	}
	t.Logf("took %v; two minutes are promised", took)
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "..", "testdata", "schema", "event.v1.schema.json"))
	must(t, err)
	for line := range bytes.Lines(out) {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		must(t, err)
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	events := eventsOf(t, out)
	last := events[len(events)-1]
	if last.Type != "finished" || last.ExitCode != 0 || last.Gain == nil || *last.Gain < 0.3 {
		t.Fatalf("ended with %+v", last)
	}
	kept := ofType(events, "kept")
	if len(kept) == 0 || kept[0].Flag != "--max-num-seqs" || ofType(events, "verdict")[0].Direction != "better" {
		t.Errorf("kept %+v, verdicts %+v", kept, ofType(events, "verdict"))
	}
	for _, e := range ofType(events, "attached") {
		if !e.Target.Simulated {
			t.Error("a target is not marked as simulated")
		}
	}
	for _, dir := range []string{home, cmd.Dir} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left %v in %s (%v), want no file", left, dir, err)
		}
	}
	t.Logf("%d events in %.0f s; --max-num-seqs to %s; output %+.0f %%", len(events), took.Seconds(), kept[0].To, *last.Gain*100)
}
