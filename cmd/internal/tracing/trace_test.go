package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// decoder is a source of a model with one operator, whose calls all take the same time.
type decoder struct {
	tables  optrace.Tables
	detail  optrace.Detail
	change  bool // of detail that no event has reported yet
	now     time.Duration
	each    time.Duration // of a graph
	left    int           // calls until the target ends; none are computed where it is 0
	closed  bool
	lasts   func() // what a call takes of the test's own time; nil nothing
	fails   error  // instead of ending
	idle    bool   // computes nothing and does not end
	ended   bool   // before more than graphs was watched
	execs   bool   // instead of ending
	prompts bool   // alone
	mute    bool   // calls do not report their tokens
	untold  int    // operators of graphs that say neither how many they have nor what for; 0 they do
	asked   int    // for events after that
	load    func(pid int) (loadMeter, error)
}

func newDecoder(each time.Duration, calls int) *decoder {
	return &decoder{
		now: time.Hour, each: each, left: calls,
		tables: optrace.Tables{
			Tensors: []optrace.Tensor{
				{Name: "blk.0.ffn_up.weight", Type: "q8_0", NE: [4]int64{64, 64, 1, 1}, NB: [4]uint64{34, 68, 4352, 4352}},
				{Name: "ffn_norm-0", Type: "f32", NE: [4]int64{64, 1, 1, 1}, NB: [4]uint64{4, 256, 256, 256}},
				{Name: "ffn_up-0", Type: "f32", NE: [4]int64{64, 1, 1, 1}, NB: [4]uint64{4, 256, 256, 256}},
			},
			Operators: []optrace.Operator{{Op: "MUL_MAT", Out: 3, In: []uint32{1, 2}}, {Op: "NONE", Out: 1}, {Op: "NONE", Out: 2}},
			DAGs: []optrace.DAG{{
				Addr: 0x10, Nodes: []optrace.Node{{Addr: 0x100, Operator: 1, Sources: []uint64{0x200, 0x300}}},
				Leaves: []optrace.Node{{Addr: 0x200, Operator: 2}, {Addr: 0x300, Operator: 3}},
			}},
		},
	}
}

func (d *decoder) SetDetail(detail optrace.Detail) error {
	if d.ended && detail&optrace.DetailOperator != 0 {
		return fmt.Errorf("process 4242: %w", ggml.ErrEnded)
	}
	d.detail, d.change = detail, true
	return nil
}

func (d *decoder) Tables() *optrace.Tables { return &d.tables }
func (d *decoder) Dropped() int64          { return 0 }
func (d *decoder) Gaps() []optrace.Gap     { return nil }
func (d *decoder) Close() error            { d.closed = true; return nil }

func (d *decoder) Target() optrace.Target {
	return optrace.Target{PID: 4242, Command: "llama-server -m tiny.gguf", Runtime: "ggml 0.25.1", Verified: true, Hook: "ggml_cpu_extra_compute_forward", Sites: []optrace.Site{
		{Symbol: "llama_decode", Cheap: true, Cost: 350}, {Symbol: "ggml_graph_compute", Cheap: true, Cost: 350},
		{Symbol: "ggml_cpu_extra_compute_forward", Cheap: true, Cost: 350},
	}}
}

