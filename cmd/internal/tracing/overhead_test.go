package tracing

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// paced is a decoder with a given speed, which is lower while operators are traced.
type paced struct {
	*decoder
	slower float64 // of each call, with operators
	pause  int     // the target is idle for a second after this many calls; 0 is never
	lasts  int     // calls until it ends; 0 without end
	seen   int
}

func (p *paced) Next(ctx context.Context) ([]optrace.Event, error) {
	if p.change {
		p.change = false
		return []optrace.Event{{At: p.now, Kind: optrace.DetailChanged, N: int64(p.detail), PID: 4242}}, nil
	}
	p.seen++
	if p.lasts > 0 && p.seen > p.lasts {
		return nil, io.EOF
	}
	each := p.each
	if p.detail&optrace.DetailOperator != 0 {
		each += time.Duration(p.slower * float64(each))
	}
	if p.pause > 0 && p.seen%p.pause == 0 {
		each = time.Second
	}
	timer := time.NewTimer(each)
	defer timer.Stop()
	began := time.Now()
	select {
	case <-ctx.Done():
		p.now += time.Since(began)
		return nil, ctx.Err()
	case <-timer.C:
	}
	p.now += each
	return []optrace.Event{
		{At: p.now, Kind: optrace.CallBegin, Ref: uint32(optrace.CallDecode), N: 1, PID: 4242, TID: 1},
		{At: p.now + 1, Kind: optrace.CallBegin, Ref: uint32(optrace.CallProcess), PID: 4242, TID: 1},
	}, nil
}

// measureOf measures a source in its own time, at a requested level.
func measureOf(t *testing.T, p *paced, limit float64, force bool) (o optrace.Observer, said string, err error) {
	t.Helper()
	m, said, err := affordOf(t, p, &Options{detail: optrace.LevelTensor, level: "tensor", levelGiven: true, maxOverhead: limit, force: force})
	return m.observer, said, err
}

// affordOf measures a source with an expected cost of 1 %.
func affordOf(t *testing.T, p *paced, o *Options) (m *tracing, said string, err error) {
	t.Helper()
	o.measure = true
	synctest.Test(t, func(t *testing.T) {
		var errs strings.Builder
		w := &cli.World{Stderr: &errs, Env: variables()}
		m = &tracing{o: o, w: w, source: p, show: cli.NewProgress(w, &cli.Output{Plain: true})}
		m.expectation = optrace.Expectation{Detail: o.detail, Nodes: 1, Threads: 1, GraphTime: 600 * time.Microsecond, Sites: p.Target().Sites}
		m.observer = optrace.Observer{Expected: 0.01, HitsPerToken: 5} // 0.4 of it by calls
		err = m.checkCost(t.Context())
		said = errs.String()
	})
	return m, said, err
}

func newPaced(slower float64) *paced {
	return &paced{decoder: newDecoder(10*time.Millisecond, 0), slower: slower}
}

// Pauses between requests do not count as a slowdown.
func TestMeasuredOverheadIsThatOfTheTarget(t *testing.T) {
	for _, pause := range []int{0, 37} {
		p := newPaced(0.03)
		p.pause = pause
		const lost = 0.03 / 1.03 // of its speed
		o, said, err := measureOf(t, p, 4, false)
		off := max(math.Abs(o.Measured-lost), math.Abs(o.MeasuredLow-lost), math.Abs(o.MeasuredHigh-lost))
		if err != nil || off > 1e-6 || o.Windows < 6 || o.Expected != 0.01 {
			t.Errorf("%v, %+v, want a slowdown of 3 %%", err, o)
		}
		if !strings.Contains(said, "+3.0 % longer") {
			t.Errorf("it said %q", said)
		}
	}
}

