package verdict

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// shape is the arrival pattern of a synthetic server.
type shape int

const (
	saturated shape = iota // a closed loop with more clients than slots
	room                   // a closed loop with as many slots as clients
	open                   // Poisson arrivals, far from the server's capacity
)

func (s shape) String() string { return [...]string{"saturated", "room", "open"}[s] }

// noise is the disturbances of a synthetic server, all relative.
type noise struct {
	restart float64       // SD of the factor of a start
	white   float64       // SD of a slice's throughput, independent
	drift   float64       // SD of an autoregression of the throughput
	memory  time.Duration // its time constant
	wave    float64       // amplitude of a lock-step oscillation
	period  time.Duration
	bursts  time.Duration // mean time between bursts of a neighbour, 0 none
	lasting time.Duration // mean length of a burst
	depth   float64       // share of the throughput lost in a burst
}

// quiet10 is noise for which windows of ten seconds vary by 3 %.
var quiet10 = noise{white: 0.03 * 2.2360679775}

// server is a synthetic server with its clients.
type server struct {
	shape
	noise
	speed  float64 // factor on the tokens per second of a step
	load   float64 // factor on clients or arrivals
	prompt float64 // factor on the length of prompts
	hit    float64 // share of prompts in the cache
	slots  float64
	bare   bool      // without histograms, which take most of the time
	common []float64 // factor on load and length of prompts in each slice, nil for 1
}

func usual(s shape, n noise) server {
	return server{shape: s, noise: n, speed: 1, load: 1, prompt: 1, hit: 0.3, slots: 16}
}

const (
	piece       = 2 * time.Second
	outputMean  = 150.0
	promptMean  = 600.0
	prefillCost = 0.3 / promptMean / 0.7 // of a token's step, of one computed prompt token
	deep        = 24                     // clients
)

// ladder are vLLM's buckets of the time to first token.
var ladder = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, math.Inf(1)}
var lengthLadder = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, math.Inf(1)}

// run advances the server. Tokens of a step per second follow the batch with diminishing returns; prompts take
// their share of the time.
func (v *server) run(r *rand.Rand, length time.Duration) Incarnation {
	n := int(length / piece)
	dt := piece.Seconds()
	factor := math.Exp(v.restart * r.NormFloat64())
	phi := 0.0
	if v.memory > 0 {
		phi = math.Exp(-dt / v.memory.Seconds())
	}
	ar := v.drift * r.NormFloat64()
	phase := 2 * math.Pi * r.Float64()
	burst := 0.0 // seconds left
	start := make(Incarnation, 0, n)
	backlog := 0.0
	for i := range n {
		at := time.Duration(i) * piece
		ar = phi*ar + v.drift*math.Sqrt(1-phi*phi)*r.NormFloat64()
		pace := factor * math.Exp(ar+v.white*r.NormFloat64())
		pace *= 1 + v.wave*math.Sin(2*math.Pi*at.Seconds()/max(1, v.period.Seconds())+phase)
		if v.bursts > 0 {
			lost := min(burst, dt)
			burst -= lost
			if burst <= 0 && r.Float64() < dt/v.bursts.Seconds() {
				burst = r.ExpFloat64() * v.lasting.Seconds()
				more := min(burst, dt-lost)
				burst -= more
				lost += more
			}
			pace *= 1 - v.depth*lost/dt
		}
		load, prompt := v.load, v.prompt
		if v.common != nil {
			load, prompt = load*v.common[i], prompt*math.Sqrt(v.common[i])
		}
		running, waiting := v.slots, 0.0
		computed := promptMean * prompt * (1 - v.hit)
		capacity := func(batch float64) float64 { // requests a second
			return 40 * v.speed * pace * batch / (1 + batch/32) / (outputMean + computed*prefillCost*outputMean*batch/(1+batch/32)/8)
		}
		var finished float64
		switch v.shape {
		case saturated:
			waiting = math.Max(0, deep*load*1.5-running)
			finished = capacity(running) * dt
		case room:
			running = min(v.slots*4, deep*load)
			finished = capacity(running) * dt
		case open:
			arriving := poisson(r, 0.5*load*capacityOf(v, 24)*dt)
			backlog += arriving
			running = max(0.5, backlog/dt*4/(v.speed*pace))
			finished = backlog * min(1, 0.25*v.speed*pace)
			backlog -= finished
		}
		out := outputMean * finished
		if v.shape != open {
			finished = math.Max(0, finished+0.5*math.Sqrt(finished)*r.NormFloat64())
		}
		out *= 1 + 0.01*r.NormFloat64()
		prompts := finished * promptMean * prompt * (1 + 0.4/math.Sqrt(max(1, finished))*r.NormFloat64())
		stepTime := running / max(out/dt, 1e-9)
		s := Slice{
			Start: at, Length: piece,
			Tokens: stat.Some(math.Max(0, out)), Prompt: stat.Some(math.Max(0, prompts)), Computed: stat.Some(math.Max(0, prompts*(1-v.hit))),
			Finished: stat.Some(finished), Hits: stat.Some(math.Max(0, prompts*v.hit)), Queries: stat.Some(math.Max(0, prompts)),
			Running: stat.Some(running), Waiting: stat.Some(waiting), StepTime: stat.Some(stepTime), KV: stat.Some(0.5), Preempts: stat.Some(0),
		}
		if v.bare {
			lengths := func(mean, sigma float64) stat.Delta {
				return stat.Delta{Count: finished, Sum: math.Max(0, mean*(finished+sigma*math.Sqrt(finished)*r.NormFloat64())), OK: true}
			}
			s.PromptLen, s.OutputLen = lengths(promptMean*prompt, 0.4), lengths(outputMean, 0.3)
			start = append(start, s)
			continue
		}
		wait := 0.05 + waiting/max(finished/dt, 0.1)
		count := math.Round(finished)
		s.TTFT = drawn(r, ladder, count, wait, 0.5)
		s.ITL = drawn(r, ladder, math.Round(out/10), stepTime, 0.2)
		s.TPOT = drawn(r, ladder, count, stepTime, 0.1)
		s.E2E = drawn(r, ladder, count, wait+outputMean*stepTime, 0.3)
		s.PromptLen = drawn(r, lengthLadder, count, promptMean*prompt, 0.4)
		s.OutputLen = drawn(r, lengthLadder, count, outputMean, 0.3)
		start = append(start, s)
	}
	return start
}

