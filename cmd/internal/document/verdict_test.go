package document_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// told returns the page of a diagnosis with its lines joined, so that a wrapped sentence can be found.
func told(t *testing.T, d *engine.Diagnosis, o render.Options) string {
	t.Helper()
	var b bytes.Buffer
	must(t, WritePlain(&b, d, o))
	return strings.Join(strings.Fields(strings.ReplaceAll(b.String(), figure.NBSP, " ")), " ")
}

// without is a diagnosis without a recommendation.
func without(outcome engine.Outcome, doubt string, w engine.WindowCounts, change func(*engine.Diagnosis)) *engine.Diagnosis {
	d := healthy()
	d.Outcome, d.Doubt, d.Windows = outcome, doubt, w
	if outcome == engine.OutcomeNotEvaluable {
		d.LastRaw = &engine.Window{Evaluable: true, Polls: 9, Running: some(3)}
	}
	if change != nil {
		change(d)
	}
	return d
}

func TestVerdictsWithoutAChange(t *testing.T) {
	all := engine.WindowCounts{Collected: 15, Evaluable: 15, Active: 15}
	few := engine.WindowCounts{Collected: 15, Evaluable: 2, Active: 2}
	share := func(of float64) func(*engine.Diagnosis) {
		return func(d *engine.Diagnosis) {
			p, at := d.Ceiling.Physical, 302.57/of
			p.AchievableTokensPerS, p.AchievableLower, p.AchievableUpper = some(at), some(at*0.8), some(at*1.15)
		}
	}
	fire := func(ids ...engine.FindingID) func(*engine.Diagnosis) {
		return func(d *engine.Diagnosis) {
			for _, id := range ids {
				d.Findings = append(d.Findings, engine.Finding{ID: id, Rule: "R3", State: engine.Fired, Significant: true, Fired: 9, Judged: 15, Evaluable: 15,
					Fix: &engine.Fix{Withheld: "prefill is only 2 % of the engine time"}})
			}
		}
	}
	unknownSlots := func(d *engine.Diagnosis) {
		d.Facts.MaxNumSeqs = engine.Fact[int]{Note: "the page does not tell it"}
		for i := range d.Findings {
			if d.Findings[i].ID == engine.ConcurrencySaturation {
				d.Findings[i].State = engine.NotEvaluable
			}
		}
	}
	long := func(d *engine.Diagnosis) { d.Duration = 2 * time.Minute }
	for _, c := range []struct {
		name        string
		d           *engine.Diagnosis
		want, never []string
	}{
		{"nothing fired", without(engine.OutcomeHealthy, "", all, nil),
			[]string{"No rule fired persistently in 15 windows of load. Output is within achievable (est), 208 to 361 tok/s."}, []string{"fired, and"}},
		{"what fired would gain nothing", without(engine.OutcomeHealthy, "", all, fire(engine.LowPrefixReuse)),
			[]string{"In 15 windows of load low-prefix-reuse fired, and no change is known to gain anything here.", "fired low-prefix-reuse (R3), fired in 9 of 15"},
			[]string{"No rule fired"}},
		{"so would several", without(engine.OutcomeHealthy, "", all, fire(engine.LowPrefixReuse, engine.OOMRisk, engine.TokenBudget)),
			[]string{"low-prefix-reuse, oom-risk and token-budget fired, and no change"}, []string{"No rule fired"}},
		{"as good as good software", without(engine.OutcomeHealthy, "", all, share(1.16)),
			[]string{"Output is above achievable (est), 209 to 300 tok/s."}, []string{"116 %"}},
		{"nearly so", without(engine.OutcomeHealthy, "", all, share(1.1)), []string{"Output is within achievable (est), 220 to 316 tok/s"}, []string{"above", "110 %"}},
		{"less", without(engine.OutcomeHealthy, "", all, share(.72)), []string{"Output is 72 % of achievable (est)"}, []string{"above"}},
		{"too few windows", without(engine.OutcomeNotEvaluable, "only 2 of 15 windows could be judged", few, nil),
			[]string{"▲ warn Not evaluable", "only 2 of 15 windows", "do measure longer: --duration 2m"}, []string{"Last raw window", "no window had", "doctor"}},
		{"too few in a long run", without(engine.OutcomeNotEvaluable, "only 2 of 60 windows could be judged", few, long),
			[]string{"do fix that, then measure again"}, []string{"measure longer", "Last raw window"}},
		{"load in too few windows", without(engine.OutcomeNotEvaluable, "the server worked in only 2 of 15 windows", engine.WindowCounts{Collected: 15, Evaluable: 15, Active: 2}, nil),
			[]string{"do measure longer: --duration 2m"}, nil},
		{"a server that died", without(engine.OutcomeNotEvaluable, "the server stopped answering after 4.0 s", few, func(d *engine.Diagnosis) { d.LastRaw.Failed = 8 }),
			[]string{"do check that the server runs and answers"}, []string{"measure longer", "Last raw window"}},
		{"a change with a doubt", func() *engine.Diagnosis {
			d := slots()
			d.Doubt = "the server stopped answering after 20 s"
			return d
		}(), []string{"but ▲ open: the server stopped answering"}, nil},
		{"a queue before unknown slots", without(engine.OutcomeNotEvaluable, "50 % of the requests wait", all, unknownSlots),
			[]string{"50 % of the requests wait", "do give -m N"}, []string{"Last raw window", "measure longer"}},
		{"a wrong number of slots given by the user", without(engine.OutcomeNotEvaluable, "running stays at 16: is -m 256 right?", all, func(d *engine.Diagnosis) {
			d.Facts.SlotsInferred, d.Facts.MaxNumSeqs = 16, engine.Know(256, engine.FromFlag, "")
		}), []string{"do leave -m out, or give what the server was started with"}, []string{"fix that"}},
		{"never seen working", without(engine.OutcomeNotEvaluable, "requests were in", engine.WindowCounts{Collected: 15, Evaluable: 15}, nil),
			[]string{"do check the server's log"}, []string{"Last raw window"}},
		{"nothing evaluable", without(engine.OutcomeNotEvaluable, "", engine.WindowCounts{Collected: 4}, nil),
			[]string{"✖ bad Not evaluable: no window", "do rooftop doctor", "Last raw window"}, nil},
		{"idle", without(engine.OutcomeNoLoad, "", engine.WindowCounts{Collected: 15, Evaluable: 15}, nil), []string{"do send requests"}, nil},
		{"asleep", without(engine.OutcomeNoLoad, "the engine sleeps: wake it up with POST /wake_up", engine.WindowCounts{Collected: 15, Evaluable: 15}, nil),
			[]string{"why the engine sleeps: wake it up"}, []string{"send requests"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := told(t, c.d, render.Options{})
			for _, s := range c.want {
				if !strings.Contains(page, s) {
					t.Errorf("the page does not say %q:\n%s", s, page)
				}
			}
			for _, s := range c.never {
				if strings.Contains(page, s) {
					t.Errorf("the page says %q:\n%s", s, page)
				}
			}
		})
	}
}

