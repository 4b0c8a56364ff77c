//go:build e2e && linux

package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	tracePrompt = 24 // tokens of each prompt
	traceTokens = 60 // that are decoded after it, the prompt's own one included
	traceTime   = 3 * time.Second
	traceRuns   = 6 // prompts at least
)

// tokensFor returns fewer tokens if threads spin while they wait for each other: beside other work on two cores a
// token takes a hundred times as long as alone.
func tokensFor(threads int) int {
	if threads > 1 {
		return 10
	}
	return traceTokens
}

// during has a runtime compute until the trace records, and then for as long as it records, and checks its output.
func (d *driven) during(t *testing.T, r *traceRun, prompt, tokens int, want string) {
	t.Helper()
	for n, began := 0, time.Now(); n < traceRuns || time.Since(began) < traceTime; n++ {
		if !r.stderr.says("expected to cost") {
			n, began = 0, time.Now()
		}
		if a := d.run(t, prompt, tokens); a.Hash != want {
			t.Fatalf("tokens with probes have the sum %s, without %s", a.Hash, want)
		}
	}
}

// heard is the output of a program, which can be read while it runs.
type heard struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.text.String()
}

func (h *heard) says(text string) bool { return strings.Contains(h.String(), text) }

// operatorsOf returns how often each operator is computed for one decoded token. Runtimes of 2026 agree, independent
// of their build. The one of February 2025 differs because GGML itself has changed since: without flash attention,
// which it uses only on request, there are two products and a softmax instead; keys and values are copied into the
// cache, where SET_ROWS puts them now; a norm and its weight, and a gate and its product, are two operators each; and
// views of a tensor, which later releases skip, go through the same function as computed operators.
func operatorsOf(runtime string, m gguf.Shape) map[string]int {
	l, norms := m.Layers, 2*m.Layers+1
	n := map[string]int{
		"MUL_MAT":  7*l + 1,
		"ROPE":     2 * l,
		"ADD":      2 * l,
		"GET_ROWS": 3, // the embedding, and the rows of the last layer that are wanted
	}
	if m.Experts > 0 {
		n["MUL_MAT"] -= 2 * l // three products less, one more for the choice
		n["MUL_MAT_ID"] = 3 * l
		n["ADD"] += (m.Used - 1) * l
		for _, of := range []string{"ARGSORT", "SOFT_MAX", "SUM_ROWS", "DIV", "MUL"} {
			n[of] = l
		}
		n["GET_ROWS"] += l
	}
	if runtime != "npm-old" {
		n["RMS_NORM+MUL"], n["FLASH_ATTN_EXT"], n["GLU"], n["SET_ROWS"] = norms, l, l, 2*l
		if m.Experts > 0 {
			n["CLAMP"] = l
		}
		return n
	}
	n["RMS_NORM"], n["UNARY"], n["CPY"], n["CONT"] = norms, l, 2*l, l
	n["MUL"] += norms + l
	n["MUL_MAT"] += 2 * l
	n["SOFT_MAX"] += l
	n["VIEW"], n["RESHAPE"], n["PERMUTE"], n["TRANSPOSE"] = 4*l, 2*l, 2*l, l
	if m.Experts > 0 {
		n["VIEW"] += (m.Used + 1) * l
		n["RESHAPE"] += 4 * l
	}
	return n
}

// traceDocument is the part of rooftop.trace/v1 that these tests read.
type traceDocument struct {
	Schema   string
	Coverage struct {
		Dropped int64
		Graphs  int
		Partial int      `json:"partial_graphs"`
		OpShare *float64 `json:"operators_of_graph_ratio"`
	}
}

// traceRun is a running trace of a runtime.
type traceRun struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr heard
	file   string // of the recording
}

// beginTrace starts rooftop trace on a runtime.
func beginTrace(t *testing.T, d *driven, args ...string) *traceRun {
	t.Helper()
	return beginTraceOf(t, append([]string{"--pid", strconv.Itoa(d.pid)}, args...)...)
}

