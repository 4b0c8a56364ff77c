package tracing

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

var update = flag.Bool("update", false, "rewrite testdata")

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// traced returns a recording of two decode calls on two threads, with a mixture, a wait inside
// an operator, one that crosses its end, a preemption, a system call, a page fault, a copy and
// counters.
func chromeTraced() *optrace.Recording {
	t := &optrace.Tables{
		Tensors: []optrace.Tensor{
			{Name: "ffn_up-0", Type: "f32", NE: [4]int64{64, 1, 1, 1}}, {Name: "blk.0.ffn_up.weight", Type: "q4_0", NE: [4]int64{32, 64, 1, 1}},
			{Name: "norm-0", Type: "f32", NE: [4]int64{32, 1, 1, 1}}, {Name: `evil"name` + "\n</x>", Type: "f32", NE: [4]int64{64, 1, 1, 1}},
		},
		Operators: []optrace.Operator{{Op: "MUL_MAT", Out: 1, In: []uint32{2, 3}}, {Op: "RMS_NORM", Out: 3, In: []uint32{3}, Fused: []string{"MUL"}}, {Op: "MUL_MAT_ID", Out: 4, In: []uint32{2, 3, 0}}},
		Experts:   []optrace.ExpertChoice{{Layer: 0, Used: 2, IDs: []int32{7, 2}, Tokens: 1}},
		Names:     []string{"CPU"},
	}
	r := &optrace.Recording{
		Target: optrace.Target{PID: 42, Command: "/usr/bin/llama-server -m x", Runtime: "ggml 0.25.1", Hook: "ggml_cpu_extra_compute_forward"},
		Tables: t, Begin: 5 * time.Second, End: 5*time.Second + 3*ms, Origin: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Detail: optrace.LevelSched | optrace.DetailBarrier,
	}
	var first, second, third uint64 = 0x1000, 0x1150, 0x12a0
	for call := range 2 {
		at := r.Begin + time.Duration(call)*ms
		add := func(after time.Duration, tid int32, e optrace.Event) {
			e.At, e.PID, e.TID = at+after, 42, tid
			r.Events = append(r.Events, e)
		}
		worker := int32(50 + call) // a new one for each graph
		op := func(lane uint16, addr uint64, ref uint32) optrace.Event {
			return optrace.Event{Kind: optrace.OpBegin, Addr: addr, Ref: ref, Thread: lane, Threads: 2, CPU: lane}
		}
		add(0, 42, optrace.Event{Kind: optrace.CallBegin, Ref: uint32(optrace.CallDecode), N: 1})
		add(10*us, 42, optrace.Event{Kind: optrace.SplitBegin, Ref: 1, N: 3, Addr: 0x900})
		add(20*us, 42, optrace.Event{Kind: optrace.GraphBegin, Addr: 0x900, N: 3})
		add(30*us, 42, op(0, first, 2))
		add(31*us, worker, op(1, first, 2))
		add(50*us, worker, optrace.Event{Kind: optrace.BarrierBegin})
		add(60*us, 42, optrace.Event{Kind: optrace.BarrierBegin})
		add(61*us, 42, optrace.Event{Kind: optrace.BarrierEnd})
		add(62*us, worker, optrace.Event{Kind: optrace.BarrierEnd})
		add(63*us, 42, op(0, second, 1))
		add(64*us, worker, op(1, second, 1))
		add(70*us, 42, optrace.Event{Kind: optrace.PageFault, Addr: 0x7f00, N: 1})
		add(80*us, 42, optrace.Event{Kind: optrace.SwitchOut, N: int64(optrace.OffPreempted)})
		add(180*us, 42, optrace.Event{Kind: optrace.SwitchIn, N: 8001, CPU: 1})
		add(190*us, worker, optrace.Event{Kind: optrace.SyscallBegin, N: 202})
		add(200*us, worker, optrace.Event{Kind: optrace.SwitchOut, N: int64(optrace.OffBlocked)})
		add(230*us, worker, optrace.Event{Kind: optrace.WakeUp})
		add(235*us, worker, optrace.Event{Kind: optrace.SwitchIn})
		add(236*us, worker, optrace.Event{Kind: optrace.SyscallEnd})
		add(240*us, worker, optrace.Event{Kind: optrace.BarrierBegin})
		add(300*us, 42, optrace.Event{Kind: optrace.BarrierBegin})
		add(301*us, 42, optrace.Event{Kind: optrace.BarrierEnd})
		add(302*us, worker, optrace.Event{Kind: optrace.BarrierEnd})
		add(305*us, 42, op(0, third, 3))
		add(306*us, 42, optrace.Event{Kind: optrace.ExpertsChosen, Ref: 1})
		add(307*us, worker, op(1, third, 3))
		add(400*us, 42, optrace.Event{Kind: optrace.GraphEnd, Addr: 0x900})
		add(410*us, 42, optrace.Event{Kind: optrace.CopyBegin, Ref: uint32(optrace.CopyGet), N: 4096})
		add(450*us, 42, optrace.Event{Kind: optrace.CallEnd})
		add(500*us, 42, optrace.Event{Kind: optrace.SampleBegin})
	}
	return r
}

