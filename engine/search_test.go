package engine

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// scene is a measured server, in what the search looks at.
type scene struct {
	seats, running, waiting float64
	pool                    float64 // tokens
	util                    float64 // of the GPU's memory, 0 not known
	prompt, output          float64
	preempts                float64 // per second
	budget                  int
	itl, ttft               float64 // seconds, 0: as the model has it
	tail                    float64 // p99 of ITL
	blind                   bool    // without a physical model
	advice                  *Fix
	id                      FindingID
	runners                 []Finding
}

func (s scene) diagnosis(t testing.TB) *Diagnosis {
	t.Helper()
	gpu, err := catalog.Default().FindGPU("NVIDIA A100-SXM4-80GB", 0)
	if err != nil {
		t.Fatal(err)
	}
	model, err := catalog.Default().FindModel("meta-llama/Llama-3.1-8B-Instruct")
	if err != nil {
		t.Fatal(err)
	}
	d := &Diagnosis{ranks: 1}
	f := &d.Facts
	f.GPU, f.GPUKnown, f.ModelSpec, f.ModelKnown = gpu, true, model, true
	f.KVCacheDType, f.WeightDType, f.ComputeDType = Know("bf16", FromDefault, ""), Know("bf16", FromDefault, ""), Know("bf16", FromDefault, "")
	f.TensorParallel, f.MaxNumSeqs = Know(1, FromDefault, ""), Know(int(s.seats), FromCmdline, "")
	f.ChunkedPrefill = Know(true, FromDefault, "")
	if s.util > 0 {
		f.GPUMemoryUtilization = Know(s.util, FromCmdline, "")
	}
	if s.budget > 0 {
		f.MaxNumBatchedTokens = Know(s.budget, FromCmdline, "")
	}
	context := s.prompt + s.output/2
	config, missing := ReplicaConfig(f)
	if len(missing) > 0 {
		t.Fatal(missing)
	}
	m := roofline.Measured{
		Point: roofline.Point{Batch: s.running, Context: context}, Resident: stat.Some(context),
		Waiting: stat.Some(s.waiting), KVCapacity: stat.Some(s.pool), MaxNumSeqs: stat.Some(s.seats), PreemptsPerS: stat.Some(s.preempts),
		Workload: roofline.Workload{Prompt: s.prompt, Computed: s.prompt, Output: s.output}, WorkloadKnown: true,
	}
	if s.budget > 0 {
		m.TokenBudget = stat.Some(float64(s.budget))
	}
	itl := s.itl
	if itl == 0 {
		itl = 0.012 + 0.00015*s.running
	}
	m.StepSeconds, m.OutputPerS = stat.Some(itl), stat.Some(s.running/itl)
	m.PrefillPerS = stat.Some(s.running / itl / s.output * s.prompt)
	wait := s.waiting * s.output * itl / s.running
	m.QueueSeconds, m.TTFTSeconds = stat.Some(wait), stat.Some(wait+0.05)
	if s.ttft > 0 {
		m.TTFTSeconds = stat.Some(s.ttft)
	}
	if !s.blind {
		_, d.performance, err = config.Operate(m, 1)
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string, v float64) {
		d.Measured = append(d.Measured, NamedQuantity{name, Quantity{Value: stat.Some(v)}})
	}
	put("generation_tokens_per_s", s.running/itl)
	put("requests_per_s", s.running/itl/s.output)
	put("running_mean", s.running)
	put("waiting_mean", s.waiting)
	put("preemptions_per_s", s.preempts)
	put("prompt_tokens_mean", s.prompt)
	put("output_tokens_mean", s.output)
	put("ttft_mean_s", m.TTFTSeconds.V)
	put("itl_mean_s", itl)
	put("itl_p99_s", max(s.tail, itl))
	if s.advice != nil {
		id := s.id
		if id == "" {
			id = SeatSaturation
		}
		d.Recommendation = &Recommendation{Finding: id, Fix: *s.advice}
		d.Findings = append(d.Findings, Finding{ID: id, State: Fired, Significant: true, Fix: s.advice})
		d.Outcome = OutcomeRecommendation
	}
	for i := range s.runners {
		d.Findings = append(d.Findings, s.runners[i])
		d.Runners = append(d.Runners, s.runners[i].ID)
	}
	return d
}

