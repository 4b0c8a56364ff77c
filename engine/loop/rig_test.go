package loop_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/rules"
)

// rig drives a loop with the pages of a simple simulated server.
type rig struct {
	t      testing.TB
	loop   *loop.Loop
	now    time.Duration
	server *fake
	random *rand.Rand
	hands  bool
	acts   []loop.Action
	done   *loop.Finished
	events []loop.Event
	kept   string // launch command that changes apply to
	fails  string // error of Apply
	retry  string // error of the first attempt of a revert, which then succeeds
	cut    string // why the server cannot be reached while it is down, if nothing is known of it then
	// refuses returns why the applier cannot start the server with these arguments, or ""; it then starts
	// the kept ones again.
	refuses func(args string) string
	spares  bool                            // the applier refuses before touching anything
	takes   func(args string) time.Duration // duration of a start; nil is 3 s
	starts  int                             // number of starts by the applier
	// lives is called with each started server, for example to make it die or hang.
	lives  func(args string)
	dies   bool   // a server started by Apply never answers
	makes  string // what Apply starts instead of the requested arguments
	attach time.Duration
	every  time.Duration // interval between polls; 0 is engine.PollInterval
	due    time.Duration // time of a pending Attach, 0 if none
	apply  *loop.Apply
	until  time.Duration // time at which an apply completes
	doomed time.Duration // time at which doom is called on the server, 0 never
	doom   func()

	group canaryGroup
}

// fake is a server whose throughput saturates in the batch.
type fake struct {
	args    string // its launch command
	parsed  string // the one that batch follows from
	batch   float64
	started float64
	up      time.Duration // answers from this time
	down    bool
	warm    time.Duration // slow until this time
	clients float64
	pid     int
	prompt  float64 // tokens per request
	output  float64
	remote  bool // its launch is unreadable
	given   int  // its slots as given by a flag
	blocks  string
	version string
	mute    bool    // its page has no metrics
	unused  float64 // slots that stay free while requests wait
	frozen  bool    // makes no progress
	dead    bool    // the same, and /health answers 503
	limit   float64 // limit of its throughput, tok/s; 0 is none
	slower  float64 // how much longer its steps take, as a ratio
	gpu     string  // given by a flag, "" if none
	counter [engine.NumCounters]float64
	steps   float64
	itl     stat.Histogram
	ttft    stat.Histogram
	asked   stat.Histogram // prompt lengths
	made    stat.Histogram // output lengths
	last    time.Duration
}

const serve = "vllm serve Qwen/Qwen2.5-7B-Instruct"

func newRig(t testing.TB, args string, alter ...func(*loop.Plan)) *rig {
	p := loop.Plan{Started: time.Unix(1_790_000_000, 0).UTC(), Version: "test", Rules: rules.All(), Measure: 20 * time.Second, Watch: "http://localhost:8000", CannotApply: "This is not the simulator."}
	for _, a := range alter {
		a(&p)
	}
	r := &rig{t: t, loop: loop.New(p), random: rand.New(rand.NewPCG(1, 2)), hands: p.CanApply}
	r.server = &fake{args: serve + " " + args, started: 1_790_000_000, clients: 32, pid: 100, prompt: 200, output: 100}
	r.server.reset()
	r.kept = r.server.args
	return r
}

func (f *fake) reset() {
	f.counter = [engine.NumCounters]float64{}
	f.steps = 0
	bounds := []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, math.Inf(1)}
	f.itl = stat.Histogram{OK: true, Bounds: bounds, Cumulative: make([]float64, len(bounds))}
	long := []float64{1, 10, 50, 100, 200, 500, 1000, 2000, 5000, math.Inf(1)}
	f.asked = stat.Histogram{OK: true, Bounds: long, Cumulative: make([]float64, len(long))}
	f.made = stat.Histogram{OK: true, Bounds: long, Cumulative: make([]float64, len(long))}
	f.ttft = stat.Histogram{OK: true, Bounds: bounds, Cumulative: make([]float64, len(bounds))}
}

func (f *fake) slots() float64 {
	if f.batch == 0 || f.args != f.parsed {
		f.parsed, f.batch = f.args, slotsOf(f.args)
	}
	return f.batch
}

