package engine

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const poll = PollInterval

var inf = math.Inf(1)

// pageAt returns a page of one rank with the readings that most tests need.
func pageAt(t time.Duration, running, waiting, kv, generated float64) *Page {
	p := &Page{T: t, KVUsageMax: stat.Some(kv)}
	p.Gauges[GaugeRunning] = stat.Some(running)
	p.Gauges[GaugeWaiting] = stat.Some(waiting)
	p.Gauges[GaugeKVUsage] = stat.Some(kv)
	p.Counters[CounterGenerationTokens] = stat.Some(generated)
	p.Ranks = []Rank{{Name: "0", Gauges: p.Gauges, Generation: stat.Some(generated)}}
	return p
}

// feed runs samples through a windower and returns every window.
func feed(samples ...*Sample) []Window {
	var w Windower
	var out []Window
	for _, s := range samples {
		if closed := w.Add(s); closed != nil {
			out = append(out, closed.Clone())
		}
	}
	return out
}

// ticks returns n samples, one for each interval, with the pages returned by page.
func ticks(n int, interval time.Duration, page func(i int, t time.Duration) *Page) []*Sample {
	var out []*Sample
	for i := range n {
		t := time.Duration(i) * interval
		out = append(out, &Sample{T: t, Page: page(i, t)})
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, math.Abs(b)) }

func TestWindowsShareTheirEdgePoll(t *testing.T) {
	windows := feed(ticks(17, poll, func(i int, at time.Duration) *Page {
		return pageAt(at, 4, 2, 0.5, float64(100*i))
	})...)
	if len(windows) != 2 {
		t.Fatalf("17 polls gave %d windows, want 2", len(windows))
	}
	generated := 0.0
	for _, w := range windows {
		if w.Polls != 9 || w.Duration != 2*time.Second {
			t.Errorf("window has %d polls over %v, want 9 over 2s", w.Polls, w.Duration)
		}
		generated += w.Delta[CounterGenerationTokens].V
	}
	if generated != 1600 {
		t.Errorf("the windows saw %v tokens of 1600: an event at an edge is lost or counted twice", generated)
	}
}

func TestSlowPagesGiveLongerWindows(t *testing.T) {
	windows := feed(ticks(7, 1500*time.Millisecond, func(i int, at time.Duration) *Page {
		return pageAt(at, 4, 0, 0.5, float64(i))
	})...)
	if len(windows) != 3 {
		t.Fatalf("got %d windows, want 3", len(windows))
	}
	for _, w := range windows {
		if w.Polls < WindowMinPolls || w.Duration < WindowLength {
			t.Errorf("window of %d polls over %v: want at least %d over %v", w.Polls, w.Duration, WindowMinPolls, WindowLength)
		}
	}
}

func TestKVPeakIsTheHighestPollNotTheLast(t *testing.T) {
	w := feed(ticks(9, poll, func(i int, at time.Duration) *Page {
		kv := 0.70
		if i == 4 {
			kv = 0.92
		}
		return pageAt(at, 4, 0, kv, float64(i))
	})...)[0]
	if w.KVPeak.V != 0.92 || !near(w.KV.V, (8*0.70+0.92)/9) || w.KVLast.V != 0.70 {
		t.Errorf("peak %v, mean %v, last %v", w.KVPeak, w.KV, w.KVLast)
	}
}

func TestRunningMedianIgnoresOneEmptyPoll(t *testing.T) {
	windows := feed(ticks(17, poll, func(i int, at time.Duration) *Page {
		running := 12.0
		if i == 4 || i == 12 || i == 14 {
			running = 1
		}
		return pageAt(at, running, 20, 0.1, float64(i))
	})...)
	for i, mean := range []float64{(8*12 + 1) / 9.0, (7*12 + 2) / 9.0} {
		if w := windows[i]; w.RunningMedian.V != 12 || !near(w.Running.V, mean) || w.RunningMin.V != 1 {
			t.Errorf("window %d: median %v, mean %v, least %v; want 12, %v, 1", i, w.RunningMedian, w.Running, w.RunningMin, mean)
		}
	}
}

