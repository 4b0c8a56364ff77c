package chrometrace

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

var update = flag.Bool("update", false, "rewrite testdata")

const ms = time.Millisecond

// small returns a capture with one of everything: a reused connection, a failed request, a
// process that ended, a throttled GPU, an unreadable page and a failed sample.
func small() *capture.Capture {
	device := func(power float64, mask uint64) engine.GPU {
		d := engine.GPU{Index: 0, Name: "NVIDIA L4", UUID: "GPU-1", Throttle: mask, ThrottleOK: true}
		d.Fields[engine.GPUPowerW] = stat.Some(power)
		d.Fields[engine.GPUUtil] = stat.Some(0.91)
		return d
	}
	return &capture.Capture{
		Kind: capture.Probe, Wall: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Period: 50 * ms,
		Begin: 10 * ms, End: 400 * ms, PagesFrom: "vLLM",
		Requests: []capture.Request{
			{ID: 0, Sent: 10 * ms, Connect: 2*ms + 345, Written: 13 * ms, Answered: 40 * ms, End: 200*ms + 1, Status: 200, Finish: "length",
				Chunks:       []capture.Chunk{{At: 50*ms + 1, Bytes: 3}, {At: 100 * ms, Kind: capture.Reasoning, Bytes: 2}, {At: 200 * ms, Kind: capture.Empty}},
				OutputTokens: stat.Some(3), PromptTokens: stat.Some(7)},
			{ID: 1, Sent: 201 * ms, Reused: true, End: 400 * ms, Error: `the server said "no"`},
		},
		Tree: capture.Tree{Root: 100, How: "--pid",
			Processes: []capture.Process{
				{PID: 100, PPID: 1, InnerPID: 100, Comm: "bash", Role: "launcher", Joined: 5 * ms},
				{PID: 101, PPID: 100, InnerPID: 7, Comm: "python", Title: "VLLM::EngineCore", Role: "engine-core", Joined: 5 * ms, Left: 105 * ms, Gone: true},
			},
			Samples: []capture.TreeSample{
				{At: 5 * ms, Processes: []capture.ProcessSample{{Process: 0, RSSBytes: 2 << 20, Threads: 1}, {Process: 1, CPU: time.Second, RSSBytes: 1 << 30, Threads: 52}}},
				{At: 55 * ms, Processes: []capture.ProcessSample{{Process: 0, RSSBytes: 2 << 20, Threads: 1}, {Process: 1, CPU: 1075 * ms, RSSBytes: 1 << 30, Threads: 53}}},
				{At: 105 * ms, Partial: true, Processes: []capture.ProcessSample{{Process: 0, RSSBytes: 2 << 20, Threads: 1}}},
				{At: 155 * ms, Error: "permission denied"},
			}},
		GPUs: capture.GPUs{From: "NVML", Readings: []engine.GPUReading{
			{T: 6 * ms, Devices: []engine.GPU{device(37, 1)}},
			{T: 56 * ms, Devices: []engine.GPU{device(72, 4)}},
			{T: 106 * ms, Devices: []engine.GPU{device(72, 4)}},
			{T: 156 * ms, Devices: []engine.GPU{device(60, 0)}},
		}},
		Pages: []capture.PageSample{
			{At: 4 * ms, GenerationTokens: stat.Some(100), Running: stat.Some(0), KVUsage: stat.Some(0)},
			{At: 104 * ms, Error: "connection refused"},
			{At: 204 * ms, GenerationTokens: stat.Some(120), Running: stat.Some(1), KVUsage: stat.Some(0.25)},
			{At: 304 * ms, GenerationTokens: stat.Some(3)}, // another server
		},
	}
}

func TestGolden(t *testing.T) {
	var out bytes.Buffer
	if err := WriteCapture(&out, small()); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/capture.json"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if faults := validate(out.Bytes()); faults != nil {
		t.Error(strings.Join(faults, "\n"))
	}
}

// An event before the origin moves the origin, without changing any event's wall time.
func TestOpeningSampleBeforeTheOrigin(t *testing.T) {
	c := small()
	c.Pages[0].At = -3 * ms
	var out bytes.Buffer
	if err := WriteCapture(&out, c); err != nil {
		t.Fatal(err)
	}
	if faults := validate(out.Bytes()); faults != nil {
		t.Error(strings.Join(faults, "\n"))
	}
	for _, want := range []string{`"origin":"2026-01-02T03:04:04.997006Z"`, `{"ph":"X","ts":13000,"dur":390000,`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
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
				fault("%+v is no metadata that is known", e)
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
			key = fmt.Sprint(e.Ph, on, depth(e.Name))
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

// depth distinguishes nested spans by kind: each kind must be in time order.
func depth(name string) string {
	if strings.HasPrefix(name, "request ") {
		return "request"
	}
	return "within"
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

// TestCountedAtEnd checks that a counter which grows when a request ends is drawn as a value,
// not as a rate.
func TestCountedAtEnd(t *testing.T) {
	for counting, want := range map[capture.Counting]string{capture.AtEnd: "generated (counted when a request ends)", capture.EachStep: "generation"} {
		c := &capture.Capture{Kind: capture.Observation, End: 2 * time.Second, PagesFrom: "llama.cpp", Counting: counting}
		for i := range 3 {
			c.Pages = append(c.Pages, capture.PageSample{At: time.Duration(i) * time.Second, GenerationTokens: stat.Some(600 * float64(i/2))})
		}
		var out strings.Builder
		if err := WriteCapture(&out, c); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"generated (counted when a request ends)", "generation"} {
			if drawn := strings.Contains(out.String(), `"`+name+`"`); drawn != (name == want) {
				t.Errorf("%s: %q drawn: %v", counting, name, drawn)
			}
		}
	}
}