func beginTraceOf(t *testing.T, args ...string) *traceRun {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &traceRun{file: filepath.Join(t.TempDir(), "run.jsonl.gz")}
	args = append([]string{"trace", "--duration", "5m", "--force", "--json", "--save", r.file}, args...)
	r.cmd = exec.CommandContext(testContext(t), path, args...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// end interrupts the trace, and reads its document and its recording.
func (r *traceRun) end(t *testing.T) (traceDocument, *optrace.Recording) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	var d traceDocument
	if code := r.cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGINT) {
		t.Fatalf("exit code %d, want that of an interrupt: %s", code, r.stderr.String())
	}
	if err := json.Unmarshal(r.stdout.Bytes(), &d); err != nil || d.Schema != "rooftop.trace/v1" {
		t.Fatalf("%v: schema %q: %.400s", err, d.Schema, r.stdout.String())
	}
	f, err := os.Open(r.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in, err := optrace.NewReader(z)
	if err != nil {
		t.Fatal(err)
	}
	var events []optrace.Event
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	all := in.Recording()
	all.Events = events
	return d, all
}

// assembled has the graphs and calls of a recording.
type assembled struct {
	*optrace.Recording
	graphs  []*optrace.Graph
	calls   []*optrace.Call
	partial int
}

func (a *assembled) Graph(g *optrace.Graph) { a.graphs = append(a.graphs, g) }
func (a *assembled) Call(c *optrace.Call)   { a.calls = append(a.calls, c) }

func assembledOf(r *optrace.Recording) *assembled {
	a := &assembled{Recording: r}
	by := optrace.New(r.Tables, a)
	for _, e := range r.Events {
		by.Push(e)
	}
	by.Flush(r.End)
	a.partial, _ = by.Dropped()
	return a
}

// TestE2ETrace traces unmodified runtimes with models that are fully known.
func TestE2ETrace(t *testing.T) {
	needsRoot(t)
	for _, runtime := range installed(t) {
		for _, model := range []gguf.Shape{gguf.Tiny, gguf.MoE} {
			for _, threads := range []int{1, 2} {
				if threads > 1 && runtime == "npm-static" {
					continue // it takes the number and computes with one all the same
				}
				t.Run(fmt.Sprintf("%s/%s/%d", runtime, model.Name, threads), func(t *testing.T) {
					traced(t, runtime, model, threads)
				})
			}
		}
	}
}

func traced(t *testing.T, runtime string, model gguf.Shape, threads int) {
	d := drive(t, runtime, model, threads)
	tokens := tokensFor(threads)
	before := d.run(t, tracePrompt, tokens)
	if before.Distinct < tokens/4 {
		t.Fatalf("%d tokens are %d different ones: too few to show that output stays", before.Tokens, before.Distinct)
	}
	r := beginTrace(t, d)
	d.during(t, r, tracePrompt, tokens, before.Hash)
	doc, recording := r.end(t)
	if after := d.run(t, tracePrompt, tokens); after.Hash != before.Hash {
		t.Errorf("tokens after the trace have the sum %s, before it %s", after.Hash, before.Hash)
	}
	if doc.Coverage.Dropped != 0 || recording.Dropped != 0 || recording.LeftOut != 0 {
		t.Errorf("%d events were dropped, %d of the recording, %d left out", doc.Coverage.Dropped, recording.Dropped, recording.LeftOut)
	}
	a := assembledOf(recording)
	t.Logf("%d events, %d graphs, %d calls, %d partial graphs; operators cover %v", len(recording.Events), len(a.graphs), len(a.calls), a.partial, spell(doc.Coverage.OpShare))
	// One call may be in progress when the trace begins, and one when it ends.
	if a.partial > 2 {
		t.Errorf("%d graphs are partial", a.partial)
	}
	a.phases(t, tokens)
	a.counts(t, operatorsOf(runtime, model), threads)
	a.dagHolds(t, model)
	if model.Experts > 0 {
		a.experts(t, model)
	}
}

func spell(v *float64) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprintf("%.2f %%", 100**v)
}

// phases checks that a prompt is a graph of its tokens, and each later token a graph of one, always with the same
// number of graphs. If the runtime's calls are visible, they must agree.
func (a *assembled) phases(t *testing.T, tokens int) {
	t.Helper()
	decodes, prompts, between := 0, 0, []int{}
	for _, g := range a.graphs {
		switch {
		case g.Phase == optrace.PhasePrefill && g.Tokens == tracePrompt:
			if prompts > 0 {
				between = append(between, decodes)
			}
			prompts, decodes = prompts+1, 0
		case g.Phase == optrace.PhaseDecode && g.Tokens == 1:
			decodes++
		default:
			t.Fatalf("graph %d of %d nodes: %d tokens in phase %v", g.Index, g.Nodes, g.Tokens, g.Phase)
		}
	}
	if len(between) < 2 {
		t.Fatalf("%d whole runs in the trace, want two at least", len(between))
	}
	for _, n := range between {
		// The application decides whether the last token is processed too, although nothing follows it.
		if n != tokens-1 && n != tokens || n != between[0] {
			t.Errorf("%v tokens were decoded after prompts, want %d each time", between, tokens-1)
			break
		}
	}
	for _, c := range a.calls {
		if c.Phase == optrace.PhasePrefill && c.Tokens != tracePrompt || c.Phase == optrace.PhaseDecode && c.Tokens != 1 || len(c.Graphs) > 1 {
			t.Fatalf("a call of %d tokens in phase %v with %d graphs", c.Tokens, c.Phase, len(c.Graphs))
		}
	}
}

