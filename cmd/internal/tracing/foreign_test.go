package tracing

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// TestForeignFilesAreNamed checks that other files are identified by their contents, with a hint at
// what opens them.
func TestForeignFilesAreNamed(t *testing.T) {
	const head = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"origin\":\"x\"},\"traceEvents\":[\n"
	for name, c := range map[string]struct{ content, want string }{
		"a.json":           {"{\n  \"schema\": \"rooftop.trace/v1\"\n}\n", "is the document of a trace (--json), which has figures but no events: any JSON viewer"},
		"a.trace.json":     {head, "is a timeline (--trace): ui.perfetto.dev or chrome://tracing opens it"},
		"list.json":        {"[{\"ph\":\"X\"}]", "is a timeline (--trace)"},
		"page.html":        {"<!DOCTYPE html>\n<html>", "is a page (--html): a browser opens it"},
		"graph.dot":        {"digraph ggml {", "is a graph in the DOT language (--dot): 'dot -Tsvg "},
		"plain.jsonl":      {"{\"schema\":\"rooftop.trace-recording/v1\"}\n", "is a recording that is not compressed: 'gzip "},
		"probe.json":       {"{\"schema\": \"rooftop.probe/v1\"}", "is the document of 'rooftop probe': any JSON viewer"},
		"other.json":       {"{}", "is a JSON file of an unknown program: any JSON viewer"},
		"run.jsonl.gz":     {packedFile(t, "{\"schema\":\"rooftop.recording/v1\"}\n"), "decompressed, is a recording of 'rooftop diagnose --record' or 'tune --record': 'rooftop replay "},
		"a.trace.json.gz":  {packedFile(t, head), "decompressed, is a timeline (--trace)"},
		"neither.jsonl.gz": {"neither of them", "is not a recording of 'rooftop trace --save': it is not a gzip file"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := call(t, path); code != cli.ExitUsage || !strings.Contains(errs, c.want) || strings.Contains(errs, "looks like") {
			t.Errorf("%s: exit %d: %s, want %q", name, code, errs, c.want)
		}
	}
}

func packedFile(t *testing.T, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

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
