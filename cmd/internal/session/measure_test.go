package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// server is a fake vLLM whose page advances with virtual time.
type server struct {
	began   time.Time
	took    time.Duration
	running int
	waiting int
	rate    float64 // tokens per second
	tokens  float64 // in addition
	fault   func(at time.Duration) error
	boot    func(at time.Duration) float64 // process start time
	asked   atomic.Int32
}

func newServer() *server {
	return &server{began: time.Now(), took: 5 * time.Millisecond, running: 4, waiting: 28, rate: 900}
}

func (s *server) Page(ctx context.Context, buf []byte) ([]byte, error) {
	s.asked.Add(1)
	select {
	case <-time.After(s.took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	at := time.Since(s.began)
	if s.fault != nil {
		if err := s.fault(at); err != nil {
			return nil, err
		}
	}
	boot := 1000.0
	if s.boot != nil {
		boot = s.boot(at)
	}
	tokens := s.rate*at.Seconds() + s.tokens
	return fmt.Appendf(buf, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} %d
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} %d
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.1
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} %g
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} %g
# TYPE process_start_time_seconds gauge
process_start_time_seconds %g
`, s.running, s.waiting, tokens, tokens, boot), nil
}

// card is a fake GPU.
type card struct {
	clock func() time.Duration
	fault error
}

func (c *card) Read(context.Context) (engine.GPUReading, error) {
	if c.fault != nil {
		return engine.GPUReading{}, c.fault
	}
	d := engine.GPU{Name: "NVIDIA L4", UUID: "GPU-1"}
	d.Fields[engine.GPUUtil], d.Fields[engine.GPUPowerW] = stat.Some(0.9), stat.Some(70)
	return engine.GPUReading{T: c.clock(), Devices: []engine.GPU{d}}, nil
}

func (c *card) Missing() []engine.Missing {
	return []engine.Missing{{What: "GPU energy", Reason: "not supported", Effect: "power is averaged"}}
}

func (c *card) Notes() []string { return []string{"a fake card"} }

func slots(n string) facts.Inputs {
	return facts.Inputs{Launch: map[string]facts.Setting{"max_num_seqs": {Value: n, Source: engine.FromCmdline}}}
}

// measure runs a plan in a synctest bubble.
func measure(ctx context.Context, t *testing.T, p Plan) engine.Diagnosis {
	t.Helper()
	began := time.Now()
	p.Clock = func() time.Duration { return time.Since(began) }
	if c, ok := p.GPUs.(*card); ok {
		c.clock = p.Clock
	}
	p.Version = "test"
	d, err := Measure(ctx, p)
	must(t, err)
	return d
}

func TestMeasureFindsTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		d := measure(t.Context(), t, Plan{Server: &Server{Header: Header{Inputs: slots("4")}, Pages: s, GPUs: &card{}}, Duration: 30 * time.Second})
		if d.Recommendation == nil || d.Recommendation.Flag != "--max-num-seqs" || d.Recommendation.To != "32" {
			t.Fatalf("recommendation %+v, want --max-num-seqs 32", d.Recommendation)
		}
		if s.asked.Load() != 121 || d.Windows.Collected != 15 || d.Windows.Active != 15 {
			t.Errorf("%d scrapes, windows %+v; want 121 and 15", s.asked.Load(), d.Windows)
		}
		if got := d.Quantity("generation_tokens_per_s").Value; got.V < 899.9 || got.V > 900.1 {
			t.Errorf("%v tok/s, want 900", got)
		}
		if got := d.Quantity("power_w").Value; got.V != 70 {
			t.Errorf("power %v, want 70", got)
		}
	})
}

func TestASlowPageIsPolledLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.took = 100 * time.Millisecond // 20 x 100 ms = 2 s apart
		d := measure(t.Context(), t, Plan{Server: &Server{Header: Header{Inputs: slots("4")}, Pages: s}, Duration: 30 * time.Second})
		if s.asked.Load() > 20 { // five of them in the first 2 s
			t.Errorf("%d scrapes of a page that takes 100 ms in 30 s: the server is disturbed", s.asked.Load())
		}
		if d.Windows.Evaluable < 5 || !strings.Contains(strings.Join(d.Notes, " "), "reads it every") {
			t.Errorf("windows %+v, notes %q", d.Windows, d.Notes)
		}
		if q := d.Quantity("missed_ticks").Value; q.V != 0 {
			t.Errorf("%v missed ticks: a slow page is not a starved host", q)
		}
	})
}

func TestAnInterruptedRunIsDiagnosedAsFarAsItWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		d := measure(ctx, t, Plan{Server: &Server{Header: Header{Inputs: slots("4")}, Pages: newServer()}, Duration: 30 * time.Second})
		if d.Windows.Evaluable < 5 || !strings.Contains(strings.Join(d.Notes, " "), "interrupted after") {
			t.Errorf("windows %+v, notes %q", d.Windows, d.Notes)
		}
	})
}

func TestADeadServerIsAMarkedGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fault = func(at time.Duration) error {
			if at > 8*time.Second && at < 15*time.Second {
				return errors.New("connection refused")
			}
			return nil
		}
		s.boot = func(at time.Duration) float64 {
			if at > 10*time.Second {
				return 1100
			}
			return 1000
		}
		d := measure(t.Context(), t, Plan{Server: &Server{Header: Header{Inputs: slots("4")}, Pages: s}, Duration: 30 * time.Second})
		notes := strings.Join(d.Notes, "; ")
		if !strings.Contains(notes, "scrapes failed") || !strings.Contains(notes, "1 restart of the server") {
			t.Errorf("notes %q: want the failed scrapes and the restart", notes)
		}
		if d.Windows.Evaluable < 8 || d.Recommendation == nil {
			t.Errorf("windows %+v, recommendation %+v: what was measured must still count", d.Windows, d.Recommendation)
		}
	})
}

func TestAFailingGPUDoesNotStopTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := measure(t.Context(), t, Plan{Server: &Server{Header: Header{Inputs: slots("4")}, Pages: newServer(), GPUs: &card{fault: errors.New("GPU is lost")}}, Duration: 10 * time.Second})
		if d.Recommendation == nil || d.Quantity("power_w").Value.OK {
			t.Errorf("recommendation %+v, power %+v", d.Recommendation, d.Quantity("power_w"))
		}
	})
}

func TestReplayIsTheSameByteForByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fault = func(at time.Duration) error {
			if at > 12*time.Second && at < 13*time.Second {
				return errors.New("connection refused")
			}
			return nil
		}
		var file bytes.Buffer
		rec := NewRecorder(&file)
		header := Header{
			Schema: RecordingSchema, Version: "test", Started: time.Now().UTC(), Inputs: slots("4"),
			Missing: []engine.Missing{{What: "x", Reason: "y", Effect: "z"}}, Target: engine.Target{URL: "http://127.0.0.1:8000/metrics"},
		}
		live := measure(t.Context(), t, Plan{Server: &Server{Header: header, Pages: s, GPUs: &card{}}, Duration: 20 * time.Second, Record: rec})
		must(t, rec.Close())
		whole := file.Bytes()
		again, err := replayBytes(whole)
		must(t, err)
		if diff := cmp.Diff(diagnosed(t, &live), diagnosed(t, &again)); diff != "" {
			t.Errorf("replay differs (-live +replay):\n%s", diff)
		}
		// A truncated recording is diagnosed up to its end.
		cut, err := replayBytes(whole[:len(whole)/2])
		must(t, err)
		if !strings.Contains(strings.Join(cut.Notes, " "), "cut off") {
			t.Errorf("notes %q of a recording that was cut off", cut.Notes)
		}
	})
}

// TestHealthIsReadOnceAWindowBetweenPages checks the cost of health readings, what a dead engine
// gives, and that a recording has it.
func TestHealthIsReadOnceAWindowBetweenPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		asked, died := 0, 10*time.Second
		health := func(context.Context) engine.Health {
			asked++
			time.Sleep(2 * time.Millisecond)
			if time.Since(s.began) < died {
				return engine.Health{State: engine.HealthOK}
			}
			s.rate = 0
			s.tokens = 9000
			return engine.Health{State: engine.HealthFailed, Why: "/health answers 503"}
		}
		var file bytes.Buffer
		rec := NewRecorder(&file)
		header := Header{Schema: RecordingSchema, Inputs: slots("4")}
		d := measure(t.Context(), t, Plan{Server: &Server{Header: header, Pages: s, Health: health}, Duration: 20 * time.Second, Record: rec})
		if d.Outcome != engine.OutcomeUnhealthy || d.Condition.State != engine.Dead || d.Recommendation != nil {
			t.Errorf("outcome %s, condition %+v, recommendation %+v", d.Outcome, d.Condition, d.Recommendation)
		}
		if asked != 11 || s.asked.Load() != 81 {
			t.Errorf("%d health readings and %d pages in 20 s, want 11 and 81", asked, s.asked.Load())
		}
		must(t, rec.Close())
		again, err := replayBytes(file.Bytes())
		must(t, err)
		if diff := cmp.Diff(diagnosed(t, &d), diagnosed(t, &again)); diff != "" {
			t.Errorf("replay differs (-live +replay):\n%s", diff)
		}
	})
}

func replayBytes(b []byte) (engine.Diagnosis, error) {
	rec, err := OpenRecording(bytes.NewReader(b))
	if err != nil {
		return engine.Diagnosis{}, err
	}
	return Replay(rec, "test")
}

func diagnosed(t *testing.T, d *engine.Diagnosis) string {
	t.Helper()
	var b bytes.Buffer
	must(t, document.WriteDiagnosis(&b, d))
	return b.String()
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "text": "hello", "json": `{"schema":"x"}`} {
		if _, err := OpenRecording(strings.NewReader(text)); !errors.Is(err, ErrRecording) {
			t.Errorf("%s: %v, want ErrRecording", name, err)
		}
	}
}

func FuzzRecording(f *testing.F) {
	var b bytes.Buffer
	r := NewRecorder(&b)
	r.write(line{Header: &Header{Schema: RecordingSchema}})
	r.write(line{Poll: &Poll{T: 1, Body: "vllm:num_requests_running 1\n"}})
	r.write(line{End: &End{Duration: 2}})
	_ = r.Close()
	f.Add(b.Bytes())
	f.Add(everyLine())
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if rec, err := OpenRecording(bytes.NewReader(data)); err == nil {
			_ = Snapshots(rec, "test", func(s *loop.Snapshot) bool { return s != nil })
		}
		d, err := replayBytes(data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(d.Measured); err != nil {
			t.Errorf("a diagnosis that cannot be written: %v", err)
		}
	})
}

// everyInput returns one of each kind of input of a live session's loop except polls.
func everyInput() []loop.Input {
	in := []loop.Input{
		loop.AttachFailed{Why: "connection refused"},
		loop.Observed{Processes: []loop.Process{{PID: 1, PPID: 2, Role: "worker", Name: "vllm", State: "R", Age: 3, CPU: stat.Some(0.5), RSSBytes: 4, Threads: 5}}, Problems: []string{"a zombie"}},
		loop.Observed{Err: "permission denied"},
		loop.Applied{}, loop.Applied{Err: "refused"},
		loop.Noted{Text: "report written", Bad: true},
		loop.Ticked{},
	}
	for c := range loop.NumCommands {
		in = append(in, loop.Pressed{Command: c})
	}
	return in
}

// everyLine returns a recording with one line of each kind.
func everyLine() []byte {
	var b bytes.Buffer
	r := NewRecorder(&b)
	at := time.Duration(1)
	write := func(l line) {
		l.At = at
		r.write(l)
		at += time.Second
	}
	write(line{Header: &Header{Schema: RecordingSchema, Session: &loop.Plan{Measure: 20 * time.Second, Watch: "http://localhost:8000", CannotApply: "none", Rounds: 3}}})
	write(line{Attached: &attachedLine{Header: Header{Inputs: slots("4")}, Identity: "7", CanApply: true}})
	write(line{Poll: &Poll{T: at, PageT: at, Body: "vllm:num_requests_running 1\n"}})
	for _, in := range everyInput() {
		write(lineOf(in))
	}
	write(line{End: &End{Duration: at}})
	_ = r.Close()
	return b.Bytes()
}

// TestEveryInputIsRecorded checks that every input of the loop is read back unchanged.
func TestEveryInputIsRecorded(t *testing.T) {
	rec, err := OpenRecording(bytes.NewReader(everyLine()))
	must(t, err)
	var got []loop.Input
	for at := time.Duration(1) + time.Second; ; at += time.Second {
		l, err := rec.next()
		must(t, err)
		if l.time() != at {
			t.Errorf("line %+v at %v, want %v", l, l.time(), at)
		}
		if l.End != nil {
			break
		}
		in, err := l.input()
		must(t, err)
		switch in := in.(type) {
		case nil: // the poll, which needs a parser
		case loop.Attached:
			if in.Identity != "7" || !in.CanApply || in.Inputs.Launch["max_num_seqs"].Value != "4" || in.Inputs.Catalog == nil {
				t.Errorf("attached %+v", in)
			}
		default:
			got = append(got, in)
		}
	}
	if diff := cmp.Diff(everyInput(), got); diff != "" {
		t.Errorf("inputs (-told +read back):\n%s", diff)
	}
	if rec.Header.Session.Rounds != 3 || rec.began != 1 {
		t.Errorf("session %+v begun at %v", rec.Header.Session, rec.began)
	}
}
