package search

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// scene is a measured server, in what the search looks at.
type scene struct {
	slots, running, waiting float64
	pool                    float64 // tokens
	util                    float64 // of the GPU's memory, 0 not known
	prompt, output          float64
	preempts                float64 // per second
	budget                  int
	itl, ttft               float64 // seconds, 0: as the model has it
	tail                    float64 // p99 of ITL
	blind                   bool    // without a physical model
	advice                  *engine.Fix
	id                      engine.FindingID
	runners                 []engine.Finding
}

func (s scene) diagnosis(t testing.TB) *engine.Diagnosis {
	t.Helper()
	gpu, err := catalog.Default().FindGPU("NVIDIA A100-SXM4-80GB", 0)
	if err != nil {
		t.Fatal(err)
	}
	model, err := catalog.Default().FindModel("meta-llama/Llama-3.1-8B-Instruct")
	if err != nil {
		t.Fatal(err)
	}
	d := &engine.Diagnosis{Ranks: 1}
	f := &d.Facts
	f.GPU, f.GPUKnown, f.ModelSpec, f.ModelKnown = gpu, true, model, true
	f.KVCacheDType, f.WeightDType, f.ComputeDType = engine.Know("bf16", engine.FromDefault, ""), engine.Know("bf16", engine.FromDefault, ""), engine.Know("bf16", engine.FromDefault, "")
	f.TensorParallel, f.MaxNumSeqs = engine.Know(1, engine.FromDefault, ""), engine.Know(int(s.slots), engine.FromCmdline, "")
	f.ChunkedPrefill = engine.Know(true, engine.FromDefault, "")
	if s.util > 0 {
		f.GPUMemoryUtilization = engine.Know(s.util, engine.FromCmdline, "")
	}
	if s.budget > 0 {
		f.MaxNumBatchedTokens = engine.Know(s.budget, engine.FromCmdline, "")
	}
	context := s.prompt + s.output/2
	config, missing := engine.ReplicaConfig(f)
	if len(missing) > 0 {
		t.Fatal(missing)
	}
	m := roofline.Measured{
		Point: roofline.Point{Batch: s.running, Context: context}, Resident: stat.Some(context),
		Waiting: stat.Some(s.waiting), KVCapacity: stat.Some(s.pool), MaxNumSeqs: stat.Some(s.slots), PreemptsPerS: stat.Some(s.preempts),
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
		_, d.Performance, err = config.Operate(m, 1)
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string, v float64) {
		d.Measured = append(d.Measured, engine.NamedQuantity{Name: name, Quantity: engine.Quantity{Value: stat.Some(v)}})
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
			id = engine.ConcurrencySaturation
		}
		d.Recommendation = &engine.Recommendation{Finding: id, Fix: *s.advice}
		d.Findings = append(d.Findings, engine.Finding{ID: id, State: engine.Fired, Significant: true, Fix: s.advice})
		d.Outcome = engine.OutcomeRecommendation
	}
	for i := range s.runners {
		d.Findings = append(d.Findings, s.runners[i])
		d.Runners = append(d.Runners, s.runners[i].ID)
	}
	return d
}

// fix is a remedy of a rule with what it predicts of the throughput; NaN is unknown.
func fix(flag, from, to string, mid float64) *engine.Fix {
	p := engine.Prediction{Metric: engine.QuantityThroughput, Unit: "ratio"}
	if !math.IsNaN(mid) {
		p.Low, p.Mid, p.High = stat.Some(mid/2), stat.Some(mid), stat.Some(mid*1.25)
	}
	return &engine.Fix{Kind: engine.KindFlag, Flag: flag, From: from, To: to, Predicted: []engine.Prediction{p}, Command: "set " + flag}
}

func slotsFix(from, to string, mid float64) *engine.Fix { return fix("--max-num-seqs", from, to, mid) }

// searched is a search on a diagnosis, automatic and without limits.
func searched(d *engine.Diagnosis, alter ...func(*Search)) *Search {
	s := &Search{Baseline: d, Goal: NewGoal("", nil, 0), Auto: true, RestartsLeft: -1, PassedOver: func(string) bool { return false }}
	for _, a := range alter {
		a(s)
	}
	return s
}

// trial is a change that was tried.
func trialOf(flag, from, to string, end Ending, effect float64, before, after *engine.Diagnosis) Trial {
	t := Trial{Changes: []engine.Change{{Flag: flag, From: from, To: to}}, Ending: end, Before: before, After: after}
	if !math.IsNaN(effect) {
		t.Effect = stat.Some(math.Log1p(effect))
	}
	return t
}

