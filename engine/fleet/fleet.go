// Package fleet compares the diagnoses of many servers (which to change first, what is uneven among servers of
// one model) and builds their page. It is pure, and reads no server: cmd/internal/fleetscan does.
package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Server is one server with its diagnosis.
type Server struct {
	Name string
	// Deployment is what the server is part of: a job of Prometheus, a workload of Kubernetes; "" if unknown.
	Deployment string
	// Unread is why the server could not be read, "" if it was. The diagnosis is empty then, and not evaluable.
	Unread string
	// Command is the command line that shows the server alone, "" if there is none.
	Command string
	engine.Diagnosis
}

// Unread returns a server that could not be read.
func Unread(name, reason string) Server {
	s := Server{Name: name, Unread: reason}
	s.Outcome, s.Doubt = engine.OutcomeNotEvaluable, reason
	return s
}

// Down returns a server that does not answer.
func Down(name, reason string) Server {
	s := Server{Name: name}
	s.Outcome, s.Condition = engine.OutcomeUnhealthy, engine.Condition{State: engine.Down, Reason: reason}
	return s
}

// Span is an estimate with its 80 % range; each part may be absent.
type Span struct {
	Low  stat.Opt `json:"low"`
	Mid  stat.Opt `json:"mid"`
	High stat.Opt `json:"high"`
}

// Gain returns the predicted relative change of output by the recommendation, absent without one.
func (s *Server) Gain() Span {
	if s.Recommendation != nil {
		for _, p := range s.Recommendation.Predicted {
			if p.Metric == "generation_tokens_per_s" {
				return Span{p.Low, p.Mid, p.High}
			}
		}
	}
	return Span{}
}

// Waste returns the share of the server's price that the recommended change is predicted to save for
// the same output, in USD per hour: price · (1 − 1/(1 + gain)). It is absent without a price or a gain,
// and if the remedy is not a flag of the server.
func (s *Server) Waste() Span {
	price := s.Facts.CostPerHour
	if !price.Known || !s.Changes() {
		return Span{}
	}
	saved := func(gain stat.Opt) stat.Opt {
		if !gain.Finite().OK || gain.V <= -1 {
			return stat.None
		}
		return stat.Some(price.Value * max(0, 1-1/(1+gain.V)))
	}
	g := s.Gain()
	return Span{saved(g.Low), saved(g.Mid), saved(g.High)}
}

// Changes reports whether a flag of the server should be changed.
func (s *Server) Changes() bool {
	return s.Recommendation != nil && s.Recommendation.Kind == engine.KindFlag
}

// urgency orders the states of servers: the ill first, then the possibly ill, then those with a change to
// make.
func (s *Server) urgency() int {
	switch {
	case s.Condition.Ill():
		return 0
	case s.Condition.State != "", s.Unread != "":
		return 1
	case s.Changes():
		return 2
	case s.Recommendation != nil:
		return 3
	case s.Outcome == engine.OutcomeNotEvaluable, s.Overload != "":
		return 4
	case s.Outcome == engine.OutcomeHealthy:
		return 5
	}
	return 6
}

// Rank sorts servers by what to look at first: ill servers, then those that could not be read, then those whose
// change saves most money, then those whose change brings most output. Each change is one restart.
func Rank(list []Server) {
	slices.SortStableFunc(list, func(a, b Server) int {
		return cmp.Or(cmp.Compare(a.urgency(), b.urgency()),
			cmp.Compare(b.Waste().Mid.Or(0), a.Waste().Mid.Or(0)),
			cmp.Compare(b.Gain().Mid.Or(0), a.Gain().Mid.Or(0)),
			cmp.Compare(a.Name, b.Name))
	})
}

// FindingID names a problem of a group of servers as a whole.
type FindingID string

// Findings of a group.
const (
	OneIll         FindingID = "one-ill"         // some servers are ill beside others that work
	UnevenLoad     FindingID = "uneven-load"     // requests wait on some while others have room
	UnevenSettings FindingID = "uneven-settings" // servers of one model are started differently
)

// Finding is a problem of a group of servers of one model as a whole.
type Finding struct {
	ID    FindingID `json:"id"`
	Model string    `json:"model"`
	Text  string    `json:"text"` // a sentence without a full stop
}

// Limits of uneven load: a server queues with at least this many requests on average, and one has room
// with fewer than this.
const (
	queues = 1.0
	room   = 0.5
)

