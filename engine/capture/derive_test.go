package capture

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// streams returns a run of n concurrent requests, each with the first chunk at ttft and one every
// gap after it.
func streams(n, tokens int, ttft, gap time.Duration) *Capture {
	c := &Capture{Kind: Probe, Begin: time.Second}
	for i := range n {
		r := Request{ID: i, Lane: i, Sent: c.Begin, PromptTokens: stat.Some(100), OutputTokens: stat.Some(float64(tokens))}
		at := c.Begin + ttft
		for range tokens {
			r.Chunks = append(r.Chunks, Chunk{At: at, Bytes: 4})
			at += gap
		}
		r.End = at - gap
		c.End = r.End
		c.Requests = append(c.Requests, r)
	}
	return c
}

// counted returns the tokens of a run's requests.
func counted(c *Capture) Tokens {
	var t Tokens
	for _, r := range c.Requests {
		t.Chunks += len(r.Chunks)
		t.Used = t.Used.Plus(r.OutputTokens)
	}
	return t
}

func factsOf(t *testing.T, gpu, model string, cost float64) *engine.Facts {
	t.Helper()
	in := facts.Inputs{Flags: facts.Given{GPU: gpu, Model: model, TensorParallel: 1}, Catalog: catalog.Default()}
	if cost > 0 {
		in.Flags.CostPerHour = stat.Some(cost)
	}
	f := facts.Resolve(in)
	return &f
}

func within(got stat.Opt, want, within float64) bool {
	return got.OK && math.Abs(got.V-want) <= within*math.Abs(want)
}

func TestOperatingPoint(t *testing.T) {
	page := func(at time.Duration, running float64) PageSample {
		return PageSample{At: at, Running: stat.Some(running)}
	}
	one := streams(1, 11, 100*time.Millisecond, 10*time.Millisecond)
	four := streams(4, 11, 100*time.Millisecond, 10*time.Millisecond)
	apart := streams(2, 11, 100*time.Millisecond, 10*time.Millisecond)
	for i := range apart.Requests[1].Chunks {
		apart.Requests[1].Chunks[i].At += time.Second
	}
	shared := streams(1, 101, 100*time.Millisecond, 10*time.Millisecond)
	for i := range 4 {
		shared.Pages = append(shared.Pages, page(shared.Begin+time.Duration(i+1)*200*time.Millisecond, 8))
	}
	watched := &Capture{Kind: Observation, End: 10 * time.Second}
	for i := range 4 {
		watched.Pages = append(watched.Pages, page(time.Duration(i+1)*time.Second, float64(i%2)*6)) // idle at half of the looks
	}
	watched.Pages = append(watched.Pages, page(6*time.Second, 6))
	speculative := streams(1, 11, 100*time.Millisecond, 10*time.Millisecond)
	speculative.Requests[0].OutputTokens = stat.Some(33)
	tests := []struct {
		name              string
		c                 *Capture
		batch, rate, hold float64
		from              string
	}{
		{"one stream", one, 1, 100, 105.5, "own requests"},
		{"four at once", four, 4, 400, 105.5, "own requests"},
		{"two after one another", apart, 1, 100, 105.5, "own requests"},
		{"others on the server, who decode as fast", shared, 8, 800, 150.5, "the server's gauge"},
		{"several tokens a chunk", speculative, 1, 300, 116.5, "own requests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.c.operating(counted(tt.c))
			if !within(o.Batch, tt.batch, 1e-9) || !within(o.Rate, tt.rate, 1e-9) || !within(o.Context, tt.hold, 1e-9) || o.BatchFrom != tt.from {
				t.Errorf("batch %v (%s), rate %v, context %v; want %v (%s), %v, %v", o.Batch, o.BatchFrom, o.Rate, o.Context, tt.batch, tt.from, tt.rate, tt.hold)
			}
		})
	}
	t.Run("observation", func(t *testing.T) {
		o := watched.operating(Tokens{Counter: stat.Some(500), Used: stat.Some(500)})
		if !within(o.Batch, 6, 1e-9) || !within(o.Rate, 500.0/6, 1e-9) {
			t.Errorf("batch %v, rate %v; want both over the looks with load, three of five: 6 and 500 in 6 s", o.Batch, o.Rate)
		}
	})
	t.Run("observation of a server at rest", func(t *testing.T) {
		c := &Capture{Kind: Observation, End: 10 * time.Second}
		for i := range 9 {
			c.Pages = append(c.Pages, page(time.Duration(i+1)*time.Second, 0))
		}
		if o := c.operating(Tokens{Used: stat.Some(0)}); o.Batch.OK || !strings.Contains(o.Reason, "ran at 0 of 9 samples") {
			t.Errorf("%+v; the server says that nothing runs", o)
		}
	})
	t.Run("observation between two looks", func(t *testing.T) {
		c := &Capture{Kind: Observation, End: 700 * time.Millisecond, Pages: []PageSample{page(-time.Millisecond, 4), page(701*time.Millisecond, 4)}}
		if o := c.operating(Tokens{Used: stat.Some(9)}); o.Batch.OK || !strings.Contains(o.Reason, "too short to sample") {
			t.Errorf("%+v; the server says what runs, and no look is in the window", o)
		}
	})
	t.Run("nothing known", func(t *testing.T) {
		o := (&Capture{Kind: Observation}).operating(Tokens{})
		if o.Batch.OK || o.Rate.OK || o.Reason == "" {
			t.Errorf("%+v; want no batch, no rate and a reason", o)
		}
	})
}

