package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignFilesAreNamed holds that a file which is no recording is told by what it holds,
// with what opens it, and that compare says the same.
func TestForeignFilesAreNamed(t *testing.T) {
	const head = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"origin\":\"x\"},\"traceEvents\":[\n"
	for name, c := range map[string]struct{ content, want string }{
		"a.json":           {"{\n  \"schema\": \"rooftop.trace/v1\"\n}\n", "is the document of a trace (--json), which has its figures and not its events: 'rooftop trace compare' holds it"},
		"a.trace.json":     {head, "is a timeline (--trace): ui.perfetto.dev or chrome://tracing opens it"},
		"list.json":        {"[{\"ph\":\"X\"}]", "is a timeline (--trace)"},
		"page.html":        {"<!DOCTYPE html>\n<html>", "is a page (--html): a browser opens it"},
		"graph.svg":        {"<svg xmlns=", "is a picture of the graph (--svg): a browser opens it"},
		"graph.dot":        {"digraph ggml {", "is a graph in the language DOT (--dot): 'dot -Tsvg "},
		"plain.jsonl":      {"{\"schema\":\"rooftop.trace-recording/v1\"}\n", "is a recording that is not packed: 'gzip "},
		"probe.json":       {"{\"schema\": \"rooftop.probe/v1\"}", "is the document of 'rooftop probe': 'rooftop probe compare'"},
		"compared.json":    {"{\"schema\": \"rooftop.trace-compare/v1\"}", "is what 'rooftop trace compare --json' wrote: any JSON viewer"},
		"other.json":       {"{}", "is a JSON file, of no command that is known here: any JSON viewer"},
		"run.jsonl.gz":     {packedFile(t, "{\"schema\":\"rooftop.recording/v1\"}\n"), "unpacked, is a recording of 'rooftop diagnose --record' or 'tune --record': 'rooftop replay "},
		"a.trace.json.gz":  {packedFile(t, head), "unpacked, is a timeline (--trace)"},
		"neither.jsonl.gz": {"neither of them", "is no recording of 'rooftop trace --save': it is no file that gzip made"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := call(t, nil, "trace", path); code != exitUsage || !strings.Contains(errs, c.want) || strings.Contains(errs, "looks like") {
			t.Errorf("%s: exit %d: %s, want %q", name, code, errs, c.want)
		}
		if name == "a.json" {
			continue
		}
		if _, errs, code := call(t, nil, "trace", "compare", path, path); code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("compare of %s: exit %d: %s, want %q", name, code, errs, c.want)
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

// TestADocumentIsCompared holds that compare reads a document whatever its file is called.
func TestADocumentIsCompared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl.gz")
	if err := os.WriteFile(path, []byte("{\n  \"schema\": \"rooftop.trace/v1\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := call(t, nil, "trace", "compare", path, path); code != exitNothing || !strings.Contains(out, "holds no graph that was computed") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestARecordingThatIsAbsentNamesItsPart holds that what a killed trace left is named where
// its recording is asked for.
func TestARecordingThatIsAbsentNamesItsPart(t *testing.T) {
	dir := t.TempDir()
	part := filepath.Join(dir, "cut.partial.jsonl.gz")
	if err := os.WriteFile(part, []byte("anything"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "cut.jsonl.gz")
	for _, args := range [][]string{{"trace", whole}, {"trace", "compare", whole, part}} {
		_, errs, code := call(t, nil, args...)
		if code != exitUsage || !strings.Contains(errs, "no such file") || !strings.Contains(errs, part+" is there") || !strings.Contains(errs, "'rooftop trace "+part+"' shows it") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	if _, errs, _ := call(t, nil, "trace", filepath.Join(dir, "none.jsonl.gz")); strings.Contains(errs, "is there") {
		t.Error(errs)
	}
}
