package optrace

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// samePrompt is the longest pause between two calls that compute one prompt batch by
// batch: nothing is sampled between them. Batches of llama.cpp's server are microseconds
// apart; the limit leaves room for a thread that lost its CPU.
const samePrompt = 20 * time.Millisecond

// sameAnswer is the longest pause after a decode within one answer, as a multiple of the
// decode. A longer one is a wait for a request: a prompt of one token, all others of which
// are in the cache, looks like the next token. Pauses up to [samePrompt] always count.
const sameAnswer = 10

// phaseSums adds a phase up.
type phaseSums struct {
	calls     int
	tokens    int64
	timed     int64 // tokens of calls whose time is known
	call      durations
	timedFor  time.Duration
	graph     durations
	between   durations
	first     durations
	paced     paceSums
	operators time.Duration
	cost      costSum
	// computed are the tokens of the calls whose operators were seen; lastCall is the call
	// that was counted last.
	computed int64
	costed   time.Duration // of graphs whose operators have a known cost
	lastCall int
	// Calls with their graphs, where both are known.
	callsOfGraphs, graphsOfCalls time.Duration
}

// paceSums add decodes up from the begin of each to the begin of the next.
type paceSums struct {
	tokens   int64
	time     time.Duration
	followed int64 // decodes that the next one of the same answer followed
	waits    int64 // decodes after which a request was waited for
	overlaps int64 // decodes that went on when the next one began
}

// add adds a decode with the pause after it.
func (s *paceSums) add(tokens int, took, pause time.Duration) {
	switch {
	case pause < 0:
		s.overlaps++
	case pause > max(samePrompt, sameAnswer*took):
		s.waits++
	case tokens > 0 && took > 0:
		s.followed++
		s.tokens += int64(tokens)
		s.time = plus(s.time, plus(took, pause))
	}
}

// rate is that of answers. Where decodes overlap, of several contexts, what lies between two
// of them is not known; and where waits are as many as decodes, no more is it which is which.
func (s *paceSums) rate() stat.Opt {
	const few = 20 // one in so many may be of another context
	if s.followed <= s.waits || s.overlaps*few > s.followed {
		return stat.None
	}
	return rate(float64(s.tokens), s.time)
}

// addGraph adds a graph.
func (s *phaseSums) addGraph(took time.Duration) { s.graph.add(took) }

// addCosted adds a graph of whose operators the cost is known: rates of what they move and
// compute are over its time, and not over that of graphs whose operators were not recorded.
func (s *phaseSums) addCosted(one *graphSums, took time.Duration) {
	if !one.costed {
		return
	}
	g := one.g
	s.costed = plus(s.costed, took)
	if g.Tokens > 0 && (g.Call < 0 || s.lastCall != g.Call+1) {
		s.computed += int64(g.Tokens)
	}
	s.lastCall = max(g.Call, -1) + 1
}

// addStep adds an operator.
func (s *phaseSums) addStep(took time.Duration, c *Cost) {
	s.operators = plus(s.operators, took)
	s.cost.add(took, c)
}

// Call takes a call that ended, after its graphs.
func (t *Tally) Call(c *Call) {
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
		took := span(c.Begin, end)
		s.call.add(took)
		if graphs.time > 0 {
			s.callsOfGraphs, s.graphsOfCalls = plus(s.callsOfGraphs, took), plus(s.graphsOfCalls, graphs.time)
		}
	}
	t.batch(p, c.Tokens, c.Begin, end, graphs)
}

// uncalled takes a graph whose call was not seen for a call of its own. A decode graph
// without logits is a part of one.
func (t *Tally) uncalled(one *graphSums, took time.Duration) {
	if g := one.g; g.Call < 0 && g.Tokens > 0 && (one.p != PhaseDecode || one.logits) {
		t.batch(one.p, g.Tokens, g.Begin, max(g.End, g.Begin), sumsOf(one, took))
	}
}

// batch adds the tokens of a batch, and the time to and from it.
func (t *Tally) batch(p Phase, tokens int, begin, end time.Duration, graphs *callSums) {
	s := &t.phases[p]
	s.tokens += int64(max(tokens, 0))
	if end > begin {
		if tokens > 0 {
			s.timed += int64(tokens)
			s.timedFor = plus(s.timedFor, span(begin, end))
		}
		if p == PhaseDecode {
			t.live.addCall(begin, end, tokens)
		}
	}
	t.follow(p, tokens, begin, end)
	t.tokens.add(tokenSum{begin: begin, end: max(end, begin), phase: p, tokens: tokens, of: *graphs})
}