func slotsOf(args string) float64 {
	c, err := launch.ParseCommand(args, nil, nil)
	if err != nil {
		return 256
	}
	n, _, ok := c.Int("max_num_seqs")
	if !ok {
		return 256
	}
	return float64(n)
}

func observe(h *stat.Histogram, v, n float64) {
	h.Sum += v * n
	h.Count += n
	h.Cumulative = append([]float64(nil), h.Cumulative...)
	for i := range h.Cumulative {
		if v <= h.Bounds[i] {
			h.Cumulative[i] += n
		}
	}
}

// page advances the server to the present and returns its page.
func (f *fake) page(now time.Duration, random *rand.Rand) *engine.Page {
	dt := min((now - f.last).Seconds(), 10)
	f.last = now
	running := min(f.clients, f.slots()-f.unused)
	step := 0.02 + 0.0002*running
	if now < f.warm {
		step *= 4
	}
	step *= 1 + f.slower
	if f.limit > 0 {
		step = max(step, running/f.limit)
	}
	noise := 1 + 0.04*(random.Float64()-0.5)
	steps := dt / step * noise
	tokens := steps * running
	if running > 0 && !f.frozen && !f.dead {
		f.steps += steps
		f.counter[engine.CounterGenerationTokens] += tokens
		requests := tokens / f.output
		f.counter[engine.CounterRequestSuccess] += requests
		f.counter[engine.CounterPromptTokens] += requests * f.prompt
		observe(&f.asked, f.prompt, requests)
		observe(&f.made, f.output, requests)
		observe(&f.itl, step, tokens)
		wait := 0.0
		if f.clients > running {
			wait = (f.clients - running) / (running / (f.output * step))
		}
		observe(&f.ttft, 0.05+wait, requests)
	}
	p := &engine.Page{T: now, Took: 3 * time.Millisecond, Bytes: 50_000, StartTime: stat.Opt{V: f.started, OK: f.started > 0}, Model: "Qwen/Qwen2.5-7B-Instruct"}
	if f.mute {
		return p
	}
	waiting := f.clients - running
	p.Gauges[engine.GaugeRunning], p.Gauges[engine.GaugeWaiting] = stat.Some(running), stat.Some(waiting)
	p.Gauges[engine.GaugeKVUsage] = stat.Some(min(1, 0.002*running))
	p.KVUsageMax = p.Gauges[engine.GaugeKVUsage]
	for _, c := range []engine.Counter{engine.CounterGenerationTokens, engine.CounterRequestSuccess, engine.CounterPromptTokens} {
		p.Counters[c] = stat.Some(f.counter[c])
	}
	p.Counters[engine.CounterPreemptions] = stat.Some(0)
	p.Hists[engine.HistPromptTokens], p.Hists[engine.HistGenerationTokens] = f.asked, f.made
	p.Hists[engine.HistITL], p.Hists[engine.HistTTFT] = f.itl, f.ttft
	rank := engine.Rank{Gauges: p.Gauges, Generation: p.Counters[engine.CounterGenerationTokens], Prompt: p.Counters[engine.CounterPromptTokens], Steps: stat.Some(f.steps)}
	rank.Cache = engine.CacheConfig{BlockSize: "16", NumGPUBlocks: cmp.Or(f.blocks, "20000")}
	p.Ranks = []engine.Rank{rank}
	return p
}