// Windows without tracing are compared with each other, too.
func TestMeasuredOverheadHasAControl(t *testing.T) {
	windows := make([]*paceWindow, 2*measurePairs+1)
	for i := range windows {
		every := 10 * time.Millisecond
		switch {
		case i%2 == 1:
			every = 12 * time.Millisecond
		case i%4 == 2: // every other one of those without
			every = 11 * time.Millisecond
		}
		windows[i] = &paceWindow{on: i%2 == 1, calls: []callPace{{1, every}, {24, time.Second}, {1, every}}}
	}
	cost, control, ok := slowdowns(windows)
	if !ok || cost.Pairs != measurePairs || control.Pairs != measurePairs/2 || math.Abs(control.Median-0.1) > 1e-9 {
		t.Errorf("the control is %+v of %+v, want 10 %% over %d pairs", control, cost, measurePairs/2)
	}
	if want := 12/math.Sqrt(10*11) - 1; math.Abs(cost.Median-want) > 1e-9 {
		t.Errorf("it costs %v, want %v", cost.Median, want)
	}
}

func TestMeasuredOverheadAboveTheLimit(t *testing.T) {
	_, _, err := measureOf(t, newPaced(0.1), 4, false)
	for _, want := range []string{"--level tensor costs at least 9.1 % of the target's speed, as measured", "more than --max-overhead 4", "--force", "--level token would cost"} {
		if err == nil || !strings.Contains(plain(err.Error()), want) {
			t.Errorf("10 %% at a limit of 4 %%: %v, want %q", err, want)
		}
	}
	if o, _, err := measureOf(t, newPaced(0.1), 4, true); err != nil || o.Windows != measurePairs {
		t.Errorf("with --force: %v, %+v", err, o)
	}
}

// The expected cost does not reject a level that will be measured.
func TestMeasuredOverheadDecidesAndNotTheExpectedOne(t *testing.T) {
	o, said, err := measureOf(t, newPaced(0.005), 0.9, false)
	if err != nil || o.Windows != measurePairs || !strings.Contains(said, "expected to cost 1 %") {
		t.Errorf("0.5 %% as measured and 1 %% expected, at a limit of 0.9 %%: %v, %+v, %q", err, o, said)
	}
	// If it cannot be measured, it does.
	rests := &paced{decoder: newDecoder(time.Hour, 0)}
	if _, _, err := measureOf(t, rests, 0.9, false); err == nil || !strings.Contains(plain(err.Error()), "costs 1 % of the target's speed (est)") {
		t.Errorf("1 %% expected and nothing measured, at a limit of 0.9 %%: %v", err)
	}
}

// A default level with too high a measured cost is replaced by a lower one, whose cost is estimated
// from the measurement.
func TestMeasuredOverheadOfTheDefaultLevel(t *testing.T) {
	m, said, err := affordOf(t, newPaced(0.1), &Options{detail: optrace.LevelSched, level: "sched", maxOverhead: 4})
	if err != nil || m.o.detail&(optrace.DetailOperator|optrace.DetailSched) != 0 || m.o.detail&optrace.DetailToken == 0 {
		t.Fatalf("%v, watches %v: %s", err, m.o.detail, said)
	}
	if m.observer.Windows != 0 || !(m.observer.Expected > 0 && m.observer.Expected <= 0.04) || !strings.Contains(said, "traces at --level "+m.o.detail.String()+" instead") {
		t.Errorf("%+v: %s", m.observer, said)
	}
	if len(m.notes) != 1 || !strings.Contains(plain(m.notes[0].Why), "costs at least 9.1 %") {
		t.Errorf("the report says %+v", m.notes)
	}
}

// For a target that is idle or ends there is no measured cost, and the estimate is used.
func TestMeasuredOverheadOfATargetThatDoesNotDecode(t *testing.T) {
	for name, p := range map[string]*paced{
		"rests": {decoder: newDecoder(time.Hour, 0)},
		"ends":  {decoder: newDecoder(10*time.Millisecond, 0), lasts: 100},
	} {
		o, said, err := measureOf(t, p, 4, false)
		if err != nil || o.Windows != 0 || o.Expected != 0.01 || !strings.Contains(said, "was not measured") {
			t.Errorf("one that %s: %v, %+v, %q", name, err, o, said)
		}
	}
}
