package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/mcpserver"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

const (
	serverURL = "http://127.0.0.1:8000"
	crowded   = "slot-capped/8b-a100" // 16 slots, and many more requests
)

// rig is an agent with rooftop as its tool, on a simulated server in virtual time.
type rig struct {
	t       *testing.T
	host    *bench.Host
	config  mcpserver.Config
	agent   *mcp.ClientSession
	pipe    net.Conn // of the agent
	served  chan error
	told    []mcp.ProgressNotificationParams
	pages   func() session.Pages // instead of the host's, nil
	polls   int
	journal []loop.EventKind
	reverts int
}

// newRig returns a rig that is not connected.
func newRig(t *testing.T, scenario string) *rig {
	t.Helper()
	list, err := settings.Select(scenario)
	if err != nil || len(list) != 1 {
		t.Fatalf("scenario %s: %d, %v", scenario, len(list), err)
	}
	list[0].Startup = 4 * time.Second
	r := &rig{t: t, host: bench.New(&list[0], 1), served: make(chan error, 1)}
	if err := r.host.Start(""); err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Second)
	r.config = mcpserver.Config{
		Version: "test",
		Env:     func(name string) (string, bool) { return t.TempDir(), name == "XDG_STATE_HOME" },
		Command: func(_ context.Context, args ...string) (string, error) {
			return jsonOf(arguments{"args": fmt.Sprint(args)}), nil
		},
		Found: func() []tuning.ListedServer {
			return []tuning.ListedServer{{URL: serverURL, Process: "vllm", Launch: r.host.Command()}}
		},
		Options: func(_ bool, flags ...string) (*attach.Options, error) {
			o := &attach.Options{}
			for _, f := range flags {
				if text, ok := strings.CutPrefix(f, "--duration="); ok {
					o.Duration, err = time.ParseDuration(text)
				}
			}
			return o, err
		},
		Attach: func(ctx context.Context, _ *attach.Options) (*session.Server, error) {
			s, err := r.host.AttachOnly(ctx)
			if err != nil {
				return nil, err
			}
			s.Pages = counting{s.Pages, &r.polls}
			if r.pages != nil { // all that is known of the server is its page
				s.Pages, s.Header.Inputs = r.pages(), facts.Inputs{}
			}
			s.Clock = r.host.Clock
			return s, nil
		},
	}
	return r
}

// counting counts pages.
type counting struct {
	session.Pages
	n *int
}

func (c counting) Page(ctx context.Context, buf []byte) ([]byte, error) {
	*c.n++
	return c.Pages.Page(ctx, buf)
}

// mayChange lets the agent change the server.
func (r *rig) mayChange() {
	var err error
	if r.config.Changeable, err = collect.ParseTarget(serverURL); err != nil {
		r.t.Fatal(err)
	}
	r.config.Take = func(ctx context.Context) (*mcpserver.Control, error) {
		s, err := r.host.Attach(ctx)
		if err != nil {
			return nil, err
		}
		kept := true
		apply := s.Apply
		s.Apply = func(ctx context.Context, a loop.Apply) loop.Applied {
			out := apply(ctx, a)
			kept = out.Err != ""
			return out
		}
		return &mcpserver.Control{
			Server: s, Within: time.Minute,
			Tell: r.host.Follow(func(e loop.Event) {
				r.journal = append(r.journal, e.Kind)
				kept = kept || e.Kind == loop.EventKept
			}),
			End: func(ctx context.Context, last *loop.Snapshot) error {
				if kept {
					return nil
				}
				r.reverts++
				if out := apply(ctx, loop.Apply{Revert: true, Iteration: last.Iterations[0].N}); out.Err != "" {
					return errors.New(out.Err)
				}
				return nil
			},
		}, nil
	}
}

// connect connects the agent.
func (r *rig) connect() {
	r.t.Helper()
	ours, theirs := net.Pipe()
	r.pipe = theirs
	s := mcpserver.New(r.config)
	go func() { r.served <- s.Serve(r.t.Context(), ours, ours) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, q *mcp.ProgressNotificationClientRequest) { r.told = append(r.told, *q.Params) },
	})
	var err error
	if r.agent, err = client.Connect(r.t.Context(), &mcp.IOTransport{Reader: theirs, Writer: theirs}, nil); err != nil {
		r.t.Fatal(err)
	}
}