func (r *rig) attached() loop.Attached {
	c, err := launch.ParseCommand(r.server.args, nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	in := facts.Inputs{Local: true, PID: r.server.pid, Server: facts.ServerAnswers{Version: cmp.Or(r.server.version, "0.11.0")}}
	in.Launch, in.LaunchText = map[string]facts.Setting{}, r.server.args
	for _, name := range facts.LaunchNames {
		if v, _, ok := c.Value(name); ok {
			in.Launch[name] = facts.Setting{Value: v, Source: engine.FromCmdline}
		}
	}
	in.Flags.GPU = r.server.gpu
	a := loop.Attached{Target: engine.Target{URL: "http://localhost:8000"}, Inputs: in, GPUWhy: "no GPU", CanApply: r.hands, CannotApply: "This is not the simulator.",
		Identity: fmt.Sprint(r.server.pid)}
	if r.server.remote {
		a.Inputs.Launch, a.Inputs.LaunchText, a.Identity = nil, "", ""
		a.Inputs.Flags.MaxNumSeqs = r.server.given
	}
	return a
}

func (r *rig) step(in loop.Input) {
	for _, a := range r.loop.Step(r.now, in) {
		r.acts = append(r.acts, a)
		switch a := a.(type) {
		case loop.Attach:
			r.due = r.now + a.After + cmp.Or(r.attach, 250*time.Millisecond)
		case loop.Apply:
			r.apply, r.until = &a, r.now+r.made(&a)
			r.server.down = true
		case loop.StartCanary:
			r.group.asked, r.group.starts = r.now, r.group.starts+1
		case loop.EndCanary:
			r.group.ends = r.now + time.Second
		case loop.Emit:
			r.events = append(r.events, a.Event)
			if k := a.Event.Kind; k == loop.EventKept || k == loop.EventContinued {
				r.kept = r.server.args
			}
		case loop.Finish:
			r.done = &a.Finish
		}
	}
}

// run advances the time.
func (r *rig) run(d time.Duration) {
	for end := r.now + d; r.now < end && r.done == nil; {
		r.now += cmp.Or(r.every, engine.PollInterval)
		r.tick()
	}
}

func (r *rig) tick() {
	if r.apply != nil && r.now >= r.until {
		r.hand(*r.apply)
	}
	r.canary()
	r.follow()
	answers := !r.server.down && r.now >= r.server.up
	if r.due > 0 && r.now >= r.due {
		r.due = 0
		if answers {
			r.step(r.attached())
		} else {
			r.step(loop.AttachFailed{Why: cmp.Or(r.cut, "connection refused"), WayCut: r.cut != ""})
		}
	}
	if !r.loop.Snapshot().Attached {
		return
	}
	s := &engine.Sample{T: r.now}
	if answers {
		s.Page = r.server.page(r.now, r.random)
		s.Health = &engine.Health{T: r.now, State: engine.HealthOK}
		if r.server.dead {
			s.Health = &engine.Health{T: r.now, State: engine.HealthFailed, Why: "/health answers 503"}
		}
	} else {
		s.PageErr = "connection refused"
	}
	r.step(loop.Sampled{Sample: s})
}

// startTakes returns the duration of a start.
func (r *rig) startTakes(args string) time.Duration {
	if r.takes == nil {
		return 3 * time.Second
	}
	return r.takes(args)
}

// made returns the duration of an apply. A start that is cut short is followed by a revert.
func (r *rig) made(a *loop.Apply) time.Duration {
	if a.Revert {
		return r.startTakes(r.kept)
	}
	takes := r.startTakes(loop.CommandWithChanges(r.kept, a.Changes...))
	if a.Within > 0 && takes > a.Within {
		return a.Within + r.startTakes(r.kept)
	}
	return takes
}

// late reports whether the applier cuts a start short.
func (r *rig) late(a *loop.Apply, args string) bool {
	return !a.Revert && a.Within > 0 && r.startTakes(args) > a.Within
}

// hand performs the requested Apply.
func (r *rig) hand(a loop.Apply) {
	r.apply = nil
	r.starts++
	if r.fails != "" {
		r.step(loop.Applied{Err: r.fails})
		return
	}
	next := r.kept
	if !a.Revert {
		next = loop.CommandWithChanges(r.kept, a.Changes...)
	}
	why := ""
	if r.refuses != nil && (!a.Revert || r.spares) {
		why = r.refuses(next)
	}
	late := r.late(&a, next)
	if late {
		why = fmt.Sprintf("it was not up within %v", a.Within)
	}
	if why != "" && r.spares {
		r.starts--
		r.server.down = false
		r.step(loop.Applied{Err: why, Back: true, Untouched: true})
		return
	}
	if why != "" {
		r.starts++
		next = r.kept
	}
	if r.makes != "" {
		next = serve + " " + r.makes
	}
	r.server.args = next
	r.start(0)
	r.server.down = r.dies
	if r.lives != nil {
		r.lives(next)
	}
	if why != "" {
		r.step(loop.Applied{Err: why, Back: true, Late: late})
		return
	}
	if a.Revert && r.retry != "" {
		r.step(loop.Applied{Err: r.retry, Back: true})
		return
	}
	r.step(loop.Applied{})
}

// follow performs the planned acts of the server.
func (r *rig) follow() {
	if r.doomed > 0 && r.now >= r.doomed {
		r.doomed = 0
		r.doom()
	}
}

// start makes the server a new process that answers after some time.
func (r *rig) start(after time.Duration) {
	f := r.server
	f.reset()
	f.down, f.up, f.last = false, r.now+after, r.now+after
	f.started += 1 + after.Seconds() + 5
	f.pid++
	f.warm = f.up + 3*time.Second
}

// restart starts it by hand with other arguments.
func (r *rig) restart(args string, after time.Duration) {
	r.server.args = serve + " " + args
	r.start(after)
}

// until lets time pass until a condition holds, for at most d.
func (r *rig) wait(d time.Duration, what string, holds func(*loop.Snapshot) bool) {
	r.t.Helper()
	for end := r.now + d; ; {
		if holds(r.loop.Snapshot()) {
			return
		}
		if r.now >= end || r.done != nil {
			r.dump()
			r.t.Fatalf("%s: not after %s; phase %d, %s", what, d, r.loop.Snapshot().Phase, r.loop.Snapshot().Progress.Text)
		}
		r.run(250 * time.Millisecond)
	}
}

func (r *rig) dump() {
	r.t.Helper()
	for _, e := range r.loop.Snapshot().Journal {
		r.t.Logf("%6.1f %d %s", e.T.Seconds(), e.Level, e.Text)
	}
}

// errorf reports an error with the journal of the run.
func (r *rig) errorf(format string, args ...any) {
	r.t.Helper()
	r.dump()
	r.t.Errorf(format, args...)
}

// fatalf is errorf that ends the test.
func (r *rig) fatalf(format string, args ...any) {
	r.t.Helper()
	r.dump()
	r.t.Fatalf(format, args...)
}

func in(p loop.Phase) func(*loop.Snapshot) bool {
	return func(s *loop.Snapshot) bool { return s.Phase == p }
}

// begun is a run that has begun.
func begun(t testing.TB, args string, alter ...func(*loop.Plan)) *rig {
	r := newRig(t, args, alter...)
	r.step(loop.Begin{})
	return r
}

// ready attaches, and measures the baseline.
func ready(t testing.TB, args string, alter ...func(*loop.Plan)) *rig {
	r := begun(t, args, alter...)
	r.wait(time.Minute, "baseline", in(loop.PhaseWaiting))
	return r
}

// last is the latest iteration.
func (r *rig) last() loop.Iteration {
	r.t.Helper()
	its := r.loop.Snapshot().Iterations
	if len(its) == 0 {
		r.dump()
		r.t.Fatal("there is no iteration")
	}
	return its[len(its)-1]
}

// said says whether the journal has an entry with a text in it.
func (r *rig) said(text string) bool {
	for _, e := range r.loop.Snapshot().Journal {
		if strings.Contains(e.Text, text) {
			return true
		}
	}
	return false
}

// expect checks how the latest iteration stands.
func (r *rig) expect(noticed loop.Noticed, end loop.IterationEnd, text string) {
	r.t.Helper()
	it := r.last()
	if it.Noticed != noticed || it.End != end || !strings.Contains(it.Text, text) {
		r.errorf("iteration %d: %q, end %q, %q; want %q, %q, %q", it.N, it.Noticed, it.End, it.Text, noticed, end, text)
	}
}

func (r *rig) press(c loop.Command) {
	r.t.Helper()
	if can := r.loop.Snapshot().Can[c]; !can.OK {
		r.fatalf("command %d: %s", c, can.Why)
	}
	r.step(loop.Pressed{Command: c})
}

// with hands the loop may restart the server.
func withHands(p *loop.Plan) { p.CanApply, p.CannotApply = true, "" }

// quiet is a server whose starts are known to differ by next to nothing.
func quiet(p *loop.Plan) {
	for i := range 200 {
		p.Repeats = append(p.Repeats, 0.002*float64(i%3-1))
	}
}

// auto needs no keys.
func auto(p *loop.Plan) { withHands(p); p.Auto, p.Rounds = true, 5 }