// fix is a remedy of a rule with what it predicts of the throughput; NaN is unknown.
func fix(flag, from, to string, mid float64) *Fix {
	p := Prediction{Metric: predictTokens, Unit: "ratio"}
	if !math.IsNaN(mid) {
		p.Low, p.Mid, p.High = stat.Some(mid/2), stat.Some(mid), stat.Some(mid*1.25)
	}
	return &Fix{Kind: KindFlag, Flag: flag, From: from, To: to, Predicted: []Prediction{p}, Command: "set " + flag}
}

func seatsFix(from, to string, mid float64) *Fix { return fix("--max-num-seqs", from, to, mid) }

// searched is a search on a diagnosis, automatic and without limits.
func searched(d *Diagnosis, alter ...func(*search)) *search {
	s := &search{d: d, aim: (&LoopPlan{}).aim(), auto: true, left: -1, against: func(string) bool { return false }}
	for _, a := range alter {
		a(s)
	}
	return s
}

// trial is a change that was tried.
func trialOf(flag, from, to string, end ending, effect float64, before, after *Diagnosis) tried {
	t := tried{changes: []Change{{flag, from, to}}, ending: end, before: before, after: after}
	if !math.IsNaN(effect) {
		t.effect = stat.Some(math.Log1p(effect))
	}
	return t
}

// chat is a server with 8 seats and many more clients.
func chat() scene {
	return scene{seats: 8, running: 8, waiting: 56, pool: 100_000, util: 0.9, prompt: 400, output: 400}
}

func value(t *testing.T, r *Recommendation, flag string) float64 {
	t.Helper()
	for _, c := range r.changes() {
		if c.Flag == flag {
			v, ok := number(c.To)
			if !ok {
				t.Fatalf("%s is set to %q", flag, c.To)
			}
			return v
		}
	}
	t.Fatalf("%s is not changed by %v", flag, r.changes())
	return 0
}

func TestSearchBeginsWithTheRulesNumber(t *testing.T) {
	s := chat()
	s.advice = seatsFix("8", "64", 2)
	r, why := searched(s.diagnosis(t)).next()
	if r == nil || r.To != "64" || r.Command != "set --max-num-seqs" {
		t.Errorf("%+v, %q", r, why)
	}
}

// TestSearchBrackets has the rule's number lose, and looks for the next.
func TestSearchBrackets(t *testing.T) {
	for _, c := range []struct {
		name        string
		blind       bool
		lost        string
		effect      float64
		then        scene // what the server showed with it
		least, most float64
	}{
		{"overflowing pool", false, "64", -0.2, scene{seats: 64, running: 60, waiting: 4, pool: 30_000, util: 0.95, prompt: 400, output: 400, preempts: 4, itl: 0.11}, 9, 56},
		{"overflowing pool, without a model", true, "64", -0.2, scene{seats: 64, running: 60, waiting: 4, pool: 30_000, prompt: 400, output: 400, preempts: 4, itl: 0.11, blind: true}, 16, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := chat()
			before.pool, before.util = 30_000, 0.95
			before.blind = c.blind
			before.advice = seatsFix("8", c.lost, 2)
			d := before.diagnosis(t)
			s := searched(d)
			s.trials = []tried{trialOf("--max-num-seqs", "8", c.lost, lost, c.effect, d, c.then.diagnosis(t))}
			r, why := s.next()
			if r == nil {
				t.Fatal(why)
			}
			if v := value(t, r, "--max-num-seqs"); v < c.least || v > c.most {
				t.Errorf("%s, want %v to %v", r.Command, c.least, c.most)
			}
		})
	}
}