func TestCounterDeltas(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last stat.Opt
		want        stat.Opt
	}{
		{"growth is a rate", stat.Some(10), stat.Some(30), stat.Some(10)},
		{"zero is valid idle, not missing", stat.Some(10), stat.Some(10), stat.Some(0)},
		{"a fall is absent", stat.Some(30), stat.Some(10), stat.None},
		{"absent stays absent", stat.None, stat.Some(10), stat.None},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := feed(ticks(9, poll, func(i int, at time.Duration) *Page {
				p := pageAt(at, 1, 0, 0.5, float64(i))
				p.Counters[CounterPreemptions] = c.first
				if i == 8 {
					p.Counters[CounterPreemptions] = c.last
				}
				return p
			})...)[0]
			if got := w.Rate[CounterPreemptions]; got != c.want {
				t.Errorf("rate %v, want %v", got, c.want)
			}
			if !w.Evaluable {
				t.Errorf("one odd counter made the window non-evaluable: %s", w.Why)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	base := func() *Page {
		p := pageAt(0, 1, 0, 0.1, 1000)
		p.Counters[CounterPromptTokens] = stat.Some(500)
		p.Counters[CounterRequestSuccess] = stat.Some(7)
		return p
	}
	for _, c := range []struct {
		name string
		edit func(a, b *Page)
		want bool
	}{
		{"same page", func(a, b *Page) {}, false},
		{"start time moved", func(a, b *Page) { a.StartTime, b.StartTime = stat.Some(1000), stat.Some(1020) }, true},
		{"start time equal beats falling counters", func(a, b *Page) {
			a.StartTime, b.StartTime = stat.Some(1000), stat.Some(1000)
			b.Counters[CounterPromptTokens], b.Counters[CounterGenerationTokens] = stat.Some(1), stat.Some(1)
		}, false},
		{"created again", func(a, b *Page) { a.Created, b.Created = stat.Some(1000), stat.Some(1020) }, true},
		{"one counter fell", func(a, b *Page) { b.Counters[CounterGenerationTokens] = stat.Some(10) }, false},
		{"several fell", func(a, b *Page) {
			b.Counters[CounterGenerationTokens], b.Counters[CounterPromptTokens] = stat.Some(10), stat.Some(5)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := base(), base()
			c.edit(a, b)
			if got := Restarted(a, b); got != c.want {
				t.Errorf("Restarted = %v, want %v", got, c.want)
			}
		})
	}
}

func TestRestartMakesDeltasAbsentEvenWhereCountersPassedTheirOldValue(t *testing.T) {
	w := feed(ticks(9, poll, func(i int, at time.Duration) *Page {
		p := pageAt(at, 1, 0, 0.5, float64(i*1000))
		p.StartTime = stat.Some(100)
		if i >= 3 {
			p.StartTime = stat.Some(200)
		}
		return p
	})...)[0]
	if !w.Restarted || w.Evaluable || w.Rate[CounterGenerationTokens].OK {
		t.Errorf("restarted %v, evaluable %v, rate %v: want a marked gap", w.Restarted, w.Evaluable, w.Rate[CounterGenerationTokens])
	}
}

func TestADeadServerLeavesMarkedGaps(t *testing.T) {
	samples := ticks(45, poll, func(i int, at time.Duration) *Page { return pageAt(at, 1, 0, 0.5, float64(i)) })
	for i := 10; i < 26; i++ {
		samples[i].Page, samples[i].PageErr = nil, "connection refused"
	}
	windows := feed(samples...)
	failed, evaluable := 0, 0
	for _, w := range windows {
		failed += w.Failed
		if w.Evaluable {
			evaluable++
		}
	}
	if failed != 16 {
		t.Errorf("%d failed scrapes counted, want 16", failed)
	}
	if evaluable < 2 || evaluable == len(windows) {
		t.Errorf("%d of %d windows evaluable: want those before and after the gap, not the gap", evaluable, len(windows))
	}
}

func TestARestartInAGapIsCountedAndCostsNoWindow(t *testing.T) {
	samples := ticks(60, poll, func(i int, at time.Duration) *Page {
		generated := 5000 + 10*float64(i)
		if i > 20 {
			generated = 10 * float64(i-20)
		}
		p := pageAt(at, 1, 0, 0.5, generated)
		p.Counters[CounterPromptTokens] = stat.Some(generated)
		return p
	})
	for i := 9; i < 40; i++ { // longer than a window
		samples[i].Page, samples[i].PageErr = nil, "connection refused"
	}
	windows := feed(samples...)
	a := Combine(windows, &Facts{})
	last := windows[len(windows)-1]
	if a.Restarts != 1 || !last.Evaluable || !near(last.Rate[CounterGenerationTokens].V, 40) {
		t.Errorf("%d restarts, last window evaluable %v at %v tok/s; want 1, true and 40", a.Restarts, last.Evaluable, last.Rate[CounterGenerationTokens])
	}
}

func TestActiveGate(t *testing.T) {
	for _, c := range []struct {
		name    string
		running float64
		kv      stat.Opt
		util    stat.Opt // absent: no GPU
		tokens  float64  // per poll
		fills   float64  // share of the pool per poll
		want    bool
	}{
		{"gpu busy", 2, stat.Some(0.1), stat.Some(0.5), 10, 0, true},
		{"kv in use", 2, stat.Some(0.4), stat.Some(0.1), 10, 0, true},
		{"gpu readable, neither arm", 2, stat.Some(0.1), stat.Some(0.1), 10, 0, false},
		{"limits are exclusive", 2, stat.Some(0.30), stat.Some(0.20), 10, 0, false},
		{"kv absent, other arm decides", 2, stat.None, stat.Some(0.5), 10, 0, true},
		{"nothing running", 0, stat.Some(0.9), stat.Some(0.9), 10, 0, false},
		{"no gpu, tokens move", 2, stat.Some(0.01), stat.None, 10, 0, true},
		{"no gpu, nothing moves", 2, stat.Some(0.9), stat.None, 0, 0, false},
		{"no gpu, the pool fills", 2, stat.Some(0.1), stat.None, 0, 0.01, true},
		{"no gpu, nothing runs as the pool fills", 0, stat.Some(0.1), stat.None, 0, 0.01, false},
		{"gpu idle, the pool fills", 2, stat.Some(0.1), stat.Some(0.1), 0, 0.01, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			samples := ticks(9, poll, func(i int, at time.Duration) *Page {
				kv := c.kv.Plus(stat.Some(c.fills * float64(i)))
				p := pageAt(at, c.running, 0, kv.V, c.tokens*float64(i))
				p.Gauges[GaugeKVUsage], p.KVUsageMax = kv, kv
				return p
			})
			if c.util.OK {
				for _, s := range samples {
					d := GPU{Name: "NVIDIA L4"}
					d.Fields[GPUUtil] = c.util
					s.GPU = &GPUReading{T: s.T, Devices: []GPU{d}}
				}
			}
			if got := feed(samples...)[0].Active; got != c.want {
				t.Errorf("active = %v, want %v", got, c.want)
			}
		})
	}
}

