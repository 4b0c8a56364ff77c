package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// recentRelease has a release whose gauges are never stale.
var recentRelease = &Facts{EngineVersion: Know("0.32.0", FromServer, "")}

// server is a made-up server that a test polls four times a second.
type server struct {
	w       Windower
	t       time.Duration
	page    *Page
	windows []Window
}

// newServer returns a server with ranks of four running requests and one waiting request each.
func newServer(ranks int) *server {
	p := pageAt(0, float64(4*ranks), float64(ranks), 0.25, 0)
	p.Ranks = nil
	for i := range ranks {
		r := Rank{Name: string(rune('0' + i)), Generation: stat.Some(0)}
		r.Gauges[GaugeRunning], r.Gauges[GaugeWaiting], r.Gauges[GaugeKVUsage] = stat.Some(4), stat.Some(1), stat.Some(0.25)
		p.Ranks = append(p.Ranks, r)
	}
	return &server{page: p}
}

// run polls the server for a time. step changes the page before each poll; health is what each
// reading says, every two seconds.
func (s *server) run(d time.Duration, health HealthState, step func(p *Page)) {
	for end := s.t + d; s.t < end; s.t += poll {
		p := *s.page
		p.Ranks = append([]Rank(nil), p.Ranks...)
		p.T = s.t
		if step != nil {
			step(&p)
		}
		s.page = &p
		sample := &Sample{T: s.t, Page: &p}
		if s.t%WindowLength == 0 {
			sample.Health = &Health{T: s.t, State: health}
			if health == HealthFailed {
				sample.Health.Why = "/health answers 503"
			}
		}
		s.add(sample)
	}
}

// fail lets scrapes fail for a time.
func (s *server) fail(d time.Duration) {
	for end := s.t + d; s.t < end; s.t += poll {
		s.add(&Sample{T: s.t, PageErr: "timeout"})
	}
}

func (s *server) add(sample *Sample) {
	if w := s.w.Add(sample); w != nil {
		s.windows = append(s.windows, w.Clone())
	}
}

// condition returns the condition at the end of the last window.
func (s *server) condition() Condition {
	return ConditionOf(&s.windows[len(s.windows)-1], recentRelease)
}

// working generates tokens on the first n ranks.
func working(n int) func(p *Page) {
	return func(p *Page) {
		sum := 0.0
		for i := range p.Ranks {
			if i < n {
				p.Ranks[i].Generation.V += 10
			}
			sum += p.Ranks[i].Generation.V
		}
		p.Counters[CounterGenerationTokens] = stat.Some(sum)
	}
}

// plain returns a text with spaces that break.
func plain(text string) string { return strings.ReplaceAll(text, figure.NBSP, " ") }

func (s *server) want(t *testing.T, want Illness, reason string) {
	t.Helper()
	if c := s.condition(); c.State != want || !strings.Contains(plain(c.Reason), reason) {
		t.Errorf("at %v: condition %+v, want %q with %q", s.t, c, want, reason)
	}
}

func TestADeadEngineIsDeadUntilHealthOrAStepSaysOtherwise(t *testing.T) {
	s := newServer(1)
	s.run(10*time.Second, HealthOK, working(1))
	s.want(t, "", "")
	s.run(2*time.Second, HealthFailed, nil) // one failed reading may be another server's
	s.want(t, "", "")
	s.run(3*time.Second, HealthFailed, nil)
	s.want(t, Dead, "/health answers 503")
	s.fail(time.Second)
	s.run(60*time.Second, "", nil) // nothing known does not end it
	s.want(t, Dead, "for 1 min")
	s.run(4*time.Second, HealthOK, nil)
	s.want(t, Hung, "")
	s.run(4*time.Second, HealthOK, working(1))
	s.want(t, "", "")
}

func TestAnEngineThatStepsIsNotDead(t *testing.T) {
	s := newServer(1)
	s.run(20*time.Second, HealthFailed, working(1))
	s.want(t, "", "")
	unknown := newServer(1)
	unknown.run(8*time.Second, "", nil)
	unknown.want(t, "", "")
}

