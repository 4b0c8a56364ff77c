package perf_test

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
)

// bench is `vllm bench serve --dataset-name random --max-concurrency c
// --ignore-eos`: c clients that start together, each sending its next request as
// the previous one ends.
type bench struct {
	clients, requests, in, out int
	overhead                   time.Duration // between client and engine, for each request
	spread                     int           // outputs are out-spread to out+spread tokens
}

// result is what the client of a bench reports.
type result struct {
	perSecond, outputPerSecond float64
	ttft, itl                  time.Duration // means
	preemptions, peakRunning   int
	elapsed                    time.Duration
}

// send is a request on its way to the engine.
type send struct {
	at  time.Duration
	req core.Request
}

// simulated drives one engine by the machine's step times.
type simulated struct {
	engine  *core.Engine
	machine *perf.Machine
	noise   *perf.Noise
	now     time.Duration
	nextID  core.ID
}

func newSimulated(t testing.TB, argv string, blocks int) *simulated {
	t.Helper()
	m, s := machine(t, argv)
	z, err := m.Size()
	if err != nil {
		t.Fatal(err)
	}
	return &simulated{engine: core.NewEngine(s.Core(cmp.Or(blocks, z.NumBlocks), 0)), machine: m, noise: m.NewNoise(0)}
}

func (v *simulated) run(b bench) result {
	var queue []send // in order of time
	sent := map[core.ID]time.Duration{}
	started, issued, tokens := v.now, 0, 0
	lengths := rand.New(rand.NewPCG(1, 2))
	issue := func(at time.Duration) {
		if issued == b.requests {
			return
		}
		prompt := make([]core.Token, b.in)
		for i := range prompt {
			prompt[i] = core.Token(issued*8192 + i) // the same in every run, as of one seed
		}
		out := b.out
		if b.spread > 0 {
			out += lengths.IntN(2*b.spread+1) - b.spread
		}
		tokens += out
		issued++
		v.nextID++
		sent[v.nextID] = at
		queue = append(queue, send{at + b.overhead, core.Request{ID: v.nextID, Arrival: at + b.overhead, Prompt: prompt, MaxTokens: out}})
	}
	for range b.clients {
		issue(v.now)
	}
	var r result
	var ttft, gaps time.Duration
	finished, gapCount := 0, 0
	for finished < b.requests {
		for len(queue) > 0 && queue[0].at <= v.now {
			v.engine.Submit(queue[0].req)
			queue = queue[1:]
		}
		batch, ok := v.engine.Begin(v.now)
		if !ok {
			v.now = queue[0].at
			continue
		}
		v.now += v.noise.Apply(v.machine.Step(&batch).Total)
		report := v.engine.Complete(v.now)
		r.preemptions += report.Preemptions
		r.peakRunning = max(r.peakRunning, report.Running)
		for _, o := range report.Outputs {
			if o.First {
				ttft += v.now - sent[o.ID]
			} else if o.HasToken {
				gaps += o.Gap
				gapCount++
			}
			if o.Finish != core.NotFinished {
				finished++
				delete(sent, o.ID)
				issue(v.now)
			}
		}
	}
	r.elapsed = v.now - started
	r.perSecond = float64(b.requests) / r.elapsed.Seconds()
	r.outputPerSecond = float64(tokens) / r.elapsed.Seconds()
	r.ttft = ttft / time.Duration(b.requests)
	r.itl = gaps / time.Duration(gapCount)
	return r
}

