package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect"
)

// agentOf connects an agent to 'rooftop mcp' with arguments.
func agentOf(t *testing.T, env func(string) (string, bool), args ...string) *mcp.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan cli.ExitCode, 1)
	var errs bytes.Buffer
	go func() {
		ended <- execute(context.WithoutCancel(t.Context()), cli.World{Args: append([]string{"mcp"}, args...), Env: env, Stdin: in, Stdout: out, Stderr: &errs})
	}()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	t.Cleanup(func() {
		_ = s.Close()
		if code := <-ended; code != cli.ExitDone || errs.Len() > 0 {
			t.Errorf("exit code %d: %s", code, errs.String())
		}
	})
	return s
}

// told calls a tool and returns its texts and its document.
func told(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) (text string, document []byte) {
	t.Helper()
	out, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range out.Content {
		text += c.(*mcp.TextContent).Text + "\n"
	}
	if out.StructuredContent != nil {
		document, _ = json.Marshal(out.StructuredContent)
	}
	return text, document
}

// An agent gets the documents that commands write with --json.
func TestAgentsGetTheDocumentsOfCommands(t *testing.T) {
	s := agentOf(t, variables("XDG_STATE_HOME", t.TempDir()))
	for _, c := range []struct {
		tool    string
		args    map[string]any
		command []string
	}{
		{"explain", map[string]any{"word": "kv-pressure"}, []string{"explain", "kv-pressure", "--json"}},
		{"explain", map[string]any{"word": "TTFT p99"}, []string{"explain", "TTFT p99", "--json"}},
		{"ceiling", map[string]any{"model": "Qwen3-32B", "gpu": "H100 SXM", "tensor_parallel_size": 2, "batch": 64, "kv_cache_dtype": "fp8", "context_tokens": 2e6},
			[]string{"ceiling", "--model", "Qwen3-32B", "--gpu", "H100 SXM", "--tp", "2", "--batch", "64", "--kv-dtype", "fp8", "--context", "2000000", "--json"}},
	} {
		text, got := told(t, s, c.tool, c.args)
		written, errs, _ := call(t, nil, c.command...)
		var want, have any
		if err := json.Unmarshal([]byte(written), &want); err != nil {
			t.Fatalf("%v: %s%s", err, written, errs)
		}
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatalf("%s: %v: %s", c.tool, err, text)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-command +agent):\n%s", c.tool, diff)
		}
		if len(text) < 200 {
			t.Errorf("%s has no page: %q", c.tool, text)
		}
	}
	for want, args := range map[string]map[string]any{"unknown name": {"word": "nothing-such"}} {
		if text, document := told(t, s, "explain", args); !strings.Contains(text, want) || document != nil {
			t.Errorf("%v: %q, %s", args, text, document)
		}
	}
	if text, _ := told(t, s, "ceiling", map[string]any{"model": "Qwen3-32B", "gpu": "nothing"}); !strings.Contains(text, "nothing") || strings.Contains(text, "rooftop:") {
		t.Errorf("an unknown GPU: %q", text)
	}
	out, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "rooftop://runs"})
	if err != nil || !strings.Contains(out.Contents[0].Text, `"rooftop.history/v1"`) {
		t.Errorf("past runs: %v, %v", out, err)
	}
}

// Recordings are compared with an interval, by their paths.
func TestAgentsCompareRecordings(t *testing.T) {
	s := agentOf(t, variables("XDG_STATE_HOME", t.TempDir()))
	recording := func(name string) string { return filepath.Join("..", "..", "testdata", "recordings", name+".gz") }
	text, document := told(t, s, "compare", map[string]any{"before": recording("sim-seat-capped"), "after": recording("sim-healthy")})
	for _, want := range []string{"output", "before", "after", "What else changed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if !bytes.Contains(document, []byte(`"schema":"rooftop.compare/v1"`)) {
		t.Errorf("document %.300s", document)
	}
	if text, _ := told(t, s, "compare", map[string]any{"before": recording("../../go.mod"), "after": recording("sim-healthy")}); !strings.Contains(text, "no such file") {
		t.Errorf("another file: %q", text)
	}
}

// The API key goes only to the servers that the user named.
func TestAgentsDoNotDirectTheAPIKey(t *testing.T) {
	var o mcpOptions
	for named, env := range map[bool]func(string) (string, bool){
		true: variables("ROOFTOP_API_KEY", "secret", "ROOFTOP_GPU", "L4"), false: variables("ROOFTOP_API_KEY", "secret", "ROOFTOP_API_KEY_FILE", "/nowhere", "ROOFTOP_GPU", "L4"),
	} {
		given, err := o.options(&cli.World{Env: env}, named, "--url=http://127.0.0.1:8000", "--duration=10s")
		must(t, err)
		token, err := given.Token()
		if err != nil || (token != collect.Secret{}) != named || given.GPU != "L4" {
			t.Errorf("named %v: a key %v, GPU %q, %v", named, token != collect.Secret{}, given.GPU, err)
		}
	}
	if _, err := o.options(&cli.World{Env: variables()}, false, "--url=http://127.0.0.1:8000", "--duration=10s", "--max-num-seqs=-3"); err == nil || !strings.Contains(err.Error(), "must be at least 1") {
		t.Errorf("negative slots: %v", err)
	}
}