// TestSearchFindsTheMiddleOfThree measures three numbers of seats without a model.
func TestSearchFindsTheMiddleOfThree(t *testing.T) {
	s := scene{seats: 16, running: 16, waiting: 48, pool: 60_000, prompt: 400, output: 400, blind: true}
	d := s.diagnosis(t)
	for _, c := range []struct {
		name        string
		lower, high float64 // levels beside that of 16 seats
		want        string  // "" none
	}{
		{"steep below, flat above", -0.6, -0.03, "32"},
		{"even", -0.3, -0.3, ""},
		{"flat below", -0.01, -0.4, "8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := searched(d)
			q.trials = []tried{
				trialOf("--max-num-seqs", "4", "16", gained, math.Expm1(-c.lower), d, d),
				trialOf("--max-num-seqs", "16", "64", lost, math.Expm1(c.high), d, d),
			}
			r, why := q.next()
			got := ""
			if r != nil {
				got = r.To
			}
			if got != c.want {
				t.Errorf("%q (%s), want %q", got, why, c.want)
			}
		})
	}
}

func TestSearchTakesSeatsWithTheirPool(t *testing.T) {
	s := scene{seats: 8, running: 8, waiting: 56, pool: 12_000, util: 0.3, prompt: 800, output: 400}
	s.advice, s.id = fix("--gpu-memory-utilization", "0.3", "0.90", 0.02), KVPressure
	r, why := searched(s.diagnosis(t)).next()
	if r == nil {
		t.Fatal(why)
	}
	if r.Flag != "--gpu-memory-utilization" || value(t, r, "--max-num-seqs") < 32 {
		t.Errorf("%v", r.changes())
	}
	if got := key(r.Finding, &r.Fix); !strings.Contains(got, "--gpu-memory-utilization=") || !strings.Contains(got, "--max-num-seqs=") {
		t.Errorf("key %q does not tell it from a change of one flag", got)
	}
}

func TestSearchMakesRoomOrTakesSeats(t *testing.T) {
	over := scene{seats: 128, running: 46, waiting: 82, pool: 40_000, util: 0.5, prompt: 400, output: 800, preempts: 8, itl: 0.03}
	d := over.diagnosis(t)
	r, why := searched(d).next()
	if r == nil || r.Flag != "--gpu-memory-utilization" {
		t.Fatalf("%+v, %s", r, why)
	}
	r, why = searched(d, func(s *search) { s.allow = []string{"max_num_seqs"} }).next()
	if r == nil || r.Flag != "--max-num-seqs" || len(r.Also) > 0 || value(t, r, "--max-num-seqs") >= 46 {
		t.Fatalf("with the seats alone: %+v, %s", r, why)
	}
}