// following is what is remembered of the calls before.
type following struct {
	any    bool
	phase  Phase
	tokens int // of the last
	begin  time.Duration
	end    time.Duration
	prompt bool          // the calls before are a prefill that no decode followed yet
	since  time.Duration // the begin of its first
}

// follow measures from one call to the next. Between two decodes, and between a prefill
// and what follows it, lies what the application does for a token; between a decode and
// a prefill it may only wait for a request, which is not counted.
func (t *Tally) follow(p Phase, tokens int, begin, end time.Duration) {
	b := &t.before
	pause := begin - b.end
	if b.any && pause >= 0 && b.end > 0 && !(b.phase == PhaseDecode && p != PhaseDecode) {
		t.phases[b.phase].between.add(pause)
	}
	if b.any && b.end > b.begin && b.phase == PhaseDecode && p == PhaseDecode {
		t.phases[p].paced.add(b.tokens, span(b.begin, b.end), pause)
	}
	switch p {
	case PhasePrefill:
		if !b.prompt || b.phase != PhasePrefill || pause > samePrompt {
			b.since = begin
		}
		b.prompt = true
	case PhaseDecode:
		if b.prompt && begin > b.since {
			t.phases[PhasePrefill].first.add(begin - b.since)
		}
		b.prompt = false
	}
	b.any, b.phase, b.tokens, b.begin, b.end = true, p, tokens, begin, end
}

// phaseRows are the phases that occurred.
func (t *Tally) phaseRows(r Roof) []PhaseRow {
	rows := []PhaseRow{}
	for _, p := range phaseOrder {
		s := &t.phases[p]
		if s.calls == 0 && s.graph.count == 0 {
			continue
		}
		row := PhaseRow{
			Phase: p.String(), Calls: s.calls, Tokens: s.tokens, Call: s.call.distribution(), Graph: s.graph.distribution(),
			Between: s.between.distribution(), FirstToken: s.first.distribution(), Paced: s.paced.rate(),
		}
		switch {
		case s.calls == 0 && !t.namesLogits():
			row.Tokens, row.FirstToken = 0, Distribution{}
		case s.timed > 0:
			row.Rate = rate(float64(s.timed), s.timedFor)
		}
		row.Bytes, row.Flops = s.cost.amounts()
		if s.cost.known {
			row.BytesRate, row.FlopsRate = rate(s.cost.bytes, s.costed), rate(s.cost.flops, s.costed)
		}
		if c := t.ceiling(p, r); !row.Rate.OK || c.V >= row.Rate.V {
			row.Ceiling = c // what was passed is none: the weights lie in caches
		}
		rows = append(rows, row)
	}
	return rows
}

// namesLogits says that the runtime computes logits under llama.cpp's name. Without, the
// columns of a graph whose call was not seen are of anything: of the moments of a sound that
// whisper.cpp encodes, say.
func (t *Tally) namesLogits() bool {
	return slices.ContainsFunc(t.t.Tensors, func(one Tensor) bool { return one.Name == logits })
}

// ceiling is the rate of tokens with every step of a phase at the roof: for each what
// takes longer of moving its bytes and of computing. A side of the roof that is not
// known allows anything. What the trace itself reached is no ceiling of it, nor is what
// was measured beside other load, nor a rate of operations that a step has passed: kernels
// may use instructions that no rate was measured of (AMX).
func (t *Tally) ceiling(p Phase, r Roof) stat.Opt {
	tokens := float64(t.phases[p].computed)
	if tokens <= 0 || r.From == RoofSeen || r.From == RoofDisturbed {
		return stat.None
	}
	seconds := 0.0
	for _, key := range t.steps.order() {
		if key.phase != p {
			continue
		}
		g := t.steps.of[key]
		w := g.work()
		if _, compute := r.shares(w); compute.V > 1 && !g.cost.reckoned && g.cost.flops >= seenFlops*float64(g.each.count) {
			return stat.None
		}
		moving, computing := r.times(w)
		seconds += moving.Max(computing).V
	}
	if seconds <= 0 {
		return stat.None
	}
	return finite(tokens / seconds)
}