func operatorTrace(t testing.TB, r *optrace.Recording) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteOperators(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOperatorsGolden(t *testing.T) {
	got := operatorTrace(t, chromeTraced())
	const file = "testdata/operators.json"
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if faults := validate(got); faults != nil {
		t.Error(strings.Join(faults, "\n"))
	}
}

// TestWaitsAreCutAtOperators checks that a wait is drawn at its time, in pieces that do not
// cross the end of an operator.
func TestWaitsAreCutAtOperators(t *testing.T) {
	spans := []optrace.Span{{Begin: 10, End: 20}, {Begin: 25, End: 40}}
	for _, c := range []struct {
		from, to time.Duration
		want     string
	}{
		{12, 15, "12-15"}, {15, 22, "15-20 20-22"}, {20, 25, "20-25"}, {18, 30, "18-20 20-25 25-30"}, {5, 50, "5-10 10-20 20-25 25-40 40-50"}, {41, 45, "41-45"}, {1, 3, "1-3"},
	} {
		events := []*optrace.Event{{Kind: optrace.BarrierBegin, At: c.from}, {Kind: optrace.BarrierEnd, At: c.to}}
		var got []string
		for _, x := range waits(events, spans, 100) {
			got = append(got, fmt.Sprintf("%d-%d", x.from, x.to))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%d to %d: got %s, want %s", c.from, c.to, s, c.want)
		}
	}
}

// anyRecording returns a recording from an inconsistent source.
func anyRecording(seed uint64) *optrace.Recording {
	r := rand.New(rand.NewPCG(seed, 9))
	rec := chromeTraced()
	at := time.Duration(r.IntN(2))*rec.Begin + time.Duration(r.IntN(1e6)) // among its events, or before them
	rec.Begin = time.Duration(r.IntN(3)) * rec.Begin
	for range r.IntN(400) {
		at += time.Duration(r.IntN(4e4))
		rec.Events = append(rec.Events, optrace.Event{
			Kind: optrace.Kind(r.IntN(30)), At: at, Addr: uint64(r.IntN(3)), N: int64(r.IntN(5) - 1), Ref: uint32(r.IntN(6)), PID: 42, TID: int32(r.IntN(4)), Thread: uint16(r.IntN(3)), Threads: uint16(r.IntN(4)),
		})
	}
	return rec
}

// FuzzOperators checks that any recording gives a valid trace.
func FuzzOperators(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := anyRecording(seed)
		got := operatorTrace(t, r)
		if faults := validate(got); faults != nil {
			t.Fatal(strings.Join(faults, "\n"))
		}
		if again := operatorTrace(t, r); !bytes.Equal(got, again) {
			t.Fatal("the same recording gives another trace")
		}
	})
}

func TestOperatorsOfNothing(t *testing.T) {
	if faults := validate(operatorTrace(t, &optrace.Recording{})); faults != nil {
		t.Error(strings.Join(faults, "\n"))
	}
}