// Next returns one call: a prompt of 8 tokens every tenth time.
func (d *decoder) Next(ctx context.Context) ([]optrace.Event, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if d.change {
		d.change = false
		return []optrace.Event{{At: d.now, Kind: optrace.DetailChanged, N: int64(d.detail), PID: 4242}}, nil
	}
	switch {
	case d.idle:
		<-ctx.Done()
		return nil, ctx.Err()
	case d.left < 0:
		d.asked++
		return nil, io.EOF
	case d.left == 0 && d.fails != nil:
		return nil, d.fails
	case d.left == 0 && d.execs:
		d.left--
		return []optrace.Event{{At: d.now, Kind: optrace.TargetExec, PID: 4242, TID: 4242}}, nil
	case d.left == 0:
		return nil, io.EOF
	}
	if d.lasts != nil {
		d.lasts()
	}
	d.left--
	tokens := int64(1)
	if d.left%10 == 9 || d.prompts {
		tokens = 8
	}
	at := func(share float64) time.Duration { return d.now + time.Duration(share*float64(d.each)) }
	events := []optrace.Event{
		{At: at(0), Kind: optrace.CallBegin, Ref: uint32(optrace.CallDecode), N: tokens},
		{At: at(0.01), Kind: optrace.GraphBegin, Addr: 0x10, N: 1, Ref: 1},
		{At: at(1.01), Kind: optrace.GraphEnd, Addr: 0x10},
		{At: at(1.02), Kind: optrace.CallEnd, Ref: uint32(optrace.CallDecode)},
	}
	if d.mute {
		events[0].Ref, events[0].N = uint32(optrace.CallProcess), 0
	}
	if d.detail&optrace.DetailGraph == 0 {
		events = append(events[:1], events[3])
	}
	if d.detail&optrace.DetailOperator != 0 {
		events = append(events[:3], events[2:]...)
		events[2] = optrace.Event{At: at(0.01), Kind: optrace.OpBegin, Addr: 0x100, Ref: 1, Threads: 1}
	}
	if d.untold > 0 {
		events = []optrace.Event{events[1], events[len(events)-2]}
		events[0].N, events[0].Ref = 0, 0
		for i := range d.untold * min(1, int(d.detail&optrace.DetailOperator)) {
			op := optrace.Event{At: at(0.01 + float64(i)/float64(d.untold)), Kind: optrace.OpBegin, Addr: uint64(0x100 + i), Threads: 1}
			events = slices.Insert(events, len(events)-1, op)
		}
	}
	for i := range events {
		events[i].PID, events[i].TID = 4242, 4243
	}
	d.now += 2 * d.each
	return events, nil
}

// trace runs the command on a source.
func runTrace(t *testing.T, d *decoder, args ...string) (stdout, stderr string, code cli.ExitCode) {
	t.Helper()
	return traceOn(t, machineOf("Example CPU 1000"), variables(), d, args...)
}

// plain replaces no-break spaces by spaces.
func plain(text string) string { return strings.ReplaceAll(text, figure.NBSP, " ") }

// variables returns an environment of name and value pairs.
func variables(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.Index(pairs, name)
		if i < 0 || i%2 == 1 {
			return "", false
		}
		return pairs[i+1], true
	}
}

// call runs the command without a source.
func call(t *testing.T, args ...string) (stdout, stderr string, code cli.ExitCode) {
	t.Helper()
	return traceOn(t, thisMachine, variables(), nil, args...)
}

// traceOn runs the command on a source and a machine.
func traceOn(t *testing.T, machine func() (host, error), env func(string) (string, bool), d *decoder, args ...string) (stdout, stderr string, code cli.ExitCode) {
	t.Helper()
	return traceWithin(t.Context(), t, machine, env, d, args...)
}

// traceWithin is traceOn until a context ends.
func traceWithin(ctx context.Context, t *testing.T, machine func() (host, error), env func(string) (string, bool), d *decoder, args ...string) (stdout, stderr string, code cli.ExitCode) {
	t.Helper()
	var out, errs strings.Builder
	w := &cli.World{Stdout: &out, Stderr: &errs, Env: env}
	o := New(w)
	o.machine, o.load = machine, nil
	if d != nil {
		o.open, o.load = func() (Source, error) { return d, nil }, d.load
	}
	c := &cobra.Command{Use: "trace", SilenceErrors: true, SilenceUsage: true, RunE: func(c *cobra.Command, args []string) error {
		if err := cli.FromEnvironment(c.Flags(), env); err != nil {
			return err
		}
		return cli.Coded(o.Run(c.Context(), w, args...))
	}}
	c.SetFlagErrorFunc(cli.FlagError)
	g := cli.GroupFlags(c)
	o.Register(g)
	g.Done()
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	if d != nil && !d.closed {
		t.Error("the target is still attached to")
	}
	if err == nil {
		return out.String(), errs.String(), cli.ExitDone
	}
	coded, ok := err.(*cli.CodedError) //nolint:errorlint // as it comes from the command
	if !ok {
		t.Fatal(err)
	}
	if coded.Err != nil {
		errs.WriteString("rooftop: " + coded.Err.Error() + "\n")
	}
	return out.String(), errs.String(), coded.Code
}

