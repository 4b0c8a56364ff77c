//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// agent is an agent's program with rooftop as its MCP server.
type agent struct {
	*mcp.ClientSession
	t   *testing.T
	cmd *exec.Cmd
	log *bytes.Buffer
}

// startAgent starts 'rooftop mcp' like the program of an agent.
func startAgent(t *testing.T, env []string, args ...string) agent {
	t.Helper()
	path, err := binary()
	must(t, err)
	a := agent{t: t, cmd: exec.Command(path, append([]string{"mcp"}, args...)...), log: new(bytes.Buffer)}
	a.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ROOFTOP_") }), env...)
	a.cmd.Stderr = a.log
	a.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "e2e"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: a.cmd}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, a.log)
	}
	return a
}

// use calls a tool that must succeed.
func (a *agent) use(tool string, args map[string]any) (text string, document map[string]any) {
	a.t.Helper()
	out, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v: %s", tool, err, a.log)
	}
	for _, c := range out.Content {
		text += c.(*mcp.TextContent).Text + "\n"
	}
	if out.IsError {
		a.t.Fatalf("%s %v: %s", tool, args, text)
	}
	return text, out.StructuredContent.(map[string]any)
}

// An agent tunes a server that someone else started: a proven change is kept. The agent is then killed with an unproven
// change in place, which is reverted.
func TestE2EAutoAgent(t *testing.T) {
	env := ownState(t)
	at := programtest.Address(t)
	startsSim(t, at, tightSlots)
	offerSim(t, at)
	a := startAgent(t, env, "--allow-changes", url(at))
	measure := map[string]any{"server": url(at), "duration_s": 44}
	if text, _ := a.use("list_servers", nil); !strings.Contains(text, url(at)) || !strings.Contains(text, "apply, revert") {
		t.Errorf("the server is not listed:\n%s", text)
	}
	text, d := a.use("diagnose", measure)
	r, _ := d["recommendation"].(map[string]any)
	if r == nil || r["flag"] != "--max-num-seqs" {
		t.Fatalf("recommended %v:\n%s", r, text)
	}
	a.use("apply", map[string]any{"flag": r["flag"], "to": r["to"]})
	if got := slotsOf(t, at); got != r["to"] {
		t.Errorf("the server runs with %s slots, applied were %s", got, r["to"])
	}
	a.use("measure", measure)
	if text, v := a.use("verdict", map[string]any{"before": "m1", "after": "m2"}); !strings.Contains(text, "BETTER") || v["kept"] != true {
		t.Fatalf("kept %v:\n%s", v["kept"], text)
	}
	a.use("apply", map[string]any{"flag": "--max-num-seqs", "to": "8"})
	if got := slotsOf(t, at); got != "8" {
		t.Errorf("the server runs with %s slots, applied were 8", got)
	}
	_ = a.cmd.Process.Kill()
	for began := time.Now(); slotsOf(t, at) != r["to"] || !healthy(t.Context(), at); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("three minutes after the agent was killed the server runs with %s slots, not %s: %s", slotsOf(t, at), r["to"], a.log)
		}
	}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		left := beginWith(t, env, "recover", "--dry-run")()
		if strings.Contains(string(left.stdout), "Nothing is left") {
			break
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("three minutes after the agent was killed:\n%s%s", left.stdout, a.log)
		}
	}
	var history struct {
		Runs []struct{ Tried, Kept int }
	}
	if err := json.Unmarshal(beginWith(t, env, "history", "--json")().stdout, &history); err != nil || len(history.Runs) != 2 || history.Runs[0].Kept != 0 || history.Runs[1].Kept != 1 {
		t.Errorf("%v: past runs %+v, want one that kept its change after one that did not", err, history)
	}
}