// powered returns a GPU with constant power.
func powered(watts, limit float64) []GPUUsage {
	var g GPUUsage
	g.Fields[engine.GPUPowerW] = Row{Mean: stat.Some(watts), Samples: 10}
	if limit > 0 {
		g.Fields[engine.GPUPowerLimitW] = Row{Mean: stat.Some(limit), Samples: 10}
	}
	return []GPUUsage{g}
}

func TestDerived(t *testing.T) {
	c := streams(1, 231, 0, time.Second/230) // 1 s for 231 tokens
	tokens := counted(c)
	seconds := c.Span().Seconds()
	d := c.derive(tokens, powered(170, 700), Energy{Joules: stat.Some(170 * seconds), How: "energy counter"}, Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 3.29)})
	rate := 231 / seconds
	for name, want := range map[string]float64{
		JoulesPerToken:    170 / rate,
		MillijoulesPer:    170 / rate * 1000,
		TokensPerJoule:    rate / 170,
		DollarsPerMillion: 3.29 / 3600 / rate * 1e6,
		PowerShare:        170.0 / 700,
		DecodeBatch:       1,
		DecodeRate:        230,
	} {
		if got := d.value(name); !within(got, want, 1e-6) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	ideal, achievable := d.value(CeilingIdeal), d.value(CeilingAchievable)
	// 15.2 GB of 16-bit weights at 3,350 GB/s: at most 220 steps a second.
	if !ideal.OK || !achievable.OK || achievable.V >= ideal.V || ideal.V < 190 || ideal.V > 250 {
		t.Errorf("ceiling %v ideal, %v achievable; want about 220 and less", ideal, achievable)
	}
	if share := d.value(BandwidthShare); !within(share, 230/ideal.V, 0.05) {
		t.Errorf("bandwidth share %v; a memory bound step at %v of %v uses about that share", share, 230, ideal.V)
	}
}

// TestDerivedAbsent checks that nothing is guessed if an input is missing.
func TestDerivedAbsent(t *testing.T) {
	c := streams(1, 11, 0, 10*time.Millisecond)
	c.GPUs.Why = "the server runs on a CPU"
	d := c.derive(Tokens{}, nil, Energy{Reason: "no GPU was read"}, Machine{Facts: factsOf(t, "", "", 0)})
	for _, q := range d.list {
		switch q.Name {
		case DecodeBatch, DecodeRate:
			continue
		}
		if q.Value.OK || q.Reason == "" {
			t.Errorf("%s = %v with the reason %q; want none with a reason", q.Name, q.Value, q.Reason)
		}
	}
	if s := d.sizing(nil); s.Verdict != UnknownSize || s.Reason == "" {
		t.Errorf("sizing %+v without a GPU", s)
	}
}

func TestSizing(t *testing.T) {
	cards := catalog.Default().GPUs()
	small := streams(1, 231, 0, time.Second/230)
	tests := []struct {
		name, gpu, model string
		watts, limit     float64
		verdict          string
		names            string // one of the smaller cards, "" none
	}{
		{"an H100 that loafs", "H100 SXM", "Qwen2.5-7B-Instruct-AWQ", 170, 700, OverProvisioned, "L4"},
		{"an H100 at 63 % of its power", "H100 SXM", "Qwen2.5-7B-Instruct-AWQ", 439, 700, Earned, "L4"},
		{"an L4 at half of its power", "L4", "Qwen2.5-0.5B-Instruct-AWQ", 38, 72, PartlyUsed, ""},
		{"a model that no one knows", "H100 SXM", "", 170, 700, OverProvisioned, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := small.derive(counted(small), powered(tt.watts, tt.limit), Energy{Joules: stat.Some(100), How: "energy counter"}, Machine{Facts: factsOf(t, tt.gpu, tt.model, 0)})
			s := d.sizing(cards)
			if s.Verdict != tt.verdict || s.Text == "" {
				t.Errorf("verdict %q (%s), want %q", s.Verdict, s.Text, tt.verdict)
			}
			// No card is called the right size above others whose tokens are cheaper.
			if fits := strings.Contains(s.Text, "its size fits"); fits && len(s.Smaller) > 0 || tt.verdict == Earned && !strings.Contains(s.Text, "for a million tokens on 1 x ") {
				t.Errorf("%q beside %d cheaper cards", s.Text, len(s.Smaller))
			}
			var named []string
			for _, card := range s.Smaller {
				named = append(named, card.Name)
				if !(card.DollarsPerH.V < 3.45) || card.NeedBytes > card.VRAMBytes*usable || card.TokensPerS.V < card.Low.V || card.TokensPerS.V > card.High.V {
					t.Errorf("%+v is not cheaper, does not fit, or lies outside of its own range", card)
				}
			}
			if got := strings.Join(named, ", "); !strings.Contains(got, tt.names) {
				t.Errorf("smaller cards %q (%s), want one of %q", got, s.Reason, tt.names)
			}
			if tt.names == "" && s.Reason == "" {
				t.Error("no smaller card and no reason")
			}
		})
	}
}