// A trace does not wait for a target that becomes another program, neither during the calibration,
// after five graphs, nor later.
func TestTraceOfATargetThatExecs(t *testing.T) {
	for calls, want := range map[int]cli.ExitCode{5: cli.ExitNothing, 500: cli.ExitDone} {
		d := newDecoder(time.Millisecond, calls)
		d.execs = true
		if _, errs, code := runTrace(t, d, "--force"); code != want || d.asked > 0 {
			t.Errorf("after %d calls: exit code %d, want %d, and asked for more %d times: %s", calls, code, want, d.asked, errs)
		}
	}
}

// Unless the user raises it, the limit applies to the expected cost: a requested level above it is
// refused, with a hint at one that fits.
func TestTraceThatCostsTooMuch(t *testing.T) {
	_, errs, code := runTrace(t, newDecoder(200*time.Microsecond, 500), "--pid", "4242", "--level", "sched")
	if code != cli.ExitNothing || !strings.Contains(errs, "more than --max-overhead 4") || !strings.Contains(errs, "--force") || !strings.Contains(errs, "--level token would cost ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, args := range [][]string{{"--force"}, {"--max-overhead", "500"}, {"--level", "token"}} {
		if _, errs, code := runTrace(t, newDecoder(10*time.Microsecond, 500), args...); code != cli.ExitDone {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

// The default level is replaced by the most detailed one that fits, with a note.
func TestTraceWhoseDefaultLevelCostsTooMuch(t *testing.T) {
	for _, c := range []struct {
		each  time.Duration
		limit string
		want  optrace.Detail
	}{
		{200 * time.Microsecond, "4", optrace.LevelToken},
		{300 * time.Microsecond, "3.1", optrace.LevelToken},
		{300 * time.Microsecond, "3.4", optrace.LevelGraph},
	} {
		d := newDecoder(c.each, 500)
		out, errs, code := runTrace(t, d, "--max-overhead", c.limit, "--json")
		if code != cli.ExitDone || d.detail != c.want {
			t.Errorf("%v at %s %%: exit code %d, watched %v, want %v: %s", c.each, c.limit, code, d.detail, c.want, errs)
		}
		for _, want := range []string{"more than --max-overhead " + c.limit, "traces at --level " + c.want.String() + " instead", "--level sched --force"} {
			if !strings.Contains(errs, want) {
				t.Errorf("%v at %s %%: it says %q, want %q", c.each, c.limit, errs, want)
			}
		}
		if !strings.Contains(out, "what --level sched shows beyond "+c.want.String()) {
			t.Errorf("%v at %s %%: the document does not say so: %s", c.each, c.limit, out)
		}
	}
}

// If calls do not report their tokens, graphs are the lowest level: calls alone would give no
// figures.
func TestTraceOfCallsThatDoNotTellTheirTokens(t *testing.T) {
	mute := func(each time.Duration) *decoder {
		d := newDecoder(each, 500)
		d.mute = true
		return d
	}
	d := mute(300 * time.Microsecond)
	if _, errs, code := runTrace(t, d, "--max-overhead", "3.4"); code != cli.ExitDone || d.detail != optrace.LevelGraph {
		t.Errorf("exit code %d, watched %v: %s", code, d.detail, errs)
	}
	for _, args := range [][]string{nil, {"--level", "tensor"}} {
		d := mute(200 * time.Microsecond) // calls alone would fit
		_, errs, code := runTrace(t, d, args...)
		if want := "and no level fits: calls do not show their tokens, and graphs alone (--level graph) would cost "; code != cli.ExitNothing || !strings.Contains(errs, want) || d.detail&optrace.DetailOperator != 0 {
			t.Errorf("%v: exit code %d, watched %v: %s", args, code, d.detail, errs)
		}
	}
	out, errs, code := runTrace(t, mute(200*time.Microsecond), "--level", "token")
	for _, want := range []string{"the tokens and the phase of 500 calls", "llama_process", "--level graph shows them"} {
		if said := strings.Join(strings.Fields(strings.ReplaceAll(out, "\u00a0", " ")), " "); code != cli.ExitDone || !strings.Contains(said, want) {
			t.Errorf("exit code %d, no %q: %s%s", code, want, errs, out)
		}
	}
	if out, _, _ := runTrace(t, mute(5*time.Millisecond), "--level", "graph", "--json"); strings.Contains(out, "the tokens and the phase") || !strings.Contains(out, `"phase": "decode"`) {
		t.Errorf("graphs tell them: %s", out)
	}
}

// A refusal has a document, like other outcomes; an error has none.
func TestTraceDocumentOfARefusal(t *testing.T) {
	ended := newDecoder(time.Millisecond, 30)
	ended.ended = true
	for want, of := range map[string]struct {
		d    *decoder
		args []string
	}{
		"no level fits: calls alone (--level token) would cost": {newDecoder(10*time.Microsecond, 500), []string{"--json"}},
		"process 4242: it ended":                                {ended, []string{"--json", "--force"}},
		"nothing was computed yet":                              {&decoder{idle: true}, []string{"--json", "--duration", "200ms"}},
		"process 4242 ended":                                    {newDecoder(time.Millisecond, 0), []string{"--json"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			out, _, code := runTrace(t, of.d, of.args...)
			var document struct {
				Schema string `json:"schema"`
				Gaps   []optrace.Gap
			}
			if err := json.Unmarshal([]byte(out), &document); err != nil || code != cli.ExitNothing || document.Schema != "rooftop.trace/v1" ||
				!slices.ContainsFunc(document.Gaps, func(g optrace.Gap) bool { return strings.Contains(g.Why, want) }) {
				t.Errorf("%s: exit code %d, %v: %s", want, code, err, out)
			}
		})
	}
	if out, errs, code := runTrace(t, nil, "--json", "--file", "/nowhere/libggml-cpu.so"); code != cli.ExitUnreachable || out != "" {
		t.Errorf("exit code %d, wrote %q, said %q", code, out, errs)
	}
}

// An estimate without decoded tokens is marked as such.
func TestTraceReckonedFromPrompts(t *testing.T) {
	d := newDecoder(time.Second, 30)
	d.prompts = true
	out, errs, _ := runTrace(t, d, "--json")
	if !strings.Contains(errs, "no token was decoded yet") || !strings.Contains(out, "what tracing costs while tokens are decoded") {
		t.Errorf("it said %q:\n%s", errs, out)
	}
}

// With few tokens the fastest one counts: others were slowed down by other programs, and the probes
// take the same time in each.
func TestTraceReckonedFromTheFastestOfFew(t *testing.T) {
	tables := &optrace.Tables{}
	calibration := func(count int) *calibration {
		w := newCalibration(tables)
		for i := range count {
			w.add(&optrace.Graph{Phase: optrace.PhaseDecode, End: time.Duration(count-i) * time.Millisecond})
		}
		return w
	}
	if g := calibration(19).typical(); g.End != time.Millisecond {
		t.Errorf("of 19 graphs of 1 to 19 ms that of %v", g.End)
	}
	if g := calibration(21).typical(); g.End != 11*time.Millisecond {
		t.Errorf("of 21 graphs of 1 to 21 ms that of %v", g.End)
	}
}

// If a graph does not report its number of operators, they are counted briefly: an estimate from
// zero would allow every level.
func TestTraceCountsOperatorsOfGraphsThatDoNotSay(t *testing.T) {
	many := newDecoder(time.Millisecond, 3000)
	many.untold = 200
	out, errs, _ := runTrace(t, many, "--json")
	for _, want := range []string{"more than --max-overhead 4; traces at --level", "the middle one of 60 graphs before the trace, of unknown phase"} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q: %s", want, errs)
		}
	}
	if many.detail&optrace.DetailOperator != 0 {
		t.Errorf("%v is watched", many.detail)
	}
	var r struct{ Gaps []struct{ What, Why string } }
	if err := json.Unmarshal([]byte(out), &r); err != nil || !slices.ContainsFunc(r.Gaps, func(g struct{ What, Why string }) bool {
		return g.What == "what tracing costs while tokens are decoded" && strings.Contains(g.Why, "the phase of all graphs is unknown")
	}) {
		t.Errorf("%v, gaps %+v", err, r.Gaps)
	}
	slow := newDecoder(30*time.Millisecond, 300)
	slow.untold = 200
	synctest.Test(t, func(t *testing.T) {
		slow.lasts = func() { time.Sleep(30 * time.Millisecond) }
		_, errs, _ := runTrace(t, slow, "--duration", "1s")
		if !strings.Contains(errs, "is unknown: a graph does not say how many operators it has, and there was no time to count them; only graphs are traced") {
			t.Error(errs)
		}
	})
	few := newDecoder(100*time.Millisecond, 300)
	few.untold = 10
	if _, errs, code := runTrace(t, few); code != cli.ExitDone || !strings.Contains(errs, ": 15 probe hits for a token of") || few.detail&optrace.DetailOperator == 0 {
		t.Errorf("exit code %d, %v is watched: %s", code, few.detail, errs)
	}
}

// The reason for a wait before the trace is printed once, if it takes more than a second.
func TestTraceSaysWhatItWaitsFor(t *testing.T) {
	for want, d := range map[string]*living{
		"rooftop: waiting for the target to compute, for 10s at most, to estimate the cost of tracing\n": {rests: true, decoder: newDecoder(time.Millisecond, 1<<30)},
		"rooftop: tracing only graphs first, for 2s at most, to estimate the cost of tracing\n":          {decoder: newDecoder(40*time.Millisecond, 1<<30)},
		"rooftop: waiting for a token to be decoded, for 5s at most, to estimate the cost of tracing\n":  {decoder: func() *decoder { d := newDecoder(40*time.Millisecond, 1<<30); d.prompts = true; return d }()},
		"": {decoder: newDecoder(time.Millisecond, 1<<30)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var errs strings.Builder
			w := &cli.World{Stderr: &errs, Env: variables()}
			m := &tracing{o: &Options{detail: optrace.LevelTensor, duration: 10 * time.Second}, w: w, source: d, show: cli.NewProgress(w, &cli.Output{Plain: true})}
			if err := m.calibrate(t.Context()); err != nil || errs.String() != want {
				t.Errorf("it said %q, want %q, %v", errs.String(), want, err)
			}
		})
	}
}