// Findings returns what is uneven among the servers of each model, in the order of the models.
func Findings(list []Server) []Finding {
	models := map[string]string{} // of a deployment, "" if it has several
	for i := range list {
		if s := &list[i]; s.Deployment != "" && s.Target.Model != "" {
			if other, found := models[s.Deployment]; found && other != s.Target.Model {
				models[s.Deployment] = ""
			} else {
				models[s.Deployment] = s.Target.Model
			}
		}
	}
	groups := map[string][]*Server{}
	for i := range list {
		s := &list[i]
		model := s.Target.Model
		if model == "" && s.Condition.Ill() { // one that is down reports none
			model = models[s.Deployment]
		}
		if model != "" {
			groups[model] = append(groups[model], s)
		}
	}
	var out []Finding
	for _, model := range slices.Sorted(maps.Keys(groups)) {
		group := groups[model]
		for _, f := range []Finding{oneIll(group), unevenLoad(group), unevenSettings(group)} {
			if f.ID != "" && len(group) > 1 {
				f.Model = model
				out = append(out, f)
			}
		}
	}
	return out
}

func oneIll(group []*Server) Finding {
	var ill []string
	for _, s := range group {
		if s.Condition.Ill() {
			ill = append(ill, s.Name+" ("+s.Condition.State.Word()+")")
		}
	}
	if len(ill) == 0 || len(ill) == len(group) {
		return Finding{}
	}
	others := "the other server works"
	if n := len(group) - len(ill); n > 1 {
		others = "the other " + figure.Counted(n, "server") + " work"
	}
	return Finding{ID: OneIll, Text: names(ill) + ": " + others + ", so a load balancer without health checks loses requests there"}
}

func unevenLoad(group []*Server) Finding {
	var full, free *Server
	for _, s := range group {
		waiting, running := s.Quantity("waiting_mean").Value, s.Quantity("running_mean").Value
		switch {
		case s.Condition.State != "" || !waiting.OK || !running.OK:
		case waiting.V >= queues && (full == nil || waiting.V > full.Quantity("waiting_mean").Value.V):
			full = s
		case waiting.V < room && (free == nil || running.V < free.Quantity("running_mean").Value.V):
			free = s
		}
	}
	if full == nil || free == nil {
		return Finding{}
	}
	return Finding{ID: UnevenLoad, Text: fmt.Sprintf("%s has %s requests queued while %s runs %s and queues none: balance by queue length, not in turn",
		full.Name, figure.Show(full.Quantity("waiting_mean").Value, ""), free.Name, figure.Show(free.Quantity("running_mean").Value, ""))}
}

// settings are the facts of which servers of one model should have one value, as far as the servers
// themselves report them: defaults and inferred values are not settings.
func settings(f *engine.Facts) map[string]string {
	out := map[string]string{}
	add(out, "release", f.EngineVersion, func(v string) string { return v })
	add(out, "prefix caching", f.PrefixCaching, func(on bool) string { return map[bool]string{true: "on", false: "off"}[on] })
	add(out, "slots", f.MaxNumSeqs, strconv.Itoa)
	add(out, "KV blocks set by hand", f.NumGPUBlocksOverride, strconv.Itoa)
	add(out, "share of GPU memory", f.GPUMemoryUtilization, figure.PercentSign)
	return out
}

func add[T any](out map[string]string, name string, f engine.Fact[T], text func(T) string) {
	if f.Known && f.Source != engine.FromDefault && f.Source != engine.FromDerived {
		out[name] = text(f.Value)
	}
}

func unevenSettings(group []*Server) Finding {
	values := map[string]map[string][]string{} // setting, value, servers
	for _, s := range group {
		for name, v := range settings(&s.Facts) {
			if values[name] == nil {
				values[name] = map[string][]string{}
			}
			values[name][v] = append(values[name][v], s.Name)
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) < 2 {
			continue
		}
		var each []string
		for _, v := range slices.Sorted(maps.Keys(values[name])) {
			each = append(each, v+" on "+names(values[name][v]))
		}
		parts = append(parts, name+" "+strings.Join(each, ", "))
	}
	if len(parts) == 0 {
		return Finding{}
	}
	return Finding{ID: UnevenSettings, Text: "settings differ: " + strings.Join(parts, "; ")}
}

// names lists servers, the first three by name.
func names(list []string) string {
	const most = 3
	if len(list) > most {
		return strings.Join(list[:most], ", ") + " and " + fmt.Sprintf("%d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}