func TestSearchServesTheGoal(t *testing.T) {
	crowd := scene{seats: 256, running: 190, waiting: 0, pool: 400_000, util: 0.95, prompt: 300, output: 300, itl: 0.05}
	t.Run("an objective that is missed", func(t *testing.T) {
		d := crowd.diagnosis(t)
		o := verdict.Objective{Name: "itl", Metric: verdict.MetricITL, Limit: 0.030}
		r, why := searched(d, func(s *search) { s.aim.objectives = []verdict.Objective{o} }).next()
		if r == nil {
			t.Fatal(why)
		}
		if v := value(t, r, "--max-num-seqs"); v >= 190 || v < 16 {
			t.Errorf("%s", r.Command)
		}
		if after, _ := (&aim{objectives: []verdict.Objective{o}}).breach(d, r.Predicted); after > 0 {
			t.Errorf("it is predicted to miss it by %.2f still", after)
		}
	})
	t.Run("none is missed", func(t *testing.T) {
		if r, why := searched(crowd.diagnosis(t)).next(); r != nil || !strings.Contains(why, "worth a restart") {
			t.Errorf("%+v, %q", r, why)
		}
	})
	t.Run("one that the rule's number would break", func(t *testing.T) {
		s := chat()
		s.advice = seatsFix("8", "64", 2)
		s.advice.Predicted = append(s.advice.Predicted, Prediction{Metric: predictITL, Unit: "ratio", Low: stat.Some(0.5), Mid: stat.Some(1), High: stat.Some(2)})
		d := s.diagnosis(t)
		o := verdict.Objective{Name: "itl", Metric: verdict.MetricITL, Limit: 0.0150}
		r, why := searched(d, func(s *search) { s.aim.objectives = []verdict.Objective{o} }).next()
		if r == nil {
			t.Fatal(why)
		}
		if v := value(t, r, "--max-num-seqs"); v <= 8 || v >= 64 {
			t.Errorf("%s", r.Command)
		}
	})
	t.Run("pauses beside long prompts", func(t *testing.T) {
		s := scene{seats: 64, running: 10, pool: 400_000, util: 0.95, prompt: 6000, output: 200, budget: 16384, itl: 0.03, tail: 1.2}
		d := s.diagnosis(t)
		o := verdict.Objective{Name: "itl_p99", Metric: verdict.MetricITL, Quantile: 0.99, Limit: 0.3}
		r, why := searched(d, func(s *search) { s.aim.objectives = []verdict.Objective{o} }).next()
		if r == nil || r.Flag != "--max-num-batched-tokens" {
			t.Fatalf("%+v, %s", r, why)
		}
		if v := value(t, r, "--max-num-batched-tokens"); v > 4096 || v < 512 {
			t.Errorf("%s", r.Command)
		}
	})
	t.Run("latency", func(t *testing.T) {
		s := chat()
		d := s.diagnosis(t)
		r, why := searched(d, func(s *search) { s.aim.goal = verdict.Latency }).next()
		if r == nil || value(t, r, "--max-num-seqs") <= 8 {
			t.Fatalf("%+v, %s", r, why)
		}
		if p := predictionOf(r.Predicted, predictE2E); !p.Mid.OK || p.Mid.V >= 0 || p.Low.V > p.Mid.V || p.High.V < p.Mid.V {
			t.Errorf("predicted %+v", p)
		}
	})
}

