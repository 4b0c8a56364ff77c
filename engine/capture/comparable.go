package capture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// refusals says why two captures are not comparable, every reason at once.
func refusals(a, b *Side) []string {
	var out []string
	refuse := func(yes bool, format string, args ...any) {
		if yes {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	refuse(sameRun(a.Capture, b.Capture), "A and B are one run: they share their start and their requests")
	refuse(a.Capture.Kind != b.Capture.Kind, "the kinds differ: %s and %s", a.Capture.Kind, b.Capture.Kind)
	s, t := &a.Setup.Target, &b.Setup.Target
	refuse(s.Model != t.Model, "the models differ: %s and %s", unnamed(s.Model), unnamed(t.Model))
	refuse(s.Simulated != t.Simulated, "one server is simulated, the other is not")
	if a.Capture.Kind == Probe && b.Capture.Kind == Probe {
		out = append(out, asked(a.Setup.Request, b.Setup.Request)...)
		refuse(apart(answerLength(a), answerLength(b)), "answers have %s and %s tokens on average, more than a tenth apart: give --max-tokens so that both end there", spelled(answerLength(a)), spelled(answerLength(b)))
	}
	for _, side := range [...]struct {
		name string
		*Side
	}{{"A", a}, {"B", b}} {
		out = append(out, unfit(side.name, side.Side)...)
	}
	return out
}

// sameRun tells whether two captures are of one run: a run held against itself has no
// change, and no noise of its own either.
func sameRun(a, b *Capture) bool {
	return !a.Wall.IsZero() && a.Wall.Equal(b.Wall) && a.Begin == b.Begin && a.End == b.End &&
		slices.EqualFunc(a.Requests, b.Requests, func(q, r Request) bool {
			return q.Sent == r.Sent && q.End == r.End && len(q.Chunks) == len(r.Chunks)
		})
}

// asked says in what the requests of two probes differ.
func asked(a, b *RequestSetup) []string {
	if a == nil || b == nil {
		return []string{"what one side asked for is not known"}
	}
	var out []string
	for _, c := range [...]struct{ what, a, b string }{
		{"APIs", a.API, b.API},
		{"prompts", digest(a), digest(b)},
		{"limits of output tokens", outputLimit(a.MaxTokens), outputLimit(b.MaxTokens)},
		{"numbers of requests at a time", strconv.Itoa(a.Concurrency), strconv.Itoa(b.Concurrency)},
	} {
		if c.a != c.b {
			out = append(out, "the "+c.what+" differ: "+c.a+" and "+c.b)
		}
	}
	return out
}

// digest is enough of a prompt's digest to tell it from others.
func digest(r *RequestSetup) string {
	if r.PromptSHA256 == "" {
		return "unknown"
	}
	return "SHA-256 " + r.PromptSHA256[:min(12, len(r.PromptSHA256))]
}

func outputLimit(n int) string {
	if n == 0 {
		return "the server's own"
	}
	return strconv.Itoa(n)
}

func unnamed(s string) string {
	if s == "" {
		return "one that is not known"
	}
	return s
}

// unfit says what keeps one side out of any comparison.
func unfit(name string, s *Side) []string {
	var out []string
	if s.Capture.Ended != "" {
		out = append(out, name+" was cut short: "+s.Capture.Ended)
	}
	q := s.Summary.Requests
	if q == nil {
		if s.Capture.Kind == Probe {
			out = append(out, name+" has no figures of its requests")
		}
		return out
	}
	if q.Whole < q.Sent {
		out = append(out, fmt.Sprintf("%d of %d requests of %s were not answered to their end", q.Sent-q.Whole, q.Sent, name))
	}
	if q.Sent == 0 {
		out = append(out, name+" has no request")
	}
	if t := &q.Tokens; t.foreign() {
		out = append(out, fmt.Sprintf("other clients were on the server during %s: its counter grew by %s tokens, usage says %s", name, spelled(t.Counter), spelled(t.Usage)))
	}
	if running, own, ok := s.Capture.besideOurs(); ok && running-own >= leastOthers {
		out = append(out, fmt.Sprintf("other clients were on the server during %s: %.3g requests ran at once, %.3g of them from here", name, running, own))
	}
	if finished, _ := s.Capture.pageGrowth(func(p *PageSample) stat.Opt { return p.Requests }); finished.OK && finished.V > float64(q.Sent) {
		out = append(out, fmt.Sprintf("other clients were on the server during %s: it finished %s requests, %d were sent from here", name, spelled(finished), q.Sent))
	}
	return out
}

// answerLength is the mean output of a request that was answered to the end.
func answerLength(s *Side) stat.Opt {
	var list []float64
	if s.Summary.Requests == nil {
		return stat.None
	}
	for i := range s.Capture.Requests {
		if r := &s.Capture.Requests[i]; r.Error == "" {
			if n := s.Summary.Requests.Tokens.of(r); n.OK {
				list = append(list, n.V)
			}
		}
	}
	return meanOf(list)
}

// apart says that two lengths differ by more than a tenth of the shorter one.
func apart(a, b stat.Opt) bool {
	return a.OK && b.OK && max(a.V, b.V) > 1.1*min(a.V, b.V)
}

func spelled(o stat.Opt) string {
	if !o.OK {
		return "unknown"
	}
	return strconv.FormatFloat(o.V, 'f', -1, 64)
}

// differences are what two comparable captures do not share.
func differences(a, b *Side) []Difference {
	all := []Difference{
		{"server", a.Setup.Target.URL, b.Setup.Target.URL},
		{"engine", a.Setup.Target.Engine, b.Setup.Target.Engine},
		{"engine version", a.Setup.Target.EngineVersion, b.Setup.Target.EngineVersion},
		{"GPUs", a.Summary.GPUNames(), b.Summary.GPUNames()},
		{"CPUs", cpus(a), cpus(b)},
		{"tokens counted by", countedBy(a), countedBy(b)},
		{"prompt tokens from the prefix cache", cachedShare(a), cachedShare(b)},
		{"requests", strconv.Itoa(len(a.Capture.Requests)), strconv.Itoa(len(b.Capture.Requests))},
		{"sampling period", a.Capture.Period.String(), b.Capture.Period.String()},
		{"rooftop", a.Setup.Version, b.Setup.Version},
	}
	return slices.DeleteFunc(all, func(d Difference) bool { return d.A == d.B })
}

// countedBy says what the tokens of a side are those of.
func countedBy(s *Side) string {
	if s.Summary.Requests == nil {
		return ""
	}
	return s.Summary.Requests.Tokens.From
}

// cachedShare is how much of the prompts the server had seen before: with it a second
// run on one server is faster than the first.
func cachedShare(s *Side) string {
	q := s.Summary.Requests
	if q == nil {
		return ""
	}
	share := q.CachedTokens.Div(q.PromptTokens)
	if !share.OK {
		return ""
	}
	return strconv.FormatFloat(100*share.V, 'f', 0, 64) + " %"
}

// GPUNames names the GPUs, those of a name together: "2 × NVIDIA L4, NVIDIA H100"; ""
// where there are none.
func (s *Summary) GPUNames() string {
	var names []string
	n := map[string]int{}
	for i := range s.GPUs {
		if n[s.GPUs[i].Name]++; n[s.GPUs[i].Name] == 1 {
			names = append(names, s.GPUs[i].Name)
		}
	}
	for i, name := range names {
		names[i] = cmp.Or(name, "unnamed")
		if n[name] > 1 {
			names[i] = strconv.Itoa(n[name]) + " × " + names[i]
		}
	}
	return strings.Join(names, ", ")
}

func cpus(s *Side) string {
	if s.Capture.Tree.CPUs == 0 {
		return ""
	}
	return strconv.Itoa(s.Capture.Tree.CPUs)
}
