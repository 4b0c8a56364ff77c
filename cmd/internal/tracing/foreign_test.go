package tracing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// TestARecordingThatIsAbsentNamesItsPart checks that the partial recording of a killed trace is
// named if the recording does not exist.
func TestARecordingThatIsAbsentNamesItsPart(t *testing.T) {
	dir := t.TempDir()
	part := filepath.Join(dir, "cut.partial.jsonl.gz")
	if err := os.WriteFile(part, []byte("anything"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "cut.jsonl.gz")
	_, errs, code := call(t, whole)
	if code != cli.ExitUsage || !strings.Contains(errs, "no such file") || !strings.Contains(errs, part+" exists") || !strings.Contains(errs, "'rooftop trace "+part+"' shows it") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, errs, _ := call(t, filepath.Join(dir, "none.jsonl.gz")); strings.Contains(errs, "exists, with") {
		t.Error(errs)
	}
}