// quantity returns a derived quantity by its name.
func (d *derivation) quantity(name string) engine.NamedQuantity {
	for _, q := range d.list {
		if q.Name == name {
			return q
		}
	}
	return engine.NamedQuantity{}
}

// TestOthersOnTheServer checks that the batch, energy and cost are those of all clients.
func TestOthersOnTheServer(t *testing.T) {
	m := Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 3.29)}
	energy := Energy{Joules: stat.Some(500), How: fromCounter}
	alone := streams(1, 201, 0, 10*time.Millisecond)
	shared := streams(1, 201, 0, 10*time.Millisecond)
	for i := range 10 {
		at := shared.Begin + time.Duration(i)*shared.Span()/9
		shared.Pages = append(shared.Pages, PageSample{At: at, Running: stat.Some(8), GenerationTokens: stat.Some(5000 + 800*(at-shared.Begin).Seconds())})
	}
	a := alone.derive(counted(alone), powered(300, 700), energy, m)
	tokens := counted(shared)
	tokens.Counter = stat.Some(1600)
	s := shared.derive(tokens, powered(300, 700), energy, m)
	// A step reads the same weights for one sequence as for eight, and takes as long.
	if one, eight := a.value(BandwidthShare), s.value(BandwidthShare); !within(eight, one.V, 0.05) || eight.V < one.V {
		t.Errorf("bandwidth share %v with others, %v alone: steps are as many", eight, one)
	}
	if got := s.value(CeilingEfficiency); !within(got, a.value(CeilingEfficiency).V, 0.05) {
		t.Errorf("efficiency %v with others, %v alone: each sequence decodes as fast", got, a.value(CeilingEfficiency))
	}
	q := s.quantity(JoulesPerToken)
	if !within(q.Value, 500.0/1600, 0.01) || !strings.Contains(q.Note, "all clients") {
		t.Errorf("%v J a token (%s), want those of all clients", q.Value, q.Note)
	}
	if got := s.value(DollarsPerMillion); !within(got, 3.29/3600/800*1e6, 0.01) {
		t.Errorf("$%v for a million tokens, want those of all clients", got)
	}
	tokens.Counter = stat.None
	s = shared.derive(tokens, powered(300, 700), energy, m)
	if q := s.quantity(JoulesPerToken); q.Value.OK || !strings.Contains(q.Reason, "other clients") {
		t.Errorf("%v J a token (%s), though the others' are not counted", q.Value, q.Reason)
	}
}

// TestReplicas checks that data-parallel replicas share the requests, and each reads its own
// weights.
func TestReplicas(t *testing.T) {
	one, two := streams(8, 101, 0, 10*time.Millisecond), streams(16, 101, 0, 10*time.Millisecond)
	m := Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 3.45), Cards: catalog.Default().GPUs()}
	single := one.derive(counted(one), powered(170, 700), Energy{}, m)
	both := *m.Facts
	both.Ranks, both.CostPerHour.Value = 2, 6.9
	m.Facts = &both
	double := two.derive(counted(two), append(powered(170, 700), powered(170, 700)...), Energy{}, m)
	for name, times := range map[string]float64{BandwidthShare: 1, CeilingIdeal: 2, CeilingAchievable: 2, CeilingEfficiency: 1} {
		if got, want := double.value(name), single.value(name).V*times; !within(got, want, 1e-9) {
			t.Errorf("%s = %v with two replicas, want %v", name, got, want)
		}
	}
	a, b := single.sizing(m.Cards), double.sizing(m.Cards)
	if len(a.Smaller) == 0 || len(a.Smaller) != len(b.Smaller) {
		t.Fatalf("smaller cards %v and with two replicas %v", a.Smaller, b.Smaller)
	}
	for i := range a.Smaller {
		x, y := a.Smaller[i], b.Smaller[i]
		if y.GPUs != 2*x.GPUs || y.NeedBytes != 2*x.NeedBytes || !within(y.TokensPerS, 2*x.TokensPerS.V, 1e-9) || !within(y.DollarsPerMTk, x.DollarsPerMTk.V, 1e-9) {
			t.Errorf("%+v, with two replicas %+v", x, y)
		}
	}
}