// close lets the agent go and waits until rooftop has ended.
func (r *rig) close() {
	_ = r.agent.Close()
	if err := <-r.served; err != nil {
		r.t.Errorf("rooftop ended with %v", err)
	}
}

type arguments = map[string]any

// answer is the result of a tool.
type answer struct {
	text   string
	failed bool
	doc    arguments
	raw    []byte
}

// direction returns the direction of a verdict.
func (a answer) direction() any { return a.doc["verdict"].(arguments)["direction"] }

func (r *rig) call(name string, args arguments) answer {
	r.t.Helper()
	q := &mcp.CallToolParams{Name: name, Arguments: args}
	q.SetProgressToken("p")
	out, err := r.agent.CallTool(r.t.Context(), q)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	a := answer{failed: out.IsError}
	for _, c := range out.Content {
		a.text += c.(*mcp.TextContent).Text + "\n"
	}
	if out.StructuredContent != nil {
		a.doc = out.StructuredContent.(arguments)
		a.raw, _ = json.Marshal(out.StructuredContent)
	}
	return a
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// must calls a tool that has to succeed, and checks its document.
func (r *rig) must(name string, args arguments) answer {
	r.t.Helper()
	a := r.call(name, args)
	if a.failed {
		r.t.Fatalf("%s: %s", name, a.text)
	}
	if schema, ok := a.doc["schema"].(string); ok {
		valid(r.t, schema, a.raw)
	}
	return a
}

// valid checks a document against its schema.
func valid(t *testing.T, name string, doc []byte) {
	t.Helper()
	file := strings.ReplaceAll(strings.TrimPrefix(name, "rooftop."), "/", ".") + ".schema.json"
	switch name {
	case "rooftop.servers/v1", "rooftop.measurement/v1", "rooftop.verdict/v1", "rooftop.prediction/v1", "rooftop.applied/v1":
		file = "agent.v1.schema.json"
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join("..", "..", "..", "testdata", "schema", file))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(doc)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v in %.2000s", name, err, doc)
	}
}

func wants(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

// names returns the names of the tools that the agent sees.
func (r *rig) names() []string {
	r.t.Helper()
	list, err := r.agent.ListTools(r.t.Context(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if changes := tool.Name == "apply" || tool.Name == "revert"; tool.Annotations.ReadOnlyHint == changes || *tool.Annotations.DestructiveHint != changes {
			r.t.Errorf("%s says that it is read-only: %v, destructive: %v", tool.Name, tool.Annotations.ReadOnlyHint, *tool.Annotations.DestructiveHint)
		}
	}
	return names
}

var reading = []string{"ceiling", "compare", "diagnose", "explain", "list_servers", "measure", "predict", "verdict"}

// An agent finds a server, has it diagnosed, and gets the document and the page of the command, with progress.
func TestDiagnose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, crowded)
		r.connect()
		defer r.close()
		if got := r.names(); !slices.Equal(got, reading) {
			t.Errorf("tools %q, want %q", got, reading)
		}
		wants(t, r.must("list_servers", nil).text, serverURL, "vllm", "--max-num-seqs 16")
		a := r.must("diagnose", arguments{"server": serverURL, "duration_s": 20})
		wants(t, a.text, "Concurrency saturation", "--max-num-seqs 16 → 64", "Kept as measurement m1.", "SIMULATED")
		if a.doc["outcome"] != "recommendation" {
			t.Errorf("outcome %v", a.doc["outcome"])
		}
		if n := len(r.told); n < 8 || r.told[n-1].Total != 20 || r.told[n-1].Progress <= r.told[0].Progress || !strings.Contains(r.told[n-1].Message, "running") {
			t.Errorf("%d notifications of progress: %+v", n, r.told)
		}
		wants(t, r.must("predict", arguments{"flag": "max_num_seqs", "to": "64"}).text, "--max-num-seqs 16 → 64", "output", "Predicted from m1.")
		wants(t, r.must("predict", arguments{"measurement": "m1", "flag": "--max-num-seqs", "to": "32"}).text, "16 → 32", "calibrated")
		wants(t, r.must("predict", arguments{"flag": "--max-loras", "to": "8"}).text, "no prediction", "No model predicts")
	})
}