// chat is a server with 8 slots and many more clients.
func chat() scene {
	return scene{slots: 8, running: 8, waiting: 56, pool: 100_000, util: 0.9, prompt: 400, output: 400}
}

func value(t *testing.T, r *engine.Recommendation, flag string) float64 {
	t.Helper()
	for _, c := range r.Changes() {
		if c.Flag == flag {
			v, ok := lever.ParseNumber(c.To)
			if !ok {
				t.Fatalf("%s is set to %q", flag, c.To)
			}
			return v
		}
	}
	t.Fatalf("%s is not changed by %v", flag, r.Changes())
	return 0
}

func TestSearchBeginsWithTheRulesNumber(t *testing.T) {
	s := chat()
	s.advice = slotsFix("8", "64", 2)
	r, why := searched(s.diagnosis(t)).Next()
	if r == nil || r.To != "64" || r.Command != "set --max-num-seqs" {
		t.Errorf("%+v, %q", r, why)
	}
}

// TestSearchBrackets has the rule's number lose, and checks the next one.
func TestSearchBrackets(t *testing.T) {
	for _, c := range []struct {
		name        string
		blind       bool
		lost        string
		effect      float64
		then        scene // what the server showed with it
		least, most float64
	}{
		{"overflowing pool", false, "64", -0.2, scene{slots: 64, running: 60, waiting: 4, pool: 30_000, util: 0.95, prompt: 400, output: 400, preempts: 4, itl: 0.11}, 9, 56},
		{"overflowing pool, without a model", true, "64", -0.2, scene{slots: 64, running: 60, waiting: 4, pool: 30_000, prompt: 400, output: 400, preempts: 4, itl: 0.11, blind: true}, 16, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := chat()
			before.pool, before.util = 30_000, 0.95
			before.blind = c.blind
			before.advice = slotsFix("8", c.lost, 2)
			d := before.diagnosis(t)
			s := searched(d)
			s.Trials = []Trial{trialOf("--max-num-seqs", "8", c.lost, Lost, c.effect, d, c.then.diagnosis(t))}
			r, why := s.Next()
			if r == nil {
				t.Fatal(why)
			}
			if v := value(t, r, "--max-num-seqs"); v < c.least || v > c.most {
				t.Errorf("%s, want %v to %v", r.Command, c.least, c.most)
			}
		})
	}
}

