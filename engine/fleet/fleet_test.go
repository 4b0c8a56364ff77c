package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// server returns a server of model m with running and waiting requests.
func server(name string, running, waiting float64, change ...func(*Server)) Server {
	s := Server{Name: name}
	s.Target.Model, s.Outcome = "m", engine.OutcomeHealthy
	for q, v := range map[string]float64{"running_mean": running, "waiting_mean": waiting} {
		s.Measured = append(s.Measured, engine.NamedQuantity{Name: q, Quantity: engine.Quantity{Value: stat.Some(v)}})
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func ill(s *Server) {
	s.Condition = engine.Condition{State: engine.Dead, Reason: "x"}
	s.Outcome = engine.OutcomeUnhealthy
}

func costs(price float64) func(*Server) {
	return func(s *Server) { s.Facts.CostPerHour = engine.Know(price, engine.FromFlag, "") }
}

// gains recommends a change of a kind with an output gain.
func gains(kind engine.Kind, low, mid, high float64) func(*Server) {
	return func(s *Server) {
		s.Outcome = engine.OutcomeRecommendation
		s.Recommendation = &engine.Recommendation{Fix: engine.Fix{Kind: kind, Predicted: []engine.Prediction{
			{Metric: "generation_tokens_per_s", Low: stat.Some(low), Mid: stat.Some(mid), High: stat.Some(high)},
		}}}
	}
}

func TestWaste(t *testing.T) {
	for _, c := range []struct {
		name string
		of   Server
		want Span
	}{
		{"twice the output would take half the servers", server("a", 1, 1, costs(4), gains(engine.KindFlag, 0, 1, 3)), Span{stat.Some(0), stat.Some(2), stat.Some(3)}},
		{"a loss saves nothing", server("a", 1, 1, costs(4), gains(engine.KindFlag, -0.5, 1, 3)), Span{stat.Some(0), stat.Some(2), stat.Some(3)}},
		{"no price", server("a", 1, 1, gains(engine.KindFlag, 0, 1, 3)), Span{}},
		{"no change", server("a", 1, 1, costs(4)), Span{}},
		{"no flag of the server", server("a", 1, 1, costs(4), gains(engine.KindClient, 0, 1, 3)), Span{}},
	} {
		if got := c.of.Waste(); got != c.want {
			t.Errorf("%s: saves %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestRank(t *testing.T) {
	list := []Server{
		server("healthy", 1, 0),
		server("dear-small-gain", 9, 0, costs(90), gains(engine.KindFlag, 0, 0.1, 0.2)),
		server("cheap-large-gain", 9, 0, costs(1), gains(engine.KindFlag, 1, 3, 5)),
		server("client", 1, 0, gains(engine.KindClient, 1, 9, 9)),
		server("no-price-large", 9, 0, gains(engine.KindFlag, 1, 2, 5)),
		server("no-price-small", 9, 0, gains(engine.KindFlag, 1, 1, 5)),
		server("dead", 0, 0, ill),
		Unread("unread", "503"),
		server("idle", 0, 0, func(s *Server) { s.Outcome = engine.OutcomeNoLoad }),
	}
	Rank(list)
	var got []string
	for _, s := range list {
		got = append(got, s.Name)
	}
	want := []string{"dead", "unread", "dear-small-gain", "cheap-large-gain", "no-price-large", "no-price-small", "client", "healthy", "idle"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindings(t *testing.T) {
	caching := func(on bool, from engine.Source) func(*Server) {
		return func(s *Server) { s.Facts.PrefixCaching = engine.Know(on, from, "") }
	}
	model := func(name string) func(*Server) { return func(s *Server) { s.Target.Model = name } }
	of := func(deployment string) func(*Server) { return func(s *Server) { s.Deployment = deployment } }
	down := func(name, deployment string) Server {
		s := Down(name, "refused")
		s.Deployment = deployment
		return s
	}
	for _, c := range []struct {
		name string
		list []Server
		want []Finding
	}{
		{"equal", []Server{server("a", 4, 0.2), server("b", 5, 0.1)}, nil},
		{"all queue", []Server{server("a", 4, 9), server("b", 4, 7)}, nil},
		{"one queues", []Server{server("a", 16, 31.3), server("b", 4, 0), server("c", 5, 0.2)}, []Finding{
			{UnevenLoad, "m", "a has 31.3 requests queued while b runs 4 and queues none: balance by queue length, not in turn"},
		}},
		{"of two models", []Server{server("a", 16, 31.3), server("b", 4, 0, model("n"))}, nil},
		{"one is dead", []Server{server("a", 4, 0), server("b", 0, 9, ill), server("c", 4, 0)}, []Finding{
			{OneIll, "m", "b (dead): the other 2 servers work, so a load balancer without health checks loses requests there"},
		}},
		{"one is down, and reports no model", []Server{server("a", 4, 0, of("x")), server("b", 4, 0, of("x")), down("c", "x"), server("n", 4, 0, model("n"), of("y")), down("d", "y"), down("e", "")}, []Finding{
			{OneIll, "m", "c (down): the other 2 servers work, so a load balancer without health checks loses requests there"},
			{OneIll, "n", "d (down): the other server works, so a load balancer without health checks loses requests there"},
		}},
		{"all are dead", []Server{server("a", 0, 0, ill), server("b", 0, 0, ill)}, nil},
		{"settings", []Server{server("a", 4, 0, caching(true, engine.FromMetrics)), server("b", 4, 0, caching(false, engine.FromMetrics)), server("c", 4, 0, caching(false, engine.FromDefault))}, []Finding{
			{UnevenSettings, "m", "settings differ: prefix caching off on b, on on a"},
		}},
	} {
		if diff := cmp.Diff(c.want, Findings(c.list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestGroups(t *testing.T) {
	of := func(model, deployment string) func(*Server) {
		return func(s *Server) { s.Target.Model, s.Deployment = model, deployment }
	}
	list := []Server{
		server("a", 1, 0, of("m", "x"), ill), server("b", 2, 3, of("n", "y"), costs(4), gains(engine.KindFlag, 0, 1, 3)),
		server("c", 4, 1, of("m", "y"), costs(6), gains(engine.KindFlag, 1, 1, 1)), Unread("d", "503"),
	}
	for by, want := range map[By]string{ByModel: "m: a c; n: b; : d; ", ByDeployment: "x: a; y: b c; : d; "} {
		got := ""
		for _, g := range Groups(list, by) {
			got += g.Name + ":"
			for _, s := range g.Servers {
				got += " " + s.Name
			}
			got += "; "
		}
		if got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
	if got, want := Waste(list), (Span{stat.Some(0 + 3), stat.Some(2 + 3), stat.Some(3 + 3)}); got != want {
		t.Errorf("waste %+v, want %+v", got, want)
	}
	if got := Waste(list[:1]); got != (Span{}) {
		t.Errorf("waste %+v of a server without a price", got)
	}
	if got := Sum(list, "running_mean"); got != stat.Some(2+4) {
		t.Errorf("%+v running, want 6: what ran before a server was ill does not count", got)
	}
	if got := Sum(list[:1], "running_mean"); got.OK {
		t.Errorf("%+v running on a dead server", got)
	}
	if n := Count(list, (*Server).Changes); n != 2 {
		t.Errorf("%d servers to change, want 2", n)
	}
}
