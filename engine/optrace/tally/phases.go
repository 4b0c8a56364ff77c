package tally

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// SamePrompt is the longest pause between two calls that compute one prompt batch by batch,
// with no sampling between them. Batches of llama.cpp's server are microseconds apart; the
// limit leaves room for a thread that lost its CPU.
const SamePrompt = 20 * time.Millisecond

// SameAnswer is the longest pause after a decode within one answer, as a multiple of the
// decode. A longer one is a wait for a request: a prompt with a single token that is not in the
// cache looks like the next token. Pauses up to [SamePrompt] always count.
const SameAnswer = 10

// phaseSums sums up a phase.
type phaseSums struct {
	calls     int
	tokens    int64
	timed     int64 // tokens of calls whose time is known
	call      stat.Durations
	timedFor  time.Duration
	graph     stat.Durations
	between   stat.Durations
	first     stat.Durations
	paced     paceSums
	operators time.Duration
	cost      costSum
	// computed is the number of tokens of the calls whose operators were seen. lastCall is the
	// index of the last such call plus one, 0 if there is none.
	computed int64
	costed   time.Duration // time of graphs whose operators have a known cost
	lastCall int
	// callsOfGraphs and graphsOfCalls are the times of calls and of their graphs, if both are
	// known.
	callsOfGraphs, graphsOfCalls time.Duration
}

// paceSums sums up decodes from the start of each to the start of the next.
type paceSums struct {
	tokens   int64
	time     time.Duration
	followed int64 // decodes that were followed by one of the same answer
	waits    int64 // decodes that were followed by a wait for a request
	overlaps int64 // decodes that had not ended when the next one began
}

// add adds a decode with the pause after it.
func (s *paceSums) add(tokens int, took, pause time.Duration) {
	switch {
	case pause < 0:
		s.overlaps++
	case pause > max(SamePrompt, SameAnswer*took):
		s.waits++
	case tokens > 0 && took > 0:
		s.followed++
		s.tokens += int64(tokens)
		s.time = stat.AddSaturating(s.time, stat.AddSaturating(took, pause))
	}
}

// rate returns the rate of answers in tokens per second. It is absent if decodes of several
// contexts overlap, since the time between them is unknown, and if there are as many waits as
// decodes, since they cannot be distinguished.
func (s *paceSums) rate() stat.Opt {
	const few = 20 // one in 20 decodes may be of another context
	if s.followed <= s.waits || s.overlaps*few > s.followed {
		return stat.None
	}
	return stat.PerSecond(float64(s.tokens), s.time)
}

// addCosted adds a graph with known costs: rates of bytes and operations are over its time,
// without that of graphs whose operators were not recorded.
func (s *phaseSums) addCosted(one *graphSums, took time.Duration) {
	if !one.hasCost {
		return
	}
	g := one.g
	s.costed = stat.AddSaturating(s.costed, took)
	if g.Tokens > 0 && (g.Call < 0 || s.lastCall != g.Call+1) {
		s.computed += int64(g.Tokens)
	}
	s.lastCall = max(g.Call, -1) + 1
}

// addStep adds an operator.
func (s *phaseSums) addStep(took time.Duration, c *optrace.Cost) {
	s.operators = stat.AddSaturating(s.operators, took)
	s.cost.add(took, c)
}

// Call adds a call that has ended, after its graphs.
func (t *Tally) Call(c *optrace.Call) {
	t.begin(c.Begin)
	t.calls++
	t.mute.addCall(c)
	p := phaseIndex(c.Phase)
	s := &t.phases[p]
	s.calls++
	graphs := t.open[c.Index]
	delete(t.open, c.Index)
	if graphs == nil {
		graphs = &callSums{}
	}
	end := max(c.End, graphs.end)
	if end > c.Begin {
		took := stat.Elapsed(c.Begin, end)
		s.call.Add(took)
		if graphs.time > 0 {
			s.callsOfGraphs, s.graphsOfCalls = stat.AddSaturating(s.callsOfGraphs, took), stat.AddSaturating(s.graphsOfCalls, graphs.time)
		}
	}
	t.batch(p, c.Tokens, c.Begin, end, graphs)
}

// addWithoutCall counts a graph whose call was not seen as a call of its own. A decode graph without
// logits is only a part of one.
func (t *Tally) addWithoutCall(one *graphSums, took time.Duration) {
	if g := one.g; g.Call < 0 && g.Tokens > 0 && (one.p != optrace.PhaseDecode || one.logits) {
		t.batch(one.p, g.Tokens, g.Begin, max(g.End, g.Begin), sumsOf(one, took))
	}
}