// If the target ends during the trace, that is reported, with the time.
func TestTraceOfATargetThatEndsInTheMiddle(t *testing.T) {
	exec := newDecoder(time.Millisecond, 1500)
	exec.execs = true
	for want, d := range map[string]*decoder{
		"after 2.87 s of the trace, which was to take 10.0 s, process 4242 ended":                  newDecoder(time.Millisecond, 1500),
		"after 2.87 s of the trace, which was to take 10.0 s, process 4242 became another program": exec,
	} {
		out, errs, code := runTrace(t, d)
		if code != cli.ExitDone || !strings.Contains(errs, "rooftop: "+want) || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("exit code %d, want %q: said %q:\n%s", code, want, errs, out)
		}
	}
	if _, errs, _ := runTrace(t, &decoder{idle: true}, "--duration", "200ms"); strings.Contains(errs, "ended") {
		t.Errorf("a target that has not ended: %q", errs)
	}
}

// A trace ended by a signal says so, with the time.
func TestTraceThatIsInterrupted(t *testing.T) {
	d, calls := newDecoder(time.Millisecond, 1<<30), 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.lasts = func() {
		if calls++; d.detail&optrace.DetailOperator != 0 && calls > 500 {
			cancel()
		}
	}
	out, errs, _ := traceWithin(ctx, t, machineOf("Example CPU 1000"), variables(), d)
	if !regexp.MustCompile(`the rest of the 10\.0 s: after [0-9.]+ m?s of the trace, which was to take 10\.0 s, it was ended by a signal`).MatchString(strings.Join(strings.Fields(strings.ReplaceAll(out, "\u00a0", " ")), " ")) {
		t.Errorf("said %q:\n%s", errs, out)
	}
}