// counts checks how often each operator was computed for a token, on every lane.
func (a *assembled) counts(t *testing.T, want map[string]int, threads int) {
	t.Helper()
	seen := 0
	for _, g := range a.graphs {
		if g.Phase != optrace.PhaseDecode {
			continue
		}
		if len(g.Threads) != threads {
			t.Fatalf("a graph of %d lanes, want %d", len(g.Threads), threads)
		}
		for i, lane := range g.Threads {
			got := map[string]int{}
			for _, s := range lane.Spans {
				o := a.Tables.Operator(s.Operator)
				got[strings.Join(append([]string{o.Op}, o.Fused...), "+")]++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("lane %d of graph %d, %d operators (-want +got):\n%s", i, g.Index, len(lane.Spans), diff)
			}
		}
		seen++
	}
	if seen < 20 {
		t.Errorf("%d graphs of a token that is decoded, want 20 at least", seen)
	}
}

// dagHolds compares the graph with the model: every weight is a leaf of its shape and type and is used by an operator
// of its layer, and every source of a node comes before it.
func (a *assembled) dagHolds(t *testing.T, model gguf.Shape) {
	t.Helper()
	var ref uint32
	for _, g := range a.graphs {
		if g.Phase == optrace.PhaseDecode {
			ref = g.DAG
		}
	}
	if ref == 0 {
		t.Fatal("no graph of a token has a DAG")
	}
	dag := a.Tables.DAGs[ref-1]
	leaves, known := map[string]optrace.Node{}, map[uint64]bool{}
	for _, n := range dag.Leaves {
		leaves[a.out(n).Name], known[n.Addr] = n, true
	}
	users := map[uint64][]optrace.Node{}
	for _, n := range dag.Nodes {
		for _, source := range n.Sources {
			if source != 0 && !known[source] {
				t.Errorf("%s has a source %#x that is neither a leaf nor an earlier node", a.out(n).Name, source)
			}
			users[source] = append(users[source], n)
		}
		known[n.Addr] = true
	}
	if dag.Truncated != 0 {
		t.Errorf("%d nodes could not be read", dag.Truncated)
	}
	t.Logf("%d nodes, %d edges, %d leaves", len(dag.Nodes), len(optrace.Edges(&dag)), len(dag.Leaves))
	for _, w := range model.Tensors() {
		n, ok := leaves[w.Name]
		if !ok {
			t.Errorf("%s is not a leaf of the graph; there are %v", w.Name, slices.Sorted(maps.Keys(leaves)))
			return
		}
		got, want := a.out(n), [4]int64{1, 1, 1, 1}
		for i, d := range w.Dims {
			want[i] = int64(d)
		}
		if got.NE != want || got.Type != w.Type.String() {
			t.Errorf("%s is %v of %s, want %v of %v", w.Name, got.NE, got.Type, want, w.Type)
		}
		if len(users[n.Addr]) == 0 {
			t.Errorf("%s is used by no operator", w.Name)
		}
		for _, user := range users[n.Addr] {
			layer, _ := optrace.LayerOf(w.Name)
			if of, _ := optrace.LayerOf(a.out(user).Name); layer >= 0 && of != layer {
				t.Errorf("%s is used by %s, which is of layer %d", w.Name, a.out(user).Name, of)
			}
		}
	}
}

// out returns the tensor of a node.
func (a *assembled) out(n optrace.Node) optrace.Tensor {
	return a.Tables.Tensor(a.Tables.Operator(n.Operator).Out)
}