// TestSearchFindsTheMiddleOfThree measures three numbers of slots without a model.
func TestSearchFindsTheMiddleOfThree(t *testing.T) {
	s := scene{slots: 16, running: 16, waiting: 48, pool: 60_000, prompt: 400, output: 400, blind: true}
	d := s.diagnosis(t)
	for _, c := range []struct {
		name        string
		lower, high float64 // levels relative to that of 16 slots
		want        string  // "" none
	}{
		{"steep below, flat above", -0.6, -0.03, "32"},
		{"even", -0.3, -0.3, ""},
		{"flat below", -0.01, -0.4, "8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := searched(d)
			q.Trials = []Trial{
				trialOf("--max-num-seqs", "4", "16", Gained, math.Expm1(-c.lower), d, d),
				trialOf("--max-num-seqs", "16", "64", Lost, math.Expm1(c.high), d, d),
			}
			r, why := q.Next()
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

func TestSearchTakesSlotsWithTheirPool(t *testing.T) {
	s := scene{slots: 8, running: 8, waiting: 56, pool: 12_000, util: 0.3, prompt: 800, output: 400}
	s.advice, s.id = fix("--gpu-memory-utilization", "0.3", "0.90", 0.02), engine.KVPressure
	r, why := searched(s.diagnosis(t)).Next()
	if r == nil {
		t.Fatal(why)
	}
	if r.Flag != "--gpu-memory-utilization" || value(t, r, "--max-num-seqs") < 32 {
		t.Errorf("%v", r.Changes())
	}
	if got := Key(r.Finding, &r.Fix); !strings.Contains(got, "--gpu-memory-utilization=") || !strings.Contains(got, "--max-num-seqs=") {
		t.Errorf("key %q does not distinguish it from a change of one flag", got)
	}
}

func TestSearchMakesRoomOrTakesSlots(t *testing.T) {
	over := scene{slots: 128, running: 46, waiting: 82, pool: 40_000, util: 0.5, prompt: 400, output: 800, preempts: 8, itl: 0.03}
	d := over.diagnosis(t)
	r, why := searched(d).Next()
	if r == nil || r.Flag != "--gpu-memory-utilization" {
		t.Fatalf("%+v, %s", r, why)
	}
	r, why = searched(d, func(s *Search) { s.Allow = []string{"max_num_seqs"} }).Next()
	if r == nil || r.Flag != "--max-num-seqs" || len(r.Also) > 0 || value(t, r, "--max-num-seqs") >= 46 {
		t.Fatalf("with the slots alone: %+v, %s", r, why)
	}
}

func TestSearchServesTheGoal(t *testing.T) {
	busy := scene{slots: 256, running: 190, waiting: 0, pool: 400_000, util: 0.95, prompt: 300, output: 300, itl: 0.05}
	t.Run("an objective that is missed", func(t *testing.T) {
		d := busy.diagnosis(t)
		o := verdict.Objective{Name: "itl", Metric: verdict.MetricITL, Limit: 0.030}
		r, why := searched(d, func(s *Search) { s.Goal.Objectives = []verdict.Objective{o} }).Next()
		if r == nil {
			t.Fatal(why)
		}
		if v := value(t, r, "--max-num-seqs"); v >= 190 || v < 16 {
			t.Errorf("%s", r.Command)
		}
		if after, _ := (&Goal{Objectives: []verdict.Objective{o}}).breach(d, r.Predicted); after > 0 {
			t.Errorf("it is predicted to miss it by %.2f still", after)
		}
	})
	t.Run("none is missed", func(t *testing.T) {
		if r, why := searched(busy.diagnosis(t)).Next(); r != nil || !strings.Contains(why, "predicted to help") {
			t.Errorf("%+v, %q", r, why)
		}
	})
	t.Run("one that the rule's number would break", func(t *testing.T) {
		s := chat()
		s.advice = slotsFix("8", "64", 2)
		s.advice.Predicted = append(s.advice.Predicted, engine.Prediction{Metric: engine.QuantityITL, Unit: "ratio", Low: stat.Some(0.5), Mid: stat.Some(1), High: stat.Some(2)})
		d := s.diagnosis(t)
		o := verdict.Objective{Name: "itl", Metric: verdict.MetricITL, Limit: 0.0150}
		r, why := searched(d, func(s *Search) { s.Goal.Objectives = []verdict.Objective{o} }).Next()
		if r == nil {
			t.Fatal(why)
		}
		if v := value(t, r, "--max-num-seqs"); v <= 8 || v >= 64 {
			t.Errorf("%s", r.Command)
		}
	})
	t.Run("pauses beside long prompts", func(t *testing.T) {
		s := scene{slots: 64, running: 10, pool: 400_000, util: 0.95, prompt: 6000, output: 200, budget: 16384, itl: 0.03, tail: 1.2}
		d := s.diagnosis(t)
		o := verdict.Objective{Name: "itl_p99", Metric: verdict.MetricITL, Quantile: 0.99, Limit: 0.3}
		r, why := searched(d, func(s *Search) { s.Goal.Objectives = []verdict.Objective{o} }).Next()
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
		r, why := searched(d, func(s *Search) { s.Goal.Metric = verdict.Latency }).Next()
		if r == nil || value(t, r, "--max-num-seqs") <= 8 {
			t.Fatalf("%+v, %s", r, why)
		}
		if p := engine.PredictionOf(r.Predicted, engine.QuantityE2E); !p.Mid.OK || p.Mid.V >= 0 || p.Low.V > p.Mid.V || p.High.V < p.Mid.V {
			t.Errorf("predicted %+v", p)
		}
	})
}

func TestSearchTriesNothingTwice(t *testing.T) {
	d := chat().diagnosis(t)
	other := chat()
	other.running, other.waiting = 8, 8 // a quarter of the load
	quiet := other.diagnosis(t)
	slots := func(to string) []engine.Change { return []engine.Change{{Flag: "--max-num-seqs", From: "8", To: to}} }
	for _, c := range []struct {
		name    string
		trial   Trial
		changes []engine.Change
		against bool
	}{
		{"lost", trialOf("--max-num-seqs", "8", "64", Lost, 0, d, d), slots("64"), true},
		{"harder than what lost", trialOf("--max-num-seqs", "8", "64", Lost, -0.1, d, d), slots("96"), true},
		{"less than what lost", trialOf("--max-num-seqs", "8", "64", Lost, -0.1, d, d), slots("32"), false},
		{"the other way", trialOf("--max-num-seqs", "8", "64", Lost, -0.1, d, d), slots("4"), false},
		{"under another load", trialOf("--max-num-seqs", "8", "64", Lost, 0, quiet, d), slots("64"), false},
		{"with the pool", trialOf("--max-num-seqs", "8", "64", Lost, -0.1, d, d), append(slots("64"), engine.Change{Flag: "--gpu-memory-utilization", From: "0.5", To: "0.9"}), false},
		{"did not start", trialOf("--gpu-memory-utilization", "0.9", "0.94", Failed, math.NaN(), d, nil), []engine.Change{{Flag: "--gpu-memory-utilization", From: "0.9", To: "0.95"}}, true},
		{"nor with another flag", trialOf("--gpu-memory-utilization", "0.9", "0.94", Failed, math.NaN(), d, nil), append(slots("64"), engine.Change{Flag: "--gpu-memory-utilization", From: "0.9", To: "0.95"}), true},
		{"less than what did not start", trialOf("--gpu-memory-utilization", "0.9", "0.95", Failed, math.NaN(), d, nil), []engine.Change{{Flag: "--gpu-memory-utilization", From: "0.9", To: "0.93"}}, false},
		{"did not start under another load", trialOf("--kv-cache-dtype", "", "fp8", Failed, math.NaN(), quiet, nil), []engine.Change{{Flag: "--kv-cache-dtype", From: "", To: "fp8"}}, true},
		{"0.9 is 0.90", trialOf("--gpu-memory-utilization", "0.5", "0.90", Lost, 0, d, d), []engine.Change{{Flag: "--gpu-memory-utilization", From: "0.5", To: "0.9"}}, true},
	} {
		if why := c.trial.excludes(c.changes, d); (why != "") != c.against {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestSearchForgivesWhatWasRelieved checks that slots that lost are tried again after the pool grew.
func TestSearchForgivesWhatWasRelieved(t *testing.T) {
	d := chat().diagnosis(t)
	slots := trialOf("--max-num-seqs", "8", "64", Lost, 0, d, d)
	slots.Since = []string{"--gpu-memory-utilization"}
	if why := slots.excludes([]engine.Change{{Flag: "--max-num-seqs", From: "8", To: "64"}}, d); why != "" {
		t.Errorf("it still stands against it: %s", why)
	}
}

// TestSearchTriesUnjudgedOnceMore checks that what could not be judged is tried once more, and that a step a little further counts as a repeat of what could
// not be judged, unless it promises more.
func TestSearchTriesUnjudgedOnceMore(t *testing.T) {
	const flag = "--num-gpu-blocks-override"
	for _, c := range []struct {
		name     string
		tried    []string // values that could not be judged, each predicted to gain 42 %
		to       string
		promises float64
		left     int // restarts
		want     bool
	}{
		{"the same, once", []string{"6208"}, "6208", 0.42, -1, true},
		{"the same, no restart left for a revert", []string{"6208"}, "6208", 0.42, 1, false},
		{"a little further, once", []string{"6192"}, "6208", 0.42, -1, true},
		{"a little further, twice", []string{"6192", "6208"}, "7128", 0.42, -1, false},
		{"a gain that is larger by less than counts", []string{"6192", "6208"}, "7128", 0.43, -1, false},
		{"further, for more", []string{"6192", "6208"}, "9000", 0.6, -1, true},
		{"less far", []string{"6192", "6208"}, "6000", 0.42, -1, true},
	} {
		s := chat()
		s.blind, s.waiting, s.advice = true, 0, fix(flag, "4000", c.to, c.promises)
		d := s.diagnosis(t)
		q := searched(d, func(s *Search) { s.RestartsLeft = c.left })
		for _, to := range c.tried {
			trial := trialOf(flag, "4000", to, Unjudged, 0.3, d, d)
			trial.Predicted = fix(flag, "4000", to, 0.42).Predicted
			q.Trials = append(q.Trials, trial)
		}
		r, why := q.Next()
		if (r != nil) != c.want || !c.want && !strings.HasSuffix(why, " → 6208 was tried and could not be judged") {
			t.Errorf("%s: %+v, %q", c.name, r, why)
		}
	}
}

func TestSearchSaysWhyItStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		advice *engine.Fix
		alter  func(*Search)
		why    string
	}{
		{"too little", slotsFix("8", "12", 0.012), nil, "no remaining change is predicted to help: the best is --max-num-seqs 8 → 12 with +1.2 %"},
		{"precision", slotsFix("8", "12", 0.08), func(s *Search) { s.Goal = NewGoal("", nil, 0.1) }, "with +8 %"},
		{"answers", fix("--kv-cache-dtype", "auto", "fp8", 0.5), nil, "not allowed: --kv-cache-dtype auto → fp8 (it can change the model's answers; --allow-flags has to name it)"},
		{"not listed", slotsFix("8", "12", 0.5), func(s *Search) { s.Allow = []string{"--enforce-eager"} }, "not allowed: --max-num-seqs 8 → 12 (not one of the allowed flags)"},
		{"bounded", &engine.Fix{Kind: engine.KindFlag, Flag: "--enable-prefix-caching", From: "off", To: "on", Predicted: []engine.Prediction{{Metric: engine.QuantityThroughput, Unit: "ratio", High: stat.Some(0.02)}}}, nil, "with +2 % at most"},
		{"no restart left", fix("--enable-prefix-caching", "off", "on", math.NaN()), func(s *Search) { s.RestartsLeft = 1 }, "no restart is left to try --enable-prefix-caching on, whose gain is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := chat()
			s.blind, s.waiting, s.advice = true, 0, c.advice
			q := searched(s.diagnosis(t))
			if c.alter != nil {
				c.alter(q)
			}
			r, why := q.Next()
			if r != nil || !strings.Contains(strings.ReplaceAll(why, figure.NBSP, " "), c.why) {
				t.Errorf("%+v, %q", r, why)
			}
		})
	}
}

// TestSearchNamesWhatItMayNotTry: where a rule's remedy is not allowed and another change is tried in its place, it says
// so, and that a change is tried again.
func TestSearchNamesWhatItMayNotTry(t *testing.T) {
	s := scene{slots: 128, running: 46, waiting: 82, pool: 40_000, util: 0.5, prompt: 400, output: 800, preempts: 8, itl: 0.03, advice: fix("--kv-cache-dtype", "auto", "fp8", 2), id: engine.KVPressure}
	d := s.diagnosis(t)
	r, why := searched(d).Next()
	if r == nil || r.Flag != "--gpu-memory-utilization" || !strings.Contains(r.Why, "The change that a rule recommends is not allowed: --kv-cache-dtype auto → fp8") || strings.Contains(r.Why, "without a verdict") {
		t.Fatalf("%+v, %s", r, why)
	}
	var once []Trial // of each value
	for _, to := range []string{"0.55", "0.6", "0.7", "0.8", "0.9", "0.92", "0.95"} {
		once = append(once, trialOf(r.Flag, r.From, to, Unjudged, 0.4, d, d))
	}
	if r, why = searched(d, func(s *Search) { s.Trials, s.Allow = once, []string{"gpu-memory-utilization"} }).Next(); r == nil || !strings.Contains(r.Why, "It was tried without a verdict") {
		t.Errorf("%+v, %s", r, why)
	}
}

// TestSearchGoesElsewhere checks that a remedy other than a flag is recommended only if no flag is left.
func TestSearchGoesElsewhere(t *testing.T) {
	client := &engine.Fix{Kind: engine.KindClient, Command: "more at once"}
	s := chat()
	s.blind, s.waiting, s.advice, s.id = true, 0, client, engine.UnderBatching
	if r, _ := searched(s.diagnosis(t)).Next(); r == nil || r.Kind != engine.KindClient {
		t.Errorf("%+v", r)
	}
	s.runners = []engine.Finding{{ID: engine.LowPrefixReuse, State: engine.Fired, Significant: true, Fix: fix("--enable-prefix-caching", "off", "on", math.NaN())}}
	if r, _ := searched(s.diagnosis(t)).Next(); r == nil || r.Kind != engine.KindFlag {
		t.Errorf("%+v", r)
	}
}

// TestAStepTooSmallToTellGivesWayToALargerOne offers steps of one flag, of which the smallest gains least.
func TestAStepTooSmallToTellGivesWayToALargerOne(t *testing.T) {
	step := func(to string, gain float64) candidate {
		return candidate{Recommendation: engine.Recommendation{Fix: *fix("--max-num-batched-tokens", "64", to, gain)}, gain: stat.Some(math.Log1p(gain))}
	}
	list := []candidate{step("256", 0.06), step("32", 0.3), step("512", 0.12), step("1024", 0.1)}
	for detectable, want := range map[float64]string{0.05: "256", 0.1: "512"} {
		got := (&Search{Detectable: detectable}).tellable(&list[0], list)
		if got.To != want || (want != "256") != strings.Contains(got.Why, "The smaller step to 256") {
			t.Errorf("from %v on: %s, want %s: %s", detectable, got.To, want, got.Why)
		}
	}
}