// event is an event as readers see it.
type event struct {
	Ph   string
	Ts   *float64
	Dur  *float64
	Pid  int
	Tid  int
	Name string
	S    string
	Args map[string]any
}

func nanos(us *float64) int64 { return int64(*us * 1000) }

// validate reads a trace like Perfetto and returns what it would drop, show without a name or
// misinterpret.
func validate(data []byte) (faults []string) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	var trace struct {
		DisplayTimeUnit string            `json:"displayTimeUnit"`
		OtherData       map[string]string `json:"otherData"`
		TraceEvents     []event           `json:"traceEvents"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&struct {
		DisplayTimeUnit *string         `json:"displayTimeUnit"`
		OtherData       *map[string]any `json:"otherData"`
		TraceEvents     *[]any          `json:"traceEvents"`
	}{}); err != nil {
		return []string{err.Error()}
	}
	if err := json.Unmarshal(data, &trace); err != nil {
		return []string{err.Error()}
	}
	if trace.DisplayTimeUnit != "ms" || trace.OtherData["origin"] == "" {
		fault("no unit or no origin: %q %v", trace.DisplayTimeUnit, trace.OtherData)
	}
	names := map[Track]bool{}
	last := map[string]int64{}
	open := map[Track][][2]int64{}
	ids := map[int]bool{}
	for _, e := range trace.TraceEvents {
		if e.Ts == nil || *e.Ts < 0 || e.Pid <= 0 || e.Name == "" {
			fault("%+v has no time, a negative one, no group or no name", e)
			continue
		}
		on, at := Track{e.Pid, e.Tid}, nanos(e.Ts)
		if e.Ph != "M" && !names[Track{PID: e.Pid}] {
			fault("group %d has no name yet at %q", e.Pid, e.Name)
		}
		var key string
		switch e.Ph {
		case "M":
			id := e.Tid
			if id == 0 {
				id = e.Pid
			}
			if strings.HasSuffix(e.Name, "_name") {
				if text, _ := e.Args["name"].(string); text == "" || names[on] || ids[id] {
					fault("%s of %v is empty or another's", e.Name, on)
				}
				names[on], ids[id] = true, true
			} else if _, ok := e.Args["sort_index"].(float64); !ok {
				fault("%+v is not known metadata", e)
			}
			continue
		case "C":
			key = fmt.Sprint("counter ", e.Pid, e.Name)
			if len(e.Args) != 1 || e.Tid != 0 {
				fault("counter %+v", e)
			}
			for _, v := range e.Args {
				if f, ok := v.(float64); !ok || math.IsInf(f, 0) || math.IsNaN(f) {
					fault("%s reads %v", key, v)
				}
			}
		case "X", "i":
			key = fmt.Sprint(e.Ph, on)
			if !names[on] {
				fault("track %v has no name", on)
			}
			if e.Ph == "i" && e.S != "t" {
				fault("instant %+v has no scope", e)
			}
			if e.Ph == "X" {
				if e.Dur == nil || *e.Dur < 0 {
					fault("span %+v has no length", e)
					continue
				}
				faults = append(faults, nest(open, on, e.Name, at, at+nanos(e.Dur))...)
			}
		default:
			fault("phase %q", e.Ph)
		}
		if at < last[key] {
			fault("%s goes back from %d to %d", key, last[key], at)
		}
		last[key] = at
	}
	return faults
}

// nest tracks the open spans of a track, and reports a span that crosses the end of another.
func nest(open map[Track][][2]int64, on Track, name string, from, to int64) []string {
	stack := open[on]
	for len(stack) > 0 && stack[len(stack)-1][1] <= from {
		stack = stack[:len(stack)-1]
	}
	open[on] = append(slices.Clone(stack), [2]int64{from, to})
	if len(stack) > 0 && to > stack[len(stack)-1][1] {
		return []string{fmt.Sprintf("%q on %v, %d to %d, crosses the end of %v", name, on, from, to, stack[len(stack)-1])}
	}
	return nil
}
