package optrace_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// recorded returns a recording of a scene, with something in every field.
func recorded(s scene) *optrace.Recording {
	m := s.make()
	m.tables.Names = append(m.tables.Names, "CPU", "Größe \"x\"\n")
	m.events = append(m.events,
		optrace.Event{At: 1 << 40, Kind: optrace.SplitBegin, Addr: math.MaxUint64, N: math.MinInt64, Ref: 2, PID: math.MaxInt32, TID: math.MinInt32},
		optrace.Event{At: math.MaxInt64, Kind: optrace.PageFault, Thread: math.MaxUint16, Threads: math.MaxUint16, CPU: math.MaxUint16, N: math.MaxInt64, Ref: math.MaxUint32},
		optrace.Event{At: math.MaxInt64, Kind: optrace.Lost},
	)
	return &optrace.Recording{
		Target: optrace.Target{
			PID: 5, Command: "llama-server -m x", Files: []optrace.File{{Role: "base", Path: "/x", BuildID: "ab"}}, Layout: "accessors", Verified: true,
			Sites: []optrace.Site{{Symbol: "f", Offset: 4, Cheap: true, Cost: 350}}, CPUs: 2,
		},
		Tables: m.tables, Events: m.events, Begin: 1, End: 99,
		Origin: time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC), Detail: optrace.LevelSched,
		Dropped: 3, LeftOut: 4, Peak: optrace.Peak{BytesPerSecond: 1.5e10, FlopsPerSecond: 0.1, Threads: 2, From: "measured"},
		Gaps: []optrace.Gap{{What: "a", Why: "b", Next: "c"}}, Observer: optrace.Observer{HitsPerToken: 73, CostPerHit: 400, Expected: 0.02, Windows: 7}, Reader: 8,
		HostLoad: &optrace.HostLoad{Elapsed: 98, CPUs: 2, Others: 40, Throttled: stat.Some(0)},
	}
}

func TestRecordingRoundTrip(t *testing.T) {
	for name, r := range map[string]*optrace.Recording{
		"a scene":    recorded(variants()["everything"]),
		"nothing":    {Tables: &optrace.Tables{}},
		"no tables":  {Events: []optrace.Event{{Kind: optrace.Lost, N: 1}}},
		"other zone": {Tables: &optrace.Tables{}, Origin: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))},
	} {
		var b bytes.Buffer
		if err := write(&b, r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := b.String()
		got, err := readAll(&b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := *r
		want.Origin = r.Origin.UTC()
		if want.Tables == nil {
			want.Tables = &optrace.Tables{}
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, want)
		}
		var again bytes.Buffer
		if err := write(&again, got); err != nil || again.String() != text {
			t.Errorf("%s: written again it is another text, %v", name, err)
		}
	}
}

func TestEveryKindHasItsWord(t *testing.T) {
	for k := optrace.KindNone + 1; k <= optrace.DetailChanged; k++ {
		if got, ok := optrace.ParseKind(k.Word()); !ok || got != k {
			t.Errorf("kind %d: its word is %q", k, k.Word())
		}
	}
	if got := (optrace.DetailChanged + 4).String(); !strings.HasPrefix(got, "kind ") {
		t.Errorf("an unknown kind is %q", got)
	}
}