func capacityOf(v *server, batch float64) float64 {
	return 40 * batch / (1 + batch/32) / outputMean / 1.5
}

// drawn returns a histogram of log-normal observations with a mean. Of more than 40 only the first 40 are drawn and
// represent all.
func drawn(r *rand.Rand, bounds []float64, count, mean, sigma float64) stat.Delta {
	d := stat.Delta{Bounds: bounds, Counts: make([]float64, len(bounds)), OK: true}
	n := min(int(count), 40)
	for range n {
		x := mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		i := 0
		for x > bounds[i] {
			i++
		}
		d.Counts[i] += count / float64(n)
		d.Sum += x * count / float64(n)
		d.Count += count / float64(n)
	}
	return d
}

func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 50 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n, p, limit := 0.0, r.Float64(), math.Exp(-mean)
	for p > limit {
		p *= r.Float64()
		n++
	}
	return n
}

// outcome is a judged trial.
type outcome struct {
	Result
	took time.Duration
}

// trial judges two servers like the loop: at the fixed looks, up to the first one that is settled.
func trial(r *rand.Rand, before, after *server, known time.Duration, p Plan) outcome {
	const longest = 300 * time.Second
	b := &Side{Incarnations: []Incarnation{before.run(r, known)}}
	full := after.run(r, longest)
	looks := Looks(20*time.Second, longest)
	p.Looks = len(looks)
	for i, at := range looks {
		p.Look, p.Last = i, i == len(looks)-1
		a := full[:int(at/piece)]
		if res := Judge(b, &Side{Incarnations: []Incarnation{a}}, p); res.Settled {
			return outcome{res, at}
		}
	}
	panic("the last look settles")
}

// repeats returns the differences that Widen gets for a server after k restarts.
func repeats(r *rand.Rand, k int, sd float64) []float64 {
	out := make([]float64, k)
	for i := range out {
		out[i] = sd * (r.NormFloat64() - r.NormFloat64())
	}
	return out
}
