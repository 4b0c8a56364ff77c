package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// recorded is what a source would see of a dense model on two threads: a prefill, then
// decodes, each operator as long as the memory needs for its operands. The second lane
// is done with its part in 60 % of that and waits.
func recorded(layers, decodes int) *optrace.Recording {
	tables, dag := llamaGraph(layers)
	dag.Addr = 0x900
	tables.DAGs, tables.Names = []optrace.DAG{*dag}, []string{"CPU"}
	r := &optrace.Recording{
		Target: optrace.Target{PID: 42, Command: "/usr/bin/llama-server -m /models/big-q4_0.gguf -t 2", Runtime: "ggml 0.25.1", Hook: "ggml_cpu_extra_compute_forward", Layout: "accessors", Verified: true, Arch: "amd64", CPUs: 2, Model: "/models/big-q4_0.gguf"},
		Tables: tables, Begin: time.Hour, Origin: traceBegan, Detail: optrace.LevelTensor | optrace.DetailBarrier,
		Roof:     optrace.Roof{BytesPerSecond: 21.4e9, FlopsPerSecond: 95e9, Int8PerSecond: 640e9, Threads: 2, From: "measured"},
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
			if viewOp(op.Op) {
				continue
			}
			took := 2*us + time.Duration(optrace.CostOf(tables, op, optrace.ExpertChoice{}).Bytes()/18) // ns at 18 GB/s
			for lane := range int32(2) {
				add(0, 42+lane, optrace.Event{Kind: optrace.OpBegin, Addr: n.Addr, Ref: n.Operator, Lane: uint16(lane), Lanes: 2, CPU: uint16(lane)})
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

// TestTraceOfARecording holds that what a recording comes to is written by each writer,
// fits the schema, and says of the model what is known of it.
func TestTraceOfARecording(t *testing.T) {
	r := recorded(22, 40)
	s := optrace.Analyze(r)
	doc := traceJSON(t, s)
	if err := schema(t, "trace.v1.schema.json").Validate(decoded(t, doc)); err != nil {
		t.Error(err)
	}
	back, err := ReadTrace(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	if page, again := traceText(t, s, Options{Verbose: true}), traceText(t, back.Summary, Options{Verbose: true}); page != again {
		t.Error("a document that is read gives another page")
	}
	page := traceText(t, s, Options{Width: 80})
	checkWidth(t, page, 80)
	golden(t, "trace-recorded-80", []byte(page))
	for _, want := range []string{"llama-server PID 42", "ffn_up", "FLASH_ATTN_EXT", "decode by memory (est)", "41 whole graphs of 41 calls", "Layers"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	c := CompareTraces("1", "a", "b", &Trace{Summary: s}, &Trace{Summary: optrace.Analyze(recorded(22, 60))})
	if err := schema(t, "trace-compare.v1.schema.json").Validate(decoded(t, traceComparisonJSON(t, c))); err != nil {
		t.Error(err)
	}
	checkHTML(t, model.ReplaceAllString(traceHTML(t, &TracePage{Trace: Trace{Summary: s}, Tables: r.Tables, DAG: &r.Tables.DAGs[0]}), ""))
}

// TestTraceOfTooLittle holds that a trace of a few graphs is not said to be well.
func TestTraceOfTooLittle(t *testing.T) {
	for decodes, want := range map[int]string{2: "no recommendation: too early, 2 of 20 graphs of a decode.", 40: "nothing to change"} {
		r := recorded(22, decodes)
		if decodes == 2 {
			r.Events = r.Events[len(r.Events)/3:] // begun after the prefill
		}
		if page := traceText(t, optrace.Analyze(r), Options{}); !strings.Contains(page, want) {
			t.Errorf("%d decodes: the page does not say %q:\n%s", decodes, want, page[:min(len(page), 800)])
		}
	}
}

// TestDAGHasTheTimesOfARecording holds that the shares of a summary find their nodes.
func TestDAGHasTheTimesOfARecording(t *testing.T) {
	r := recorded(4, 30)
	g := drawingOf(r.Tables, &r.Tables.DAGs[0], optrace.Analyze(r))
	sum := 0.0
	for i := range g.nodes {
		sum += g.nodes[i].share.V
	}
	if sum < .97 || sum > 1.001 {
		t.Errorf("the nodes have %v of the time", sum)
	}
}
