package dag

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// recorded is the recording of a dense model on two threads: a prefill, then decodes, each operator as long as memory needs
// for its operands. The second lane finishes its part in 60 % of that and waits.
func recorded(layers, decodes int) *optrace.Recording {
	const us = time.Microsecond
	tables, dag := llamaGraph(layers)
	dag.Addr = 0x900
	tables.DAGs, tables.Names = []optrace.DAG{*dag}, []string{"CPU"}
	r := &optrace.Recording{
		Target: optrace.Target{PID: 42, Command: "/usr/bin/llama-server -m /models/big-q4_0.gguf -t 2", Runtime: "ggml 0.25.1", Hook: "ggml_cpu_extra_compute_forward", Layout: "accessors", Verified: true, Arch: "amd64", CPUs: 2, Model: "/models/big-q4_0.gguf"},
		Tables: tables, Begin: time.Hour, Origin: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC), Detail: optrace.LevelTensor | optrace.DetailBarrier,
		Peak:     optrace.Peak{BytesPerSecond: 21.4e9, FlopsPerSecond: 95e9, Int8PerSecond: 640e9, Threads: 2, From: "measured"},
		Observer: optrace.Observer{HitsPerToken: 758, CostPerHit: 900 * time.Nanosecond, Expected: .019},
	}
	at := r.Begin
	add := func(after time.Duration, tid int32, e optrace.Event) {
		at += after
		e.At, e.PID, e.TID = at, 42, tid
		r.Events = append(r.Events, e)
	}
	for call := range decodes + 1 {
		tokens := int64(1)
		if call == 0 {
			tokens = 24
		}
		add(50*us, 42, optrace.Event{Kind: optrace.CallBegin, Ref: uint32(optrace.CallDecode), N: tokens})
		add(10*us, 42, optrace.Event{Kind: optrace.SplitBegin, Addr: dag.Addr, Ref: 1, N: int64(len(dag.Nodes))})
		add(10*us, 42, optrace.Event{Kind: optrace.GraphBegin, Addr: dag.Addr, N: int64(len(dag.Nodes)), Ref: 1})
		for i := range dag.Nodes {
			n := &dag.Nodes[i]
			op := tables.Operator(n.Operator)
			if op.Op == "VIEW" || op.Op == "RESHAPE" || op.Op == "PERMUTE" || op.Op == "TRANSPOSE" {
				continue
			}
			took := 2*us + time.Duration(optrace.CostOf(tables, op, optrace.ExpertChoice{}).Bytes()/18) // ns at 18 GB/s
			for lane := range int32(2) {
				add(0, 42+lane, optrace.Event{Kind: optrace.OpBegin, Addr: n.Addr, Ref: n.Operator, Thread: uint16(lane), Threads: 2, CPU: uint16(lane)})
			}
			add(took*6/10, 43, optrace.Event{Kind: optrace.BarrierBegin})
			add(took*4/10, 42, optrace.Event{Kind: optrace.BarrierBegin})
			add(0, 42, optrace.Event{Kind: optrace.BarrierEnd})
			add(0, 43, optrace.Event{Kind: optrace.BarrierEnd})
		}
		add(5*us, 42, optrace.Event{Kind: optrace.GraphEnd, Addr: dag.Addr})
		add(10*us, 42, optrace.Event{Kind: optrace.CallEnd})
		add(100*us, 42, optrace.Event{Kind: optrace.SampleBegin})
	}
	r.End = at
	return r
}

// TestTraceOfARecording checks that a recording's document fits the schema, and that its page has the known facts of
// the model.
func TestTraceOfARecording(t *testing.T) {
	s := tally.Analyze(recorded(22, 40))
	var doc bytes.Buffer
	if err := document.WriteTrace(&doc, &trace.Trace{Summary: s}); err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "trace.v1.schema.json", doc.Bytes())
	text := traceText(t, s, render.Options{Width: 80})
	golden(t, "trace-recorded-80", []byte(text))
	for _, want := range []string{"llama-server PID 42", "ffn_up", "FLASH_ATTN_EXT", "decode by memory (est)", "41 whole graphs of 41 calls", "Layers"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func traceText(t *testing.T, s *optrace.Summary, o render.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := render.Text(&b, trace.Report(s, o.Verbose), o); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := cell.Width(strings.TrimSuffix(line, "\n")); n > o.Cells() {
			t.Errorf("%d cells of %d: %q", n, o.Cells(), line)
		}
	}
	return b.String()
}

func checkSchema(t *testing.T, name string, doc []byte) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	compiled, err := c.Compile(filepath.Join("..", "..", "..", "..", "testdata", "schema", name))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(v); err != nil {
		t.Error(err)
	}
}

// TestTraceOfTooLittle checks that a trace of a few graphs gives no all-clear.
func TestTraceOfTooLittle(t *testing.T) {
	for decodes, want := range map[int]string{2: "no recommendation: too early, 2 of 20 decode graphs.", 40: "nothing to change"} {
		r := recorded(22, decodes)
		if decodes == 2 {
			r.Events = r.Events[len(r.Events)/3:] // begins after the prefill
		}
		if page := traceText(t, tally.Analyze(r), render.Options{}); !strings.Contains(page, want) {
			t.Errorf("%d decodes: the page does not say %q:\n%s", decodes, want, page[:min(len(page), 800)])
		}
	}
}