// The recorded data can be read at any time, as after a kill, and the file is renamed when it is
// complete.
func TestTraceSavesWhileItRecords(t *testing.T) {
	dir := t.TempDir()
	file, partial := filepath.Join(dir, "run.jsonl.gz"), filepath.Join(dir, "run.partial.jsonl.gz")
	var last *optrace.Recording
	synctest.Test(t, func(t *testing.T) {
		d := newDecoder(100*time.Millisecond, 1<<30)
		ticks := 0
		d.lasts = func() {
			if ticks++; ticks%20 != 0 {
				time.Sleep(200 * time.Millisecond)
				return
			}
			time.Sleep(saveEvery + 1) // the goroutine writes what came
			synctest.Wait()
			if !hasContent(partial) && last == nil {
				return // graphs of the calibration
			}
			r, err := readRecording(partial)
			if err != nil || last != nil && len(r.Events) <= len(last.Events) || !strings.Contains(r.Gaps[len(r.Gaps)-1].Why, "cut short") {
				t.Errorf("after %d steps: %v, %d events", ticks, err, len(r.Events))
				return
			}
			last = r
		}
		if _, errs, code := runTrace(t, d, "--save", file, "--duration", "60s"); code != cli.ExitDone {
			t.Errorf("exit code %d: %s", code, errs)
		}
	})
	if _, err := os.Stat(partial); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", partial, err)
	}
	whole, err := readRecording(file)
	if err != nil || last == nil || len(whole.Events) <= len(last.Events) || !slices.Equal(whole.Events[:len(last.Events)], last.Events) {
		t.Fatalf("%v: the whole recording does not continue the one that was cut", err)
	}
	if last.Observer.HitsPerToken == 0 {
		t.Errorf("known of the one that was cut was %+v, %v", last.Observer, last.Gaps)
	}
	out, errs, code := runTrace(t, nil, file)
	if code != cli.ExitDone || strings.Contains(out, "cut short") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
}