// A truncated recording is read as far as possible, wherever it was cut, and has a gap.
func TestReadRecordingThatWasCutShort(t *testing.T) {
	var b bytes.Buffer
	rw, err := optrace.NewWriter(&b, &optrace.Recording{Begin: 3, Detail: optrace.LevelTensor, Reader: 77})
	if err != nil {
		t.Fatal(err)
	}
	known := &optrace.Recording{Target: optrace.Target{Verified: true}, End: 9, Detail: optrace.LevelTensor, Dropped: 7, Gaps: []optrace.Gap{{What: "a thing"}}, Observer: optrace.Observer{Expected: 0.01}}
	for _, write := range []func() error{
		func() error { return rw.Events([]optrace.Event{{Kind: optrace.Lost, At: 5, N: 1}}) },
		func() error { return rw.SoFar(known) },
		func() error { return rw.Events([]optrace.Event{{Kind: optrace.Lost, At: 11, N: 1}}) },
		func() error { return rw.Close(known) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.SplitAfter(b.String(), "\n")[:5]
	for _, c := range []struct {
		lines, events int
		end           time.Duration
		dropped       int64
	}{{1, 0, 3, 0}, {2, 1, 5, 0}, {3, 1, 9, 7}, {4, 2, 11, 7}} {
		whole := strings.Join(lines[:c.lines], "")
		for _, text := range []string{whole, whole + lines[c.lines][:5]} {
			r, err := readAll(strings.NewReader(text))
			if err != nil {
				t.Fatalf("cut after line %d: %v", c.lines, err)
			}
			gap := r.Gaps[len(r.Gaps)-1]
			if len(r.Events) != c.events || r.End != c.end || r.Dropped != c.dropped || r.Detail != optrace.LevelTensor || r.Reader != 77 || !strings.Contains(gap.Why, "cut short") {
				t.Errorf("cut after line %d: %+v", c.lines, r)
			}
			if c.dropped > 0 && (len(r.Gaps) != 2 || !r.Target.Verified || r.Observer.Expected != 0.01) {
				t.Errorf("cut after line %d: what was known is not: %+v", c.lines, r)
			}
		}
	}
	if r, err := readAll(&b); err != nil || len(r.Events) != 2 || len(r.Gaps) != 1 {
		t.Errorf("uncut: %v, %+v", err, r)
	}
}

func TestReadRecordingSaysWhatIsWrong(t *testing.T) {
	var b bytes.Buffer
	if err := write(&b, &optrace.Recording{Events: []optrace.Event{{Kind: optrace.Lost, At: 5, N: 1}}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(b.String(), "\n")
	head, event, end := lines[0], lines[1], lines[2]
	for name, c := range map[string]struct{ text, says string }{
		"nothing":            {"", "line 1: not a trace recording"},
		"something else":     {"PK\x03\x04\n", "line 1: not a trace recording"},
		"another document":   {`{"schema":"rooftop.run/v1"}` + "\n", "line 1: not a trace recording"},
		"a newer one":        {`{"schema":"rooftop.trace-recording/v2"}` + "\n", "read it with the rooftop that wrote it"},
		"a head with more":   {`{"schema":"rooftop.trace-recording/v1","more":1}` + "\n", `line 1: json: unknown field "more"`},
		"an event too few":   {head + end, "line 2: it declares 1 events, but 0 were read"},
		"more after the end": {head + event + end + event, "line 4: there is data after the end"},
		"back in time":       {head + event + `["lost",4]` + "\n", "line 3: it is earlier than the previous one"},
		"no kind":            {head + "[5,1]\n", "line 2: it is not an event"},
		"an unknown kind":    {head + `["dance",1]` + "\n", `line 2: part 1 of the event is "dance"`},
		"a fraction":         {head + `["lost",1.5]` + "\n", "line 2: part 2 of the event is not a whole"},
		"a number too large": {head + `["lost",1,99999999999]` + "\n", "line 2: part 3 of the event is out of its range"},
		"eleven parts":       {head + `["lost",1,1,1,1,1,1,1,1,1,1]` + "\n", `line 2: after part 10 of the event there is ",1"`},
		"an open event":      {head + `["lost",1` + "\n", "line 2: it is not an event"},
		"an empty line":      {head + "\n", "line 2: it is empty"},
		"no entry":           {head + "{}\n", "line 2: it is neither an event nor one entry"},
		"two entries":        {head + `{"name":"a","tensor":{}}` + "\n", "line 2: it is neither an event nor one entry"},
		"an unknown entry":   {head + `{"tensor":{"colour":1}}` + "\n", `unknown field "colour"`},
		"two values":         {head + `{"name":"a"} {}` + "\n", "line 2: unexpected text after the value"},
	} {
		r, err := readAll(strings.NewReader(c.text))
		if err == nil || r != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// endless is a line that never ends.
type endless struct{ head io.Reader }

func (e endless) Read(b []byte) (int, error) {
	if n, _ := e.head.Read(b); n > 0 {
		return n, nil
	}
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestReadRecordingEndsWithAnEndlessLine(t *testing.T) {
	_, err := readAll(endless{strings.NewReader(`{"schema":`)})
	if err == nil || !strings.Contains(err.Error(), "line 1: it has more than") {
		t.Errorf("%v", err)
	}
}

// TestTablesAreBounded checks that DAGs of empty nodes, which take more memory than text, have a limit over all lines.
func TestTablesAreBounded(t *testing.T) {
	var b bytes.Buffer
	w, err := optrace.NewWriter(&b, &optrace.Recording{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := optrace.NewReader(strings.NewReader(b.String() + strings.Repeat(`{"dag":{"nodes":[{}],"leaves":[{}]}}`+"\n", 3)))
	if err != nil {
		t.Fatal(err)
	}
	const room = 8
	optrace.FillTables(r, w, room)
	if _, err := r.Next(); err == nil || !strings.HasPrefix(err.Error(), "line 4: the tables exceed") {
		t.Errorf("read: %v", err)
	}
	dags := &optrace.Tables{DAGs: make([]optrace.DAG, room)}
	if err := w.Tables(dags); err != nil {
		t.Errorf("written in the remaining room: %v", err)
	}
	dags.DAGs = append(dags.DAGs, optrace.DAG{})
	if err := w.Tables(dags); err == nil || !strings.HasPrefix(err.Error(), "the tables exceed") {
		t.Errorf("written: %v", err)
	}
}

func TestWriteRecordingRefusesWhatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		r    optrace.Recording
		says string
	}{
		"no kind":      {optrace.Recording{Events: []optrace.Event{{}}}, "event 1 (kind 0) cannot be recorded"},
		"back in time": {optrace.Recording{Events: []optrace.Event{{At: 2, Kind: optrace.Lost}, {At: 1, Kind: optrace.Lost}}}, "event 2 (lost) cannot be recorded: it is earlier"},
		"no number":    {optrace.Recording{Peak: optrace.Peak{BytesPerSecond: math.NaN()}}, "the end of the recording cannot be written"},
	} {
		if err := write(io.Discard, &c.r); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// Whatever can be read is written in a form that reads the same.
func FuzzReadRecording(f *testing.F) {
	for _, s := range []scene{plain, {seed: 3, contexts: 1, rounds: 1, lanes: 1, nodes: 2, prompt: 2, dag: true, counters: true, experts: true}} {
		var b bytes.Buffer
		if err := write(&b, recorded(s)); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"schema":"rooftop.trace-recording/v1"}` + "\n" + `["lost",1]` + "\n" + `{"end":{"events":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := readAll(bytes.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("%v: says no line", err)
			}
			return
		}
		var b bytes.Buffer
		if err := write(&b, r); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := readAll(&b)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if len(r.Events) != len(again.Events) || !reflect.DeepEqual(r.Events, again.Events) {
			t.Error("the events are others")
		}
		assembled(r.Tables, r.Events)
	})
}

// readAll reads a recording with all of its events.
func readAll(r io.Reader) (*optrace.Recording, error) {
	in, err := optrace.NewReader(r)
	if err != nil {
		return nil, err
	}
	var events []optrace.Event
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			out := *in.Recording()
			out.Events = events
			return &out, nil
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
}

// write writes a recording with all of its events.
func write(w io.Writer, r *optrace.Recording) error {
	out, err := optrace.NewWriter(w, r)
	if err != nil {
		return err
	}
	if r.Tables != nil {
		err = out.Tables(r.Tables)
	}
	return errors.Join(err, out.Events(r.Events), out.Close(r))
}