// TestRealH100 compares with Qwen3-32B on one H100 under vLLM of August 2026, as
// reported by lionelvillard/vllm-simulated-model: its
// flags, its numbers of prompts, its warm-up with the same first prompts. What a
// client adds to each request, 50 ms, is as noted there.
func TestRealH100(t *testing.T) {
	tests := []struct {
		name                       string
		clients, requests, in, out int
		perSecond                  float64
		itl, ttft                  time.Duration // ttft 0: depends on the phase of the clients
	}{
		{"1 client", 1, 32, 1024, 128, 39.5 / 128, 23900 * time.Microsecond, 207 * time.Millisecond},
		{"16 clients", 16, 256, 1024, 128, 3.29, 29300 * time.Microsecond, 0},
		{"64 clients", 64, 512, 1024, 128, 3.87, 37 * time.Millisecond, 10881 * time.Millisecond},
		{"32 clients, short", 32, 256, 256, 256, 4.35, 27200 * time.Microsecond, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := newSimulated(t, "Qwen/Qwen3-32B --sim-gpu H100-SXM5-80GB --gpu-memory-utilization 0.9 --max-model-len 8192", 0)
			b := bench{clients: tt.clients, requests: tt.clients, in: tt.in, out: tt.out, overhead: 50 * time.Millisecond}
			v.run(b) // warm-up
			b.requests = tt.requests
			r := v.run(b)
			t.Logf("req/s %.3f (real %.3f, %+.1f %%), ITL %v (real %v, %+.1f %%), TTFT %v (real %v), preemptions %d, running at most %d",
				r.perSecond, tt.perSecond, 100*(r.perSecond/tt.perSecond-1), r.itl.Round(10*time.Microsecond), tt.itl,
				100*(float64(r.itl)/float64(tt.itl)-1), r.ttft.Round(time.Millisecond), tt.ttft, r.preemptions, r.peakRunning)
			within(t, "req/s", r.perSecond, tt.perSecond, 0.10)
			within(t, "mean ITL", r.itl.Seconds(), tt.itl.Seconds(), 0.10)
			if tt.ttft > 0 {
				within(t, "mean TTFT", r.ttft.Seconds(), tt.ttft.Seconds(), 0.20)
			}
		})
	}
}

func within(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if d := got/want - 1; d < -by || d > by {
		t.Errorf("%s is %.4g, real %.4g: %+.1f %%, at most %.0f %% allowed", what, got, want, 100*d, 100*by)
	}
}

// TestThroughputFollowsThePool checks the shape that real servers show: a larger pool serves more until it holds all
// requests, and preemptions end there.
func TestThroughputFollowsThePool(t *testing.T) {
	pools := []int{600, 1200, 2400, 26312}
	var results []result
	for _, blocks := range pools {
		v := newSimulated(t, "meta-llama/Llama-3.1-8B-Instruct --sim-gpu H100-SXM5-80GB --max-model-len 8192", blocks)
		r := v.run(bench{clients: 64, requests: 256, in: 256, out: 1024, spread: 256, overhead: time.Millisecond})
		t.Logf("%5d blocks: %.0f tok/s, ITL %v, %d preemptions, running at most %d", blocks, r.outputPerSecond, r.itl.Round(10*time.Microsecond), r.preemptions, r.peakRunning)
		results = append(results, r)
	}
	for i := 1; i < len(results); i++ {
		if results[i].outputPerSecond <= results[i-1].outputPerSecond {
			t.Errorf("%d blocks give %.0f tok/s, %d give %.0f: more memory has to help", pools[i], results[i].outputPerSecond, pools[i-1], results[i-1].outputPerSecond)
		}
		if results[i].preemptions > results[i-1].preemptions {
			t.Errorf("%d blocks preempt %d times, %d blocks %d times", pools[i], results[i].preemptions, pools[i-1], results[i-1].preemptions)
		}
	}
	if last := results[len(results)-1]; last.preemptions != 0 || results[0].preemptions == 0 {
		t.Errorf("%d preemptions with the largest pool and %d with the smallest; want none, and some", last.preemptions, results[0].preemptions)
	}
	// Saturation: per block, the last step gains less than the first.
	gain := func(i int) float64 {
		return (results[i].outputPerSecond - results[i-1].outputPerSecond) / float64(pools[i]-pools[i-1])
	}
	if gain(3) >= gain(1)/5 {
		t.Errorf("tok/s for each block: %.3f at the start, %.3f at the end; the end has to be flat", gain(1), gain(3))
	}
	more := newSimulated(t, "meta-llama/Llama-3.1-8B-Instruct --sim-gpu H100-SXM5-80GB --max-model-len 8192", 2*pools[3]).
		run(bench{clients: 64, requests: 256, in: 256, out: 1024, spread: 256, overhead: time.Millisecond})
	within(t, "tok/s with a pool twice as large as everyone needs", more.outputPerSecond, results[3].outputPerSecond, 0.01)
}
