package capture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// refusals returns all reasons why two captures are not comparable.
func refusals(a, b *Record) []string {
	var out []string
	refuse := func(yes bool, format string, args ...any) {
		if yes {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	refuse(sameRun(a.Capture, b.Capture), "A and B are the same run: same start, same requests")
	refuse(a.Capture.Kind != b.Capture.Kind, "the kinds differ: %s and %s", a.Capture.Kind, b.Capture.Kind)
	s, t := &a.Setup.Target, &b.Setup.Target
	refuse(s.Model != t.Model, "the models differ: %s and %s", unnamed(s.Model), unnamed(t.Model))
	refuse(s.Simulated != t.Simulated, "one server is simulated, the other is not")
	if a.Capture.Kind == Probe && b.Capture.Kind == Probe {
		out = append(out, asked(a.Setup.Request, b.Setup.Request)...)
		refuse(apart(answerLength(a), answerLength(b)), "answers average %s and %s tokens, more than a tenth apart: use --max-tokens so that both end there", spelled(answerLength(a)), spelled(answerLength(b)))
	}
	for _, side := range [...]struct {
		name string
		*Record
	}{{"A", a}, {"B", b}} {
		out = append(out, unfit(side.name, side.Record)...)
	}
	return out
}

// sameRun reports whether two captures are of the same run. Such a comparison would show neither a
// change nor any noise.
func sameRun(a, b *Capture) bool {
	return !a.Wall.IsZero() && a.Wall.Equal(b.Wall) && a.Begin == b.Begin && a.End == b.End &&
		slices.EqualFunc(a.Requests, b.Requests, func(q, r Request) bool {
			return q.Sent == r.Sent && q.End == r.End && len(q.Chunks) == len(r.Chunks)
		})
}

// asked returns the differences between the requests of two probes.
func asked(a, b *RequestSetup) []string {
	if a == nil || b == nil {
		return []string{"the request of one side is unknown"}
	}
	var out []string
	for _, c := range [...]struct{ what, a, b string }{
		{"APIs", a.API, b.API},
		{"prompts", digest(a), digest(b)},
		{"limits of output tokens", outputLimit(a.MaxTokens), outputLimit(b.MaxTokens)},
		{"numbers of concurrent requests", strconv.Itoa(a.Concurrency), strconv.Itoa(b.Concurrency)},
	} {
		if c.a != c.b {
			out = append(out, "the "+c.what+" differ: "+c.a+" and "+c.b)
		}
	}
	return out
}

// digest returns the first 12 digits of a prompt's digest.
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
		return "an unknown model"
	}
	return s
}

// unfit returns the reasons why one side cannot be compared with anything.
func unfit(name string, s *Record) []string {
	var out []string
	if s.Capture.Ended != "" {
		out = append(out, name+" was cut short: "+s.Capture.Ended)
	}
	q := s.Summary.Requests
	if q == nil {
		if s.Capture.Kind == Probe {
			out = append(out, name+" has no request figures")
		}
		return out
	}
	if q.Whole < q.Sent {
		out = append(out, fmt.Sprintf("%d of %d requests of %s were not completed", q.Sent-q.Whole, q.Sent, name))
	}
	if q.Sent == 0 {
		out = append(out, name+" has no requests")
	}
	if t := &q.Tokens; t.foreign() {
		out = append(out, fmt.Sprintf("other clients used the server during %s: its counter grew by %s tokens, usage says %s", name, spelled(t.Counter), spelled(t.Usage)))
	}
	if running, own, ok := besideOurs(s.Capture); ok && running-own >= leastOthers {
		out = append(out, fmt.Sprintf("other clients used the server during %s: %.3g requests ran at once, %.3g of them from here", name, running, own))
	}
	if finished, _ := s.Capture.pageGrowth(func(p *PageSample) stat.Opt { return p.Requests }); finished.OK && finished.V > float64(q.Sent) {
		out = append(out, fmt.Sprintf("other clients used the server during %s: it finished %s requests, %d were sent from here", name, spelled(finished), q.Sent))
	}
	return out
}

// answerLength returns the mean output tokens of completed requests, None if unknown.
func answerLength(s *Record) stat.Opt {
	var list []float64
	if s.Summary.Requests == nil {
		return stat.None
	}
	for i := range s.Capture.Requests {
		if r := &s.Capture.Requests[i]; r.Error == "" {
			if n := s.Summary.Requests.Tokens.countOf(r); n.OK {
				list = append(list, n.V)
			}
		}
	}
	return stat.Mean(list)
}

// apart reports whether two lengths differ by more than a tenth of the shorter one.
func apart(a, b stat.Opt) bool {
	return a.OK && b.OK && max(a.V, b.V) > 1.1*min(a.V, b.V)
}

func spelled(o stat.Opt) string {
	if !o.OK {
		return "unknown"
	}
	return strconv.FormatFloat(o.V, 'f', -1, 64)
}

// differences returns the differences between two comparable captures.
func differences(a, b *Record) []compare.Difference {
	var all []compare.Difference
	add := func(what, a, b string) { all = append(all, compare.Difference{What: what, A: a, B: b}) }
	add("server", a.Setup.Target.URL, b.Setup.Target.URL)
	add("engine", a.Setup.Target.Engine, b.Setup.Target.Engine)
	add("engine version", a.Setup.Target.EngineVersion, b.Setup.Target.EngineVersion)
	add("GPUs", a.Summary.GPUNames(), b.Summary.GPUNames())
	add("CPUs", cpus(a), cpus(b))
	add("tokens counted by", countedBy(a), countedBy(b))
	add("prompt tokens from the prefix cache", cachedShare(a), cachedShare(b))
	add("requests", strconv.Itoa(len(a.Capture.Requests)), strconv.Itoa(len(b.Capture.Requests)))
	add("sampling period", a.Capture.Period.String(), b.Capture.Period.String())
	add("rooftop", a.Setup.Version, b.Setup.Version)
	return compare.Differing(all)
}

// countedBy returns how the tokens of a side were counted.
func countedBy(s *Record) string {
	if s.Summary.Requests == nil {
		return ""
	}
	return s.Summary.Requests.Tokens.From
}

// cachedShare returns the cached share of the prompts: a second run on the same server is faster
// because of it.
func cachedShare(s *Record) string {
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

// GPUNames returns the names of the GPUs, with equal names counted: "2 × NVIDIA L4, NVIDIA H100".
// It returns "" if there are none.
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

func cpus(s *Record) string {
	if s.Capture.Tree.CPUs == 0 {
		return ""
	}
	return strconv.Itoa(s.Capture.Tree.CPUs)
}