// experts checks the choices of mixtures: for every layer, as many as the model uses, in range and distinct, one row
// per token.
func (a *assembled) experts(t *testing.T, model gguf.Shape) {
	t.Helper()
	layers, rows := map[int]int{}, 0
	for _, g := range a.graphs {
		for _, s := range g.Threads[0].Spans {
			if s.Experts == 0 {
				continue
			}
			c := a.Tables.Experts[s.Experts-1]
			tokens := g.Tokens
			if c.Layer == model.Layers-1 {
				tokens = 1 // of the last layer nothing is wanted but the last token's
			}
			if c.Used != model.Used || c.Tokens != tokens || len(c.IDs) != c.Used*c.Tokens {
				t.Fatalf("layer %d: a choice of %d for each of %d tokens with %d ids, want %d for each of %d", c.Layer, c.Used, c.Tokens, len(c.IDs), model.Used, tokens)
			}
			for row := range slices.Chunk(c.IDs, c.Used) {
				rows++
				for i, id := range row {
					if id < 0 || int(id) >= model.Experts || slices.Contains(row[:i], id) {
						t.Fatalf("layer %d chose %v of %d experts", c.Layer, row, model.Experts)
					}
				}
			}
			layers[c.Layer]++
		}
	}
	for l := range model.Layers {
		if layers[l] == 0 {
			t.Errorf("no choice of layer %d", l)
		}
	}
	if len(layers) != model.Layers {
		t.Errorf("choices are of the layers %v, want %d of them", slices.Sorted(maps.Keys(layers)), model.Layers)
	}
	t.Logf("%d rows of experts", rows)
}

// TestE2ETraceCoverage checks that operators account for the time of a graph. In a model whose graphs take a third of
// a millisecond, starting the threads takes a few per cent, so a larger model is used, with 10 ms per token.
func TestE2ETraceCoverage(t *testing.T) {
	needsRoot(t)
	for _, runtime := range installed(t) {
		t.Run(runtime, func(t *testing.T) {
			d := drive(t, runtime, gguf.Mid, 1)
			before := d.run(t, 8, 20)
			r := beginTrace(t, d)
			d.during(t, r, 8, 20, before.Hash)
			doc, recording := r.end(t)
			a := assembledOf(recording)
			share := doc.Coverage.OpShare
			t.Logf("%d graphs; operators cover %v of their time", len(a.graphs), spell(share))
			if share == nil || *share < 0.99 || doc.Coverage.Dropped > 0 {
				t.Errorf("operators cover %v of the time of graphs, %d events dropped; want 99 %% and none", spell(share), doc.Coverage.Dropped)
			}
			a.counts(t, operatorsOf(runtime, gguf.Mid), 1)
			a.dagHolds(t, gguf.Mid)
		})
	}
}

// TestE2ETraceKilled kills rooftop while it traces: the target continues unaffected,
// and can be traced again.
func TestE2ETraceKilled(t *testing.T) {
	needsRoot(t)
	for _, runtime := range installed(t) {
		t.Run(runtime, func(t *testing.T) {
			d := drive(t, runtime, gguf.Tiny, 1)
			before := d.run(t, tracePrompt, traceTokens)
			for range 2 {
				r := beginTrace(t, d)
				d.during(t, r, tracePrompt, traceTokens, before.Hash)
				d.tell(t, "run %d %d", tracePrompt, 1500)
				if err := r.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = r.cmd.Wait()
				d.answer(t)
				if after := d.run(t, tracePrompt, traceTokens); after.Hash != before.Hash {
					t.Errorf("tokens after the kill have the sum %s, before it %s", after.Hash, before.Hash)
				}
			}
			r := beginTrace(t, d)
			d.during(t, r, tracePrompt, traceTokens, before.Hash)
			if doc, _ := r.end(t); doc.Coverage.Graphs < traceTokens {
				t.Errorf("%d graphs in a trace after the kills", doc.Coverage.Graphs)
			}
		})
	}
}

// TestE2ETraceByName finds a runtime by a part of its command line.
func TestE2ETraceByName(t *testing.T) {
	needsRoot(t)
	d := drive(t, "npm-new", gguf.MoE, 1)
	command, err := os.ReadFile("/proc/" + strconv.Itoa(d.pid) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(string(command), "\x00")
	r := beginTraceOf(t, strings.Join(words[1:4], " ")) // of this test's checkout, runtime and model
	r.attached(t, func() { d.run(t, tracePrompt, traceTokens) })
	d.run(t, tracePrompt, traceTokens)
	if s := r.figures(t); s.Target.PID != d.pid || s.Coverage.Graphs < traceTokens {
		t.Errorf("%d graphs of process %d, want those of %d", s.Coverage.Graphs, s.Target.PID, d.pid)
	}
}