// A recording that was cut anywhere is shown as far as it goes, with a sentence that says so.
func TestTraceOfARecordingThatWasCut(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.jsonl.gz")
	if _, errs, code := runTrace(t, newDecoder(time.Millisecond, 5000), "--save", file); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []int{40, 60, 80, 99} {
		for name, tail := range map[string]string{"cut": "", "with zeros behind": strings.Repeat("\x00", 500)} {
			if err := os.WriteFile(file, append(slices.Clone(text[:len(text)*share/100]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, code := runTrace(t, nil, file)
			if code != cli.ExitDone || !strings.Contains(out, "cut short") || !strings.Contains(out, "MUL_MAT") {
				t.Errorf("%d %% of it, %s: exit code %d: %s\n%s", share, name, code, errs, out)
			}
		}
	}
}

// A recording without graphs says so first and has no figures. The same is true of an empty one.
func TestTraceOfARecordingWithoutAGraph(t *testing.T) {
	dir := t.TempDir()
	file, cut := filepath.Join(dir, "run.jsonl.gz"), filepath.Join(dir, "cut.jsonl.gz")
	if _, errs, code := runTrace(t, newDecoder(time.Millisecond, 500), "--save", file); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	r, err := readRecording(file)
	if err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	z := gzip.NewWriter(&head)
	rw, err := optrace.NewWriter(z, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rw.Tables(r.Tables), rw.Events(r.Events[:2]), rw.Flush(), z.Close(), os.WriteFile(cut, head.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, errs, code := runTrace(t, nil, cut)
	lines := strings.Split(out, "\n")
	if first := strings.Join(lines[:min(4, len(lines))], " "); code != cli.ExitNothing || !strings.Contains(first, "cut short after 2 events") || strings.Contains(out, "nothing was computed while") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	out, errs, code = runTrace(t, nil, cut, "--json")
	var doc struct {
		Recommendation struct{ Do, Why string } `json:"recommendation"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != cli.ExitNothing || !strings.Contains(doc.Recommendation.Why, "cut short after 2 events") {
		t.Errorf("exit code %d: %v, %s\n%s", code, err, errs, out)
	}
	synctest.Test(t, func(t *testing.T) {
		runTrace(t, &decoder{idle: true}, "--save", filepath.Join(dir, "idle.jsonl.gz"))
	})
	if out, errs, code := runTrace(t, nil, filepath.Join(dir, "idle.jsonl.gz")); code != cli.ExitNothing || !strings.Contains(out, "nothing was computed while") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
}

// A write error does not prevent the report, and a failed trace says where its events are.
func TestTraceThatCannotBeSaved(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.jsonl.gz")
	in := newDecoder(time.Millisecond, 500)
	in.lasts = func() { _ = os.Mkdir(file, 0o700) } // in its way
	if out, errs, code := runTrace(t, in, "--save", file); code != cli.ExitError || !strings.Contains(errs, "is whole in "+partialPath(file)) || !strings.Contains(out, "MUL_MAT") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	if _, err := readRecording(partialPath(file)); err != nil {
		t.Error(err)
	}
	torn := newDecoder(time.Millisecond, 500)
	torn.fails = errors.New("the ring is torn")
	file = filepath.Join(dir, "torn.jsonl.gz")
	_, errs, code := runTrace(t, torn, "--save", file)
	if r, err := readRecording(filepath.Join(dir, "torn.partial.jsonl.gz")); err != nil || len(r.Events) < 1000 || code != cli.ExitError || !strings.Contains(errs, "the ring is torn; the data recorded so far is in ") {
		t.Errorf("exit code %d: %s, %v", code, errs, err)
	}
}

func TestTraceCommandLinesThatAreOff(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.jsonl.gz")
	if err := os.WriteFile(text, []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty, begun := filepath.Join(dir, "empty.jsonl.gz"), filepath.Join(dir, "begun.jsonl.gz")
	if err := errors.Join(os.WriteFile(empty, nil, 0o600), os.WriteFile(begun, []byte{0x1f, 0x8b, 8}, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--pid", "1", "--file", "x"}, "each select the target"},
		{[]string{"--pid", "-1"}, "--pid must be a process"},
		{[]string{"--pid", "0"}, "--pid must be a process"},
		{[]string{"0"}, "--pid must be a process"},
		{[]string{"99999999999"}, "--pid must be a process"},
		{[]string{"4242", "--pid", "1"}, "each select the target"},
		{[]string{"--level", "sched+nothing"}, "joined with +"},
		{[]string{"--duration", "1ms"}, "--duration must be"},
		{[]string{"--max-overhead", "0"}, "--max-overhead must be"},
		{[]string{"--save", dir}, "--save:"},
		{[]string{"--save", "one", "--trace", "./one"}, "name the same file"},
		{[]string{text}, "not a recording of 'rooftop trace --save': it is not a gzip file"},
		{[]string{empty}, "not a recording of 'rooftop trace --save': it is empty"},
		{[]string{begun}, "not a recording of 'rooftop trace --save': it is truncated before its first event"},
		{[]string{text, "--level", "token"}, "--level is for a new trace"},
		{[]string{text, "--force"}, "--force is for a new trace"},
	} {
		_, errs, code := call(t, c.args...)
		if code != cli.ExitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d: %q, want %q", c.args, code, errs, c.want)
		}
	}
}

// A number is a PID, unless it is a file.
func TestTraceOfANumber(t *testing.T) {
	_, errs, code := call(t, "4194305") // more than a kernel gives
	if code != cli.ExitUnreachable || !strings.Contains(errs, "process 4194305: there is no such process") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("4194305", []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := call(t, "4194305"); code != cli.ExitUsage || !strings.Contains(errs, "not a recording") {
		t.Errorf("of a file: exit code %d: %s", code, errs)
	}
}

// living is a target that computes in the test's time, unless it rests.
type living struct {
	*decoder
	rests bool
}

// Next returns one call and the pause after it, or the first events of a new level.
func (s *living) Next(ctx context.Context) ([]optrace.Event, error) {
	if s.rests && !s.change {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(2 * s.each)
	return s.decoder.Next(ctx)
}