// TestSizeIsNotJudged checks that idle hardware is not called too large.
func TestSizeIsNotJudged(t *testing.T) {
	seen := func(power, util float64) GPUUsage {
		g := powered(power, 700)[0]
		g.Fields[engine.GPUUtil] = Row{Mean: stat.Some(util), Peak: stat.Some(util), Samples: 10}
		return g
	}
	served := streams(4, 101, 0, 10*time.Millisecond)
	rest := &Capture{Kind: Observation, End: 10 * time.Second}
	failed := &Capture{Kind: Probe, End: 2 * time.Second, Requests: []Request{{End: 2 * time.Second, Error: "503"}}}
	for name, tt := range map[string]struct {
		c    *Capture
		gpus []GPUUsage
		why  string
	}{
		"a server at rest":              {rest, []GPUUsage{seen(80, 0)}, "idle server"},
		"requests that were refused":    {failed, []GPUUsage{seen(80, 0)}, "no output token"},
		"a server that uses the CPU":    {served, []GPUUsage{seen(80, 0)}, "1 of 1 GPUs were idle"},
		"GPUs that are not the servers": {served, []GPUUsage{seen(350, 0.9), seen(80, 0)}, "1 of 2 GPUs were idle"},
	} {
		d := tt.c.derive(counted(tt.c), tt.gpus, Energy{}, Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 0)})
		if s := d.sizing(catalog.Default().GPUs()); s.Verdict != UnknownSize || !strings.Contains(s.Reason, tt.why) || len(s.Smaller) > 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestSizeOfWhatWasGiven checks that a GPU given by flags is not used as the name of a detected
// one, nor as the size of a server on a CPU.
func TestSizeOfWhatWasGiven(t *testing.T) {
	c := streams(4, 101, 0, 10*time.Millisecond)
	m := Machine{Facts: factsOf(t, "L4", "Qwen2.5-0.5B-Instruct", 0)}
	read := powered(170, 700)
	read[0].Name = "NVIDIA H100 80GB HBM3"
	if s := c.derive(counted(c), read, Energy{}, m).sizing(nil); s.Verdict != OverProvisioned || !strings.HasPrefix(s.Text, "NVIDIA H100 80GB HBM3 used") {
		t.Errorf("%s: %s", s.Verdict, s.Text)
	}
	m.Facts.Device = engine.Know("cpu", engine.FromServer, "")
	if s := c.derive(counted(c), nil, Energy{}, m).sizing(nil); s.Verdict != UnknownSize || !strings.Contains(s.Reason, "CPU") {
		t.Errorf("%s: %s %s", s.Verdict, s.Text, s.Reason)
	}
}

// TestSizeWithoutPower checks that a step bound by compute is not called idle because it reads
// little.
func TestSizeWithoutPower(t *testing.T) {
	c := streams(1000, 101, 0, 24*time.Millisecond)
	m := Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 0)}
	short := GPUUsage{}
	d := c.derive(counted(c), []GPUUsage{short}, Energy{}, m)
	efficiency, bandwidth := d.value(CeilingEfficiency), d.value(BandwidthShare)
	if !(bandwidth.V < loafing) || !(efficiency.V > earning) {
		t.Fatalf("bandwidth share %v, efficiency %v: not what is to be tested", bandwidth, efficiency)
	}
	if s := d.sizing(nil); s.Verdict != Earned || !strings.Contains(s.Text, "of the ceiling") {
		t.Errorf("%s: %s", s.Verdict, s.Text)
	}
}

// TestBursts checks that output delivered in one burst, by a buffering proxy, is not used for a
// bandwidth share.
func TestBursts(t *testing.T) {
	c := streams(1, 201, time.Second, 10*time.Microsecond)
	d := c.derive(counted(c), nil, Energy{}, Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 0)})
	if q := d.quantity(BandwidthShare); q.Value.OK || !strings.Contains(q.Reason, "were delayed") {
		t.Errorf("share %v (%s)", q.Value, q.Reason)
	}
	if s := d.sizing(nil); s.Verdict != UnknownSize {
		t.Errorf("%s: %s", s.Verdict, s.Text)
	}
}