func TestTheLastWindowIsRawOnlyWhereNoneCounts(t *testing.T) {
	for name, c := range map[string]struct {
		evaluable int
		null      bool
	}{"none counts": {0, false}, "some count": {2, true}} {
		t.Run(name, func(t *testing.T) {
			d := without(engine.OutcomeNotEvaluable, "", engine.WindowCounts{Collected: 9, Evaluable: c.evaluable}, nil)
			if null := strings.Contains(string(diagnosed(t, d)), `"last_raw_window": null`); null != c.null {
				t.Errorf("last_raw_window is null: %v, want %v", null, c.null)
			}
		})
	}
}

func TestFallbacksAreMarked(t *testing.T) {
	guess := func(d *engine.Diagnosis) {
		f := &d.Facts
		f.TensorParallel = engine.Know(1, engine.FromDefault, "assumed: the page does not tell it")
		f.WeightDType = engine.Know("bf16", engine.FromDefault, "assumed: bf16, the model's own type is not known")
		f.ComputeDType = engine.Know("bf16", engine.FromDefault, "")
		f.KVCacheDType = engine.Know("bf16", engine.FromMetrics, "auto: the model's own type")
		f.ModelKnown = false
	}
	for name, c := range map[string]struct {
		change      func(*engine.Diagnosis)
		want, never string
	}{
		"what was read":            {func(*engine.Diagnosis) {}, "TP 4 · weights bf16 · KV bf16 · max len", "(assumed)"},
		"fallbacks":                {guess, "TP 1 (assumed) · weights bf16 (assumed) · KV bf16 (assumed) · max len 8,192 ·", "8,192 (assumed)"},
		"a known default":          {func(d *engine.Diagnosis) { d.Facts.TensorParallel = engine.Know(1, engine.FromDefault, "") }, "TP 1 · weights", "(assumed)"},
		"a cache of a known model": {func(d *engine.Diagnosis) { guess(d); d.Facts.ModelKnown = true }, "weights bf16 (assumed) · KV bf16 · max", "KV bf16 (assumed)"},
	} {
		t.Run(name, func(t *testing.T) {
			d := slots()
			c.change(d)
			page := told(t, d, render.Options{Width: 120})
			if !strings.Contains(page, c.want) || strings.Contains(page, c.never) {
				t.Errorf("want %q and not %q in\n%s", c.want, c.never, page)
			}
		})
	}
}

func TestALowerLimitIsNotAMeasurement(t *testing.T) {
	d := slots()
	for i := range d.Measured {
		if d.Measured[i].Name == "ttft_p99_s" {
			d.Measured[i].Value, d.Measured[i].AtLeast, d.Measured[i].Note = some(2560), true, "in the overflow bucket"
		}
		if d.Measured[i].Name == "itl_p99_s" {
			d.Measured[i].Value, d.Measured[i].AtLeast = stat.None, true
		}
	}
	d.Recommendation.Predicted = append(d.Recommendation.Predicted, predict("ttft_p99_s", -.9, -.5, -.2))
	for _, o := range []render.Options{{}, {Verbose: true}} {
		page := told(t, d, o)
		if n, marked := strings.Count(page, "2,560"), strings.Count(page, "> 2,560"); n < 2 || n != marked {
			t.Errorf("%d of %d lower limits are marked:\n%s", marked, n, page)
		}
	}
	doc := string(diagnosed(t, d))
	if n := strings.Count(doc, `"at_least": true`); n != 1 {
		t.Errorf("at_least is %d times in the document, want once: an absent value is not a limit", n)
	}
	if err := schema(t, "diagnosis.v1.schema.json").Validate(decoded(t, []byte(doc))); err != nil {
		t.Error(err)
	}
}

func TestMoneyHasItsDate(t *testing.T) {
	d := slots()
	if page := told(t, d, render.Options{Width: 60}); !strings.Contains(page, "$/1M output $2.57 (est, 2026-06)") {
		t.Errorf("a catalog price has no date in\n%s", page)
	}
	d.Facts.CostPerHour, d.Facts.CostEst = engine.Know(5.2, engine.FromFlag, ""), false
	for i := range d.Measured {
		if d.Measured[i].Name == "usd_per_million_tokens" {
			d.Measured[i].Source = engine.Derived
		}
	}
	if page := told(t, d, render.Options{Width: 60}); strings.Contains(page, "$2.57 (est") {
		t.Errorf("the user's price is called an estimate in\n%s", page)
	}
}