func TestStallReachesOverWindowsAndEndsWithProgress(t *testing.T) {
	windows := feed(ticks(41, poll, func(i int, at time.Duration) *Page {
		generated := float64(i)
		if i > 8 {
			generated = 8 // frozen from 2 s on
		}
		return pageAt(at, 24, 0, 0.5, generated)
	})...)
	if got := windows[len(windows)-1].Stall; got != 8*time.Second {
		t.Errorf("stall at 10 s is %v, want 8s", got)
	}
	idle := feed(ticks(41, poll, func(i int, at time.Duration) *Page { return pageAt(at, 0, 0, 0, 8) })...)
	if got := idle[len(idle)-1].Stall; got != 0 {
		t.Errorf("an idle server stalls for %v", got)
	}
}

func TestGPUScalars(t *testing.T) {
	samples := ticks(9, poll, func(i int, at time.Duration) *Page { return pageAt(at, 4, 0, 0.5, float64(i)) })
	for i, s := range samples {
		var a, b GPU
		a.Index, b.Index = 0, 1
		a.Fields[GPUPowerW], b.Fields[GPUPowerW] = stat.Some(100), stat.Some(200)
		a.Fields[GPUUtil], b.Fields[GPUUtil] = stat.Some(0.2), stat.Some(0.6)
		a.Fields[GPUVRAMTotal], b.Fields[GPUVRAMTotal] = stat.Some(80), stat.Some(80)
		a.Fields[GPUVRAMUsed], b.Fields[GPUVRAMUsed] = stat.Some(10), stat.Some(60)
		if i == 3 {
			b.Fields[GPUVRAMUsed] = stat.Some(77)
		}
		s.GPU = &GPUReading{T: s.T + 10*time.Millisecond, Devices: []GPU{a, b}}
	}
	w := feed(samples...)[0]
	if w.Power.V != 300 || !near(w.GPUUtil.V, 0.4) || w.VRAMUsed.V != 60 || w.VRAMPeak.V != 77 || w.Skewed {
		t.Errorf("power %v util %v vram %v peak %v skewed %v", w.Power, w.GPUUtil, w.VRAMUsed, w.VRAMPeak, w.Skewed)
	}
	for _, s := range samples {
		s.GPU.T = s.T + 1100*time.Millisecond
	}
	if !feed(samples...)[0].Skewed {
		t.Error("1.1 s between page and GPU is not called skew")
	}
}