func TestAStandstillOutlastsGapsAndEndsWithAStep(t *testing.T) {
	s := newServer(1)
	s.run(10*time.Second, HealthOK, working(1))
	s.run(12*time.Second, HealthOK, nil)
	s.want(t, Hung, "no tokens generated for 10 s with 4 running and 1 waiting")
	s.fail(3 * time.Second) // a gap does not count, and does not end it
	s.run(4*time.Second, HealthOK, nil)
	s.want(t, Hung, "for 16 s")
	s.w.Discard() // rooftop was paused
	s.t += time.Minute
	s.run(4*time.Second, HealthOK, nil)
	s.want(t, Hung, "for 18 s")
	s.run(90*time.Second, HealthOK, nil)
	s.want(t, Hung, "no tokens generated for 1 min 48 s")
	s.run(3*time.Second, HealthOK, working(1))
	s.want(t, "", "")
	s.run(20*time.Second, HealthOK, nil) // the stall was no long step
	s.want(t, Hung, "for 19 s")
	s.run(3*time.Second, HealthOK, working(1))
	s.run(30*time.Second, HealthOK, nil) // what was a step may take longer the next time
	s.want(t, "", "")
	s.run(16*time.Second, HealthOK, nil) // but not several times as long: it may have been a hang, too
	s.want(t, Hung, "for 44 s")
}

func TestAHangThatEndedIsNotedOrNothingIsJudged(t *testing.T) {
	for _, c := range []struct {
		works   time.Duration
		outcome Outcome
		doubt   string
		note    bool
	}{
		{20 * time.Second, OutcomeNotEvaluable, "the engine was hung for at least 14 s, and then continued: the measurements do not represent the server", false},
		{2 * time.Minute, OutcomeHealthy, "", true},
	} {
		s := newServer(1)
		s.run(c.works/2, HealthOK, working(1))
		s.run(16*time.Second, HealthOK, nil)
		s.run(c.works/2, HealthOK, working(1))
		d := Diagnose(Request{Windows: s.windows, Duration: s.t})
		noted := slices.ContainsFunc(d.Notes, func(n string) bool {
			return strings.Contains(plain(n), "the engine was hung for at least 14 s of the run, and then continued")
		})
		if d.Outcome != c.outcome || !strings.Contains(plain(d.Doubt), c.doubt) || noted != c.note {
			t.Errorf("works for %v: %s, doubt %q, notes %q", c.works, d.Outcome, d.Doubt, d.Notes)
		}
	}
}

func TestSilenceShowsBeforeAHang(t *testing.T) {
	silence := func(s *server) string { return plain(Silence(&s.windows[len(s.windows)-1], recentRelease)) }
	for _, ranks := range []int{0, 1} { // that continue
		s := newServer(2)
		s.run(10*time.Second, HealthOK, working(2))
		s.run(4*time.Second, HealthOK, working(ranks))
		if got := silence(s); got != "" {
			t.Errorf("%d ranks work: after 4 s it says %q", ranks, got)
		}
		s.run(2*time.Second, HealthOK, working(ranks))
		if got, who := silence(s), []string{"", "rank 1: "}[ranks]; !strings.HasPrefix(got, who+"no tokens generated for ") || !strings.HasSuffix(got, ": hung if it lasts for 10 s") {
			t.Errorf("%d ranks work: after 6 s it says %q", ranks, got)
		}
		s.run(8*time.Second, HealthOK, working(ranks))
		if got := silence(s); got != "" && ranks == 0 {
			t.Errorf("%d ranks work: it is hung, and %q is said", ranks, got)
		}
		s.run(4*time.Second, HealthOK, working(2))
		if got := silence(s); got != "" {
			t.Errorf("it works, and %q is said", got)
		}
	}
}

func TestALongPromptIsProgress(t *testing.T) {
	s := newServer(1)
	s.run(4*time.Second, HealthOK, working(1))
	s.run(30*time.Second, HealthOK, func(p *Page) { p.Gauges[GaugeKVUsage].V += 0.001 })
	s.want(t, "", "")
}

func TestOneRankOfTwoHangs(t *testing.T) {
	s := newServer(2)
	s.run(10*time.Second, HealthOK, working(2))
	s.want(t, "", "")
	s.run(14*time.Second, HealthOK, working(1))
	s.want(t, PartlyHung, "rank 1 of 2, no tokens generated for 12 s with 4 running and 1 waiting")
	s.run(14*time.Second, HealthOK, nil)
	s.want(t, Hung, "")
	s.run(4*time.Second, HealthOK, working(2))
	s.want(t, "", "")
}