func TestSearchTriesNothingTwice(t *testing.T) {
	d := chat().diagnosis(t)
	other := chat()
	other.running, other.waiting = 8, 8 // a quarter of the load
	quiet := other.diagnosis(t)
	seats := func(to string) []Change { return []Change{{"--max-num-seqs", "8", to}} }
	for _, c := range []struct {
		name    string
		trial   tried
		changes []Change
		against bool
	}{
		{"lost", trialOf("--max-num-seqs", "8", "64", lost, 0, d, d), seats("64"), true},
		{"harder than what lost", trialOf("--max-num-seqs", "8", "64", lost, -0.1, d, d), seats("96"), true},
		{"less than what lost", trialOf("--max-num-seqs", "8", "64", lost, -0.1, d, d), seats("32"), false},
		{"the other way", trialOf("--max-num-seqs", "8", "64", lost, -0.1, d, d), seats("4"), false},
		{"under another load", trialOf("--max-num-seqs", "8", "64", lost, 0, quiet, d), seats("64"), false},
		{"with the pool", trialOf("--max-num-seqs", "8", "64", lost, -0.1, d, d), append(seats("64"), Change{"--gpu-memory-utilization", "0.5", "0.9"}), false},
		{"did not start", trialOf("--gpu-memory-utilization", "0.9", "0.94", failed, math.NaN(), d, nil), []Change{{"--gpu-memory-utilization", "0.9", "0.95"}}, true},
		{"nor with another flag", trialOf("--gpu-memory-utilization", "0.9", "0.94", failed, math.NaN(), d, nil), append(seats("64"), Change{"--gpu-memory-utilization", "0.9", "0.95"}), true},
		{"less than what did not start", trialOf("--gpu-memory-utilization", "0.9", "0.95", failed, math.NaN(), d, nil), []Change{{"--gpu-memory-utilization", "0.9", "0.93"}}, false},
		{"did not start under another load", trialOf("--kv-cache-dtype", "", "fp8", failed, math.NaN(), quiet, nil), []Change{{"--kv-cache-dtype", "", "fp8"}}, true},
		{"0.9 is 0.90", trialOf("--gpu-memory-utilization", "0.5", "0.90", lost, 0, d, d), []Change{{"--gpu-memory-utilization", "0.5", "0.9"}}, true},
	} {
		if why := c.trial.speaks(c.changes, d); (why != "") != c.against {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestSearchForgivesWhatWasRelieved lets seats that lost be tried again once the
// pool grew.
func TestSearchForgivesWhatWasRelieved(t *testing.T) {
	d := chat().diagnosis(t)
	judged := func(dir Direction) *Delta { return &Delta{Direction: dir, Throughput: stat.Some(0)} }
	list := []Iteration{
		{Changes: []Change{{"--max-num-seqs", "8", "64"}}, End: IterationNoGain, Delta: judged(Plateau), Before: d, After: d},
		{Changes: []Change{{"--gpu-memory-utilization", "0.5", "0.9"}}, End: IterationKept, Delta: judged(Better), Before: d, After: d},
		{Changes: []Change{{"--max-num-seqs", "8", "8"}}, Noticed: SameSettings, End: IterationNoise, Delta: judged(Plateau)},
		{Changes: []Change{{"--block-size", "16", "32"}}, End: IterationBroken, Failure: "refused"},
		{Changes: []Change{{"--block-size", "16", "64"}}, End: IterationBroken},
	}
	trials := history(list)
	if len(trials) != 3 || trials[0].ending != lost || trials[1].ending != gained || trials[2].ending != failed {
		t.Fatalf("%+v", trials)
	}
	if why := trials[0].speaks([]Change{{"--max-num-seqs", "8", "64"}}, d); why != "" {
		t.Errorf("it still stands against it: %s", why)
	}
}

func TestSearchTriesUnjudgedOnceMore(t *testing.T) {
	s := chat()
	s.advice = seatsFix("8", "64", 2)
	d := s.diagnosis(t)
	once := trialOf("--max-num-seqs", "8", "64", unjudged, 0.4, d, d)
	for _, c := range []struct {
		name   string
		trials []tried
		left   int
		want   bool
	}{
		{"once", []tried{once}, -1, true},
		{"no restart left", []tried{once}, 1, false},
		{"twice", []tried{once, once}, -1, false},
	} {
		q := searched(d, func(s *search) { s.trials, s.left, s.allow = c.trials, c.left, []string{"max-num-seqs"} })
		again := false
		for _, x := range q.candidates() {
			q.weigh(&x)
			if why, _ := q.refuse(&x); x.To == "64" && why == "" {
				again = x.again
			}
		}
		if again != c.want {
			t.Errorf("%s: %v", c.name, again)
		}
	}
}

func TestSearchSaysWhyItStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		advice *Fix
		alter  func(*search)
		why    string
	}{
		{"too little", seatsFix("8", "12", 0.012), nil, "nothing predicted is worth a restart: the best left is --max-num-seqs 8 → 12 with +1.2 %"},
		{"precision", seatsFix("8", "12", 0.08), func(s *search) { s.aim = (&LoopPlan{Precision: 0.1}).aim() }, "with +8.0 %"},
		{"answers", fix("--kv-cache-dtype", "auto", "fp8", 0.5), nil, "not allowed: --kv-cache-dtype auto → fp8 (it can change the model's answers, and was not asked for)"},
		{"not listed", seatsFix("8", "12", 0.5), func(s *search) { s.allow = []string{"--enforce-eager"} }, "not allowed: --max-num-seqs 8 → 12 (it is not among the flags that may be changed)"},
		{"bounded", &Fix{Kind: KindFlag, Flag: "--enable-prefix-caching", From: "off", To: "on", Predicted: []Prediction{{Metric: predictTokens, Unit: "ratio", High: stat.Some(0.02)}}}, nil, "with +2.0 % at most"},
		{"no restart left", fix("--enable-prefix-caching", "off", "on", math.NaN()), func(s *search) { s.left = 1 }, "no restart remains to try --enable-prefix-caching on, whose gain is not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := chat()
			s.blind, s.waiting, s.advice = true, 0, c.advice
			q := searched(s.diagnosis(t))
			if c.alter != nil {
				c.alter(q)
			}
			r, why := q.next()
			if r != nil || !strings.Contains(why, c.why) {
				t.Errorf("%+v, %q", r, why)
			}
		})
	}
}