func TestWindowEvaluationAllocatesNothing(t *testing.T) {
	var w Windower
	samples := ticks(64, poll, func(i int, at time.Duration) *Page {
		p := pageAt(at, 4, 2, 0.5, float64(i))
		h := stat.Histogram{Bounds: []float64{0.1, 1, math.Inf(1)}, Cumulative: []float64{float64(i), float64(i), float64(i)}, Count: float64(i), OK: true}
		for k := range p.Hists {
			p.Hists[k] = h
		}
		return p
	})
	for _, s := range samples {
		w.Add(s)
	}
	i := 0
	if n := testing.AllocsPerRun(500, func() { w.Add(samples[i%len(samples)]); i++ }); n != 0 {
		t.Errorf("a sample costs %v allocations, want 0", n)
	}
}

func BenchmarkWindow(b *testing.B) {
	var w Windower
	samples := ticks(9, poll, func(i int, at time.Duration) *Page {
		p := pageAt(at, 4, 2, 0.5, float64(i))
		bounds := make([]float64, 22)
		counts := make([]float64, 22)
		for k := range bounds {
			bounds[k], counts[k] = float64(k), float64(i*k)
		}
		for k := range p.Hists {
			p.Hists[k] = stat.Histogram{Bounds: bounds, Cumulative: counts, Count: float64(i * 21), OK: true}
		}
		return p
	})
	b.ReportAllocs()
	closed := 0
	for b.Loop() {
		for _, s := range samples[1:] { // the edge poll is the last of the round before
			s.T += WindowLength
			s.Page.T = s.T
			if w.Add(s) != nil {
				closed++
			}
		}
	}
	if closed < b.N-1 {
		b.Fatalf("%d rounds closed %d windows", b.N, closed)
	}
}

// An untouched rank has no gauges on the page of several API servers; it is empty, not unknown. A rank whose counters moved is
// unknown.
func TestUntouchedRanks(t *testing.T) {
	for _, c := range []struct {
		name       string
		generation float64
		running    stat.Opt
		kv         float64
	}{
		{"nothing ever ran", 0, stat.Some(0), 0.2},
		{"it has generated tokens", 10, stat.None, 0.4},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Windower
			var last *Window
			for i := range 9 {
				p := pageAt(time.Duration(i)*250*time.Millisecond, 8, 2, 0.4, 100*float64(i))
				p.KVUsageMax = stat.Some(0.4)
				p.Ranks = append(p.Ranks, Rank{Name: "1", Generation: stat.Some(c.generation), Prompt: stat.Some(c.generation)})
				if win := w.Add(&Sample{T: p.T, Page: p}); win != nil {
					clone := win.Clone()
					last = &clone
				}
			}
			if last == nil {
				t.Fatal("no window")
			}
			if got := last.Ranks[1]; got.Running != c.running || got.Untouched != c.running.OK {
				t.Errorf("rank 1 %+v, want running %v", got, c.running)
			}
			if got := last.KV.Or(-1); math.Abs(got-c.kv) > 1e-9 {
				t.Errorf("KV usage over ranks %v, want %v", got, c.kv)
			}
			if got := last.KVPeak.Or(-1); got != 0.4 {
				t.Errorf("KV peak %v, want that of the fullest rank", got)
			}
		})
	}
}