// batch adds the tokens of a batch, its time, and the time since the previous one.
func (t *Tally) batch(p optrace.Phase, tokens int, begin, end time.Duration, graphs *callSums) {
	s := &t.phases[p]
	s.tokens += int64(max(tokens, 0))
	if end > begin && tokens > 0 {
		s.timed += int64(tokens)
		s.timedFor = stat.AddSaturating(s.timedFor, stat.Elapsed(begin, end))
	}
	t.addPause(p, tokens, begin, end)
	t.tokens.add(tokenSum{begin: begin, end: max(end, begin), phase: p, tokens: tokens, of: *graphs})
}

// previousCalls is the state of the previous calls.
type previousCalls struct {
	any    bool
	phase  optrace.Phase
	tokens int // of the last call
	begin  time.Duration
	end    time.Duration
	prompt bool          // the previous calls are a prefill without a decode after it yet
	since  time.Duration // the begin of that prefill
}

// addPause measures the time from one call to the next. Between two decodes, and between a
// prefill and what follows it, it is the application's work for a token; between a decode and a
// prefill it may be only a wait for a request, which is not counted.
func (t *Tally) addPause(p optrace.Phase, tokens int, begin, end time.Duration) {
	b := &t.previous
	pause := begin - b.end
	if b.any && pause >= 0 && b.end > 0 && !(b.phase == optrace.PhaseDecode && p != optrace.PhaseDecode) {
		t.phases[b.phase].between.Add(pause)
	}
	if b.any && b.end > b.begin && b.phase == optrace.PhaseDecode && p == optrace.PhaseDecode {
		t.phases[p].paced.add(b.tokens, stat.Elapsed(b.begin, b.end), pause)
	}
	switch p {
	case optrace.PhasePrefill:
		if !b.prompt || b.phase != optrace.PhasePrefill || pause > SamePrompt {
			b.since = begin
		}
		b.prompt = true
	case optrace.PhaseDecode:
		if b.prompt && begin > b.since {
			t.phases[optrace.PhasePrefill].first.Add(begin - b.since)
		}
		b.prompt = false
	}
	b.any, b.phase, b.tokens, b.begin, b.end = true, p, tokens, begin, end
}

// phaseRows returns the phases that occurred.
func (t *Tally) phaseRows(r optrace.Peak) []optrace.PhaseRow {
	rows := []optrace.PhaseRow{}
	for _, p := range phaseOrder {
		s := &t.phases[p]
		if s.calls == 0 && s.graph.Count == 0 {
			continue
		}
		row := optrace.PhaseRow{
			Phase: p.String(), Calls: s.calls, Tokens: s.tokens, Call: s.call.Distribution(), Graph: s.graph.Distribution(),
			Between: s.between.Distribution(), FirstToken: s.first.Distribution(), Paced: s.paced.rate(),
		}
		switch {
		case s.calls == 0 && !t.namesLogits():
			row.Tokens, row.FirstToken = 0, stat.Distribution{}
		case s.timed > 0:
			row.Rate = stat.PerSecond(float64(s.timed), s.timedFor)
		}
		row.Bytes, row.Flops = s.cost.amounts()
		if s.cost.known {
			row.BytesRate, row.FlopsRate = stat.PerSecond(s.cost.bytes, s.costed), stat.PerSecond(s.cost.flops, s.costed)
		}
		if c := t.ceiling(p, r); !row.Rate.OK || c.V >= row.Rate.V {
			row.Ceiling = c // a rate above it would show that the weights are in caches
		}
		rows = append(rows, row)
	}
	return rows
}

// namesLogits reports whether the runtime computes logits under llama.cpp's name. If not, the
// columns of a graph whose call was not seen may be anything, such as the time frames of a
// sound that whisper.cpp encodes.
func (t *Tally) namesLogits() bool {
	return slices.ContainsFunc(t.t.Tensors, func(one optrace.Tensor) bool { return one.Name == optrace.LogitsName })
}

// ceiling returns the rate of tokens with every step of a phase at the machine's peak: the
// larger of the times for moving its bytes and for computing. An unknown side of the peak is no
// limit. There is no ceiling by PeakSeen, or by a rate of operations that a
// step exceeded: kernels may use instructions whose rate was not measured (AMX).
func (t *Tally) ceiling(p optrace.Phase, r optrace.Peak) stat.Opt {
	tokens := float64(t.phases[p].computed)
	if tokens <= 0 || r.From == optrace.PeakSeen {
		return stat.None
	}
	seconds := 0.0
	for _, key := range t.steps.order() {
		if key.phase != p {
			continue
		}
		g := t.steps.of[key]
		w := g.work()
		if _, compute := r.SharesOf(w); compute.V > 1 && !g.cost.inexact && g.cost.flops >= seenFlops*float64(g.each.Count) {
			return stat.None
		}
		moving, computing := r.TimesOf(w)
		seconds += moving.Max(computing).V
	}
	if seconds <= 0 {
		return stat.None
	}
	return stat.Finite(tokens / seconds)
}