func TestFailingIsMoreThanChance(t *testing.T) {
	answers := func(good, bad, refused float64) func(p *Page) {
		return func(p *Page) {
			working(1)(p)
			for c, v := range map[Counter]float64{CounterHTTP2xx: good, CounterHTTP5xx: bad + refused, CounterAdmissionRejections: refused} {
				p.Counters[c] = stat.Some(p.Counters[c].V + v)
			}
		}
	}
	s := newServer(1)
	s.run(20*time.Second, HealthOK, answers(1, 0, 0))
	s.want(t, "", "")
	s.run(poll, HealthOK, answers(0, 1, 0))
	s.run(4*time.Second, HealthOK, answers(0, 0, 0))
	s.want(t, "", "") // one error among eighty
	s.run(20*time.Second, HealthOK, answers(1, 0, 1))
	s.want(t, "", "") // refusals are intended
	s.run(4*time.Second, HealthOK, answers(1, 1, 0))
	s.want(t, Failing, "were answered with a 5xx error")
	s.run(20*time.Second, HealthOK, answers(0, 0, 0))
	s.want(t, Failing, "") // no one asks: nothing shows that it ended
	s.run(30*time.Second, HealthOK, answers(1, 0, 0))
	s.want(t, "", "")

	engine := newServer(1)
	engine.run(10*time.Second, HealthOK, func(p *Page) {
		answers(1, 0, 0)(p)
		p.Counters[CounterRequestSuccess].V++
		p.Counters[CounterRequestErrors].V += 0.5
		p.Counters[CounterRequestSuccess].OK, p.Counters[CounterRequestErrors].OK = true, true
	})
	engine.want(t, Failing, "finished with an error")
}

func TestAServerThatStopsAnsweringIsDown(t *testing.T) {
	s := newServer(1)
	s.run(10*time.Second, HealthOK, working(1))
	s.fail(5 * time.Second)
	s.windows = append(s.windows, *s.w.Flush())
	c := ConditionAtEnd(s.windows, recentRelease, s.t)
	if c.State != Down || !c.Ill() || !strings.Contains(strings.ReplaceAll(c.String(), figure.NBSP, " "), "the server does not answer: it stopped answering after 10 s (timeout)") {
		t.Errorf("condition %+v: %s", c, c)
	}
	if c := ConditionAtEnd(nil, recentRelease, 0); c.Ill() {
		t.Errorf("no windows: %+v", c)
	}
}

// TestDoubtOfEachEngine hangs servers of several engines with running requests and none that waits. Each engine has
// its own reason for a running gauge that is not true of an idle server, or none.
func TestDoubtOfEachEngine(t *testing.T) {
	version := func(v string) Fact[string] { return Know(v, FromServer, "") }
	for _, c := range []struct {
		name    string
		engine  string
		version Fact[string]
		stall   time.Duration
		kv      float64
		doubt   string
	}{
		{"vLLM", "vllm", version("0.32.0"), 12 * time.Second, 0.25, ""},
		{"an old vLLM", "vllm", version("0.12.0"), 90 * time.Second, 0.25, "the running gauge of vLLM 0.12.0 can be stale"},
		{"a vLLM with an empty pool", "vllm", version("0.32.0"), 12 * time.Second, 0, "the KV pool reads empty, although a running request holds at least one block"},
		{"SGLang", "sglang", version("0.5.23"), 12 * time.Second, 0.25, ""},
		{"an SGLang with a large pool", "sglang", version("0.5.23"), 12 * time.Second, 0, ""}, // 0.4 % reads 0
		{"an old SGLang", "sglang", version("0.5.9"), 12 * time.Second, 0.25, "the running gauge of SGLang 0.5.9 can be 35\u00a0s old"},
		{"an SGLang of unknown release", "sglang", Fact[string]{}, 12 * time.Second, 0.25, "the version is unknown, and the running gauge of releases before 0.5.19 can be 35\u00a0s old"},
		{"an old SGLang for longer than its gauge is old", "sglang", version("0.5.9"), 40 * time.Second, 0, ""},
		{"llama.cpp", "llamacpp", version("b11669"), 12 * time.Second, 0.25, ""},
		{"a llama.cpp of unknown build", "llamacpp", Fact[string]{}, 12 * time.Second, 0.25, ""},
	} {
		w := Window{Polls: 9, Running: stat.Some(4), Waiting: stat.Some(0), KV: stat.Some(c.kv), Stall: c.stall}
		got := ConditionOf(&w, &Facts{Engine: Know(c.engine, FromMetrics, ""), EngineVersion: c.version})
		if got.State != Hung || got.Doubt != c.doubt || got.Ill() != (c.doubt == "") {
			t.Errorf("%s: %s, ill %v, doubt %q; want hung with %q", c.name, got.State, got.Ill(), got.Doubt, c.doubt)
		}
	}
}