func TestSearchAllowsWhatIsListed(t *testing.T) {
	s := chat()
	s.blind, s.advice = true, fix("--kv-cache-dtype", "auto", "fp8", 0.5)
	for _, name := range []string{"kv-cache-dtype", "--kv-cache-dtype", "kv_cache_dtype"} {
		q := searched(s.diagnosis(t), func(s *search) { s.allow = []string{name} })
		if r, why := q.next(); r == nil || r.To != "fp8" {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// TestSearchGoesElsewhere recommends what is no flag only where no flag is left.
func TestSearchGoesElsewhere(t *testing.T) {
	client := &Fix{Kind: KindClient, Command: "more at once"}
	s := chat()
	s.blind, s.waiting, s.advice, s.id = true, 0, client, UnderBatching
	if r, _ := searched(s.diagnosis(t)).next(); r == nil || r.Kind != KindClient {
		t.Errorf("%+v", r)
	}
	s.runners = []Finding{{ID: LowPrefixReuse, State: Fired, Significant: true, Fix: fix("--enable-prefix-caching", "off", "on", math.NaN())}}
	if r, _ := searched(s.diagnosis(t)).next(); r == nil || r.Kind != KindFlag {
		t.Errorf("%+v", r)
	}
}

func TestForetellCorrects(t *testing.T) {
	record := func(flag string, shown, measured float64) foretold {
		return foretold{flag: flag, shown: math.Log1p(shown), half: 0.2, measured: math.Log1p(measured)}
	}
	for _, c := range []struct {
		name        string
		records     []foretold
		least, most float64 // of the factor
		says        string
	}{
		{"nothing known", nil, 1, 1, ""},
		{"right", []foretold{record("--a", 1, 1)}, 0.99, 1.01, ""},
		{"half as much", []foretold{record("--a", 3, 1)}, 0.5, 0.55, "earlier predictions of --a here were"},
		{"twice as much", []foretold{record("--a", 1, 3)}, 1.7, 2, "too low: corrected"},
		{"another flag", []foretold{record("--b", 3, 1)}, 0.5, 0.65, "earlier predictions here were"},
		{"small gains teach little", []foretold{record("--a", 0.05, 0)}, 0.9, 0.98, "8 % too high: corrected"},
		{"never out of bounds", []foretold{record("--a", 3, -0.9), record("--a", 3, -0.9)}, factorLeast, factorLeast, "too high"},
	} {
		got := foretell(c.records, "--a")
		if got.factor < c.least || got.factor > c.most || !strings.Contains(got.told("--a"), c.says) || c.says == "" && got.told("--a") != "" {
			t.Errorf("%s: %+v, %q", c.name, got, got.told("--a"))
		}
	}
}

// TestForetellStaysWithTheTruth has a model that is always a third too high: once
// that is known it stays known, although what is shown is right by then.
func TestForetellStaysWithTheTruth(t *testing.T) {
	var records []foretold
	for i := range 12 {
		raw, truth := 0.9, 0.6
		shown := raw * foretell(records, "--a").factor
		if i > 2 && math.Abs(shown-truth) > 0.05 {
			t.Errorf("prediction %d: %.2f, and %.2f is true", i, shown, truth)
		}
		records = append(records, foretold{flag: "--a", shown: shown, half: 0.2, measured: truth})
	}
}

func TestForetellWidens(t *testing.T) {
	off := func(by float64) (list []foretold) {
		for i := range 8 {
			list = append(list, foretold{flag: "--a", shown: 0.7, half: 0.1, measured: 0.7 + by*float64(1-i%2*2)})
		}
		return list
	}
	wide, narrow := foretell(off(0.4), "--a").widen, foretell(off(0), "--a").widen
	if wide < 1.5 || narrow > 0.9 {
		t.Errorf("width %.2f after misses, %.2f without", wide, narrow)
	}
	p := []Prediction{{Metric: predictTokens, Unit: "ratio", Low: stat.Some(0.5), Mid: stat.Some(1), High: stat.Some(1.5)}, {Metric: predictITL, Unit: "ratio", Mid: stat.Some(0.2)}}
	got := correction{factor: 0.5, widen: 2}.apply(verdict.Throughput, p)
	want := []Prediction{
		{Metric: predictTokens, Unit: "ratio", Low: stat.Some(math.Sqrt2*0.75 - 1), Mid: stat.Some(math.Sqrt2 - 1), High: stat.Some(math.Sqrt2*1.25 - 1)},
		p[1],
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error(diff)
	}
}

func TestScore(t *testing.T) {
	measured := func(dir Direction, goal verdict.Goal, effect float64, predicted ...Prediction) Iteration {
		return Iteration{Predicted: predicted, Delta: &Delta{Direction: dir, Verdict: &verdict.Result{Known: true, Goal: goal, Effect: verdict.Interval{Mid: effect}}}}
	}
	p := func(metric string, low, mid, high float64) Prediction {
		return Prediction{Metric: metric, Unit: "ratio", Low: stat.Some(low), Mid: stat.Some(mid), High: stat.Some(high)}
	}
	tokens := func(low, mid, high float64) Prediction { return p(predictTokens, low, mid, high) }
	for _, c := range []struct {
		name string
		list []Iteration
		want Score
	}{
		{"none", nil, Score{}},
		{"hit and miss", []Iteration{
			measured(Better, verdict.Throughput, 0.5, tokens(0.4, 0.6, 0.8)),
			measured(Plateau, verdict.Throughput, 0.01, tokens(0.1, 0.21, 0.3)),
			measured(Better, verdict.Throughput, 0.25, tokens(0.1, 0.2, 0.3)),
		}, Score{Made: 3, Within: 2, Error: stat.Some(1 - 1.5/1.6)}},
		{"latency is turned around", []Iteration{measured(Better, verdict.Latency, 1, p(predictE2E, -0.6, -0.5, -0.4))}, Score{Made: 1, Within: 1, Error: stat.Some(0)}},
		{"without a verdict the throughput", []Iteration{{Predicted: []Prediction{tokens(0.1, 0.2, 0.3)}, Delta: &Delta{Direction: Better, Throughput: stat.Some(0.25)}}}, Score{Made: 1, Within: 1, Error: stat.Some(1.25/1.2 - 1)}},
		{"not comparable", []Iteration{measured(NotComparable, verdict.Throughput, 0.5, tokens(0.4, 0.6, 0.8))}, Score{}},
		{"not judged", []Iteration{{Predicted: []Prediction{tokens(0.4, 0.6, 0.8)}}}, Score{}},
		{"nothing predicted", []Iteration{measured(Better, verdict.Throughput, 0.5)}, Score{}},
		{"a bound alone", []Iteration{measured(Better, verdict.Throughput, 0.5, Prediction{Metric: predictTokens, Unit: "ratio", High: stat.Some(1)})}, Score{}},
	} {
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if diff := cmp.Diff(c.want, score(c.list), near); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestSearchIsRepeatable runs a search twice on the same, and never proposes what is
// as it was.
func TestSearchIsRepeatable(t *testing.T) {
	for _, s := range []scene{chat(), {seats: 128, running: 100, waiting: 28, pool: 40_000, util: 0.5, prompt: 400, output: 800, preempts: 6}} {
		d := s.diagnosis(t)
		once, again := fmt.Sprintf("%+v", searched(d).candidates()), fmt.Sprintf("%+v", searched(d).candidates())
		if once != again {
			t.Errorf("%s\n%s", once, again)
		}
		for _, c := range searched(d).candidates() {
			for _, change := range c.changes() {
				if change.From == change.To {
					t.Errorf("%s is no change", change)
				}
			}
			for _, p := range c.Predicted {
				if p.Low.OK && p.Mid.OK && p.Low.V > p.Mid.V+1e-9 || p.High.OK && p.Mid.OK && p.High.V < p.Mid.V-1e-9 {
					t.Errorf("%s: %+v", c.Command, p)
				}
			}
		}
	}
}
