package loop

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// settling waits for a steady load after a restart.
type settling struct {
	*shared
	measuring *measuring
	trials    *trials
	advisor   *advisor

	loaded time.Duration // when tokens first moved after the restart, 0 if they have not
	// unsteady is what was missing when the measurement began without a steady server, or "".
	unsteady string
}

const (
	// SettleLeast is the number of windows with moving tokens that a steady server needs;
	// settleLook is the number of windows examined.
	SettleLeast = 3
	settleLook  = 5
	// SettleMost is how long a server under load may take to become steady. After that it is
	// measured anyway.
	SettleMost = 30 * time.Second
	// settleDrift is the change over the examined windows, as a share of their mean, that
	// counts as steady whatever their scatter; settleScatter is the change that does so in
	// standard deviations of their scatter.
	settleDrift   = 0.10
	settleScatter = 1.5
	// SettleRequestShare is the share of the requests before the restart that must be back: clients
	// reconnect one after the other.
	SettleRequestShare = 0.7
	// settleThroughputShare is the share of the previous throughput that shows that the load is back even
	// with fewer requests: a faster server holds fewer.
	settleThroughputShare = 1 - effect.ThroughputShift
	// comparableLoadShare is the share of load below which a comparison is pointless.
	comparableLoadShare = 0.25
)

// steady reports whether the windows show a steady server: enough windows with moving tokens, and
// neither requests nor throughput with a trend beyond their scatter. before is the diagnosis
// before the restart, nil if unknown. why states what is still missing.
func steady(windows []engine.Window, before *engine.Diagnosis) (ok bool, why string) {
	moved := latestMoving(windows)
	if len(moved) == 0 {
		return false, waitsForLoad
	}
	if len(moved) < SettleLeast {
		return false, "warming up"
	}
	look := moved[max(0, len(moved)-settleLook):]
	demand, rate := make([]float64, len(look)), make([]float64, len(look))
	for i := range look {
		demand[i], rate[i] = inFlight(&look[i]).Or(0), look[i].Rate[engine.CounterGenerationTokens].Or(0)
	}
	switch {
	case !latestHaveNoTrend(demand, 1):
		return false, "the number of requests is still changing"
	case !latestHaveNoTrend(rate, 0):
		return false, "the throughput is still changing"
	case !loadBack(demand, rate, before):
		return false, "not all clients have returned"
	}
	return true, ""
}

const waitsForLoad = "waiting for load: no tokens move"

// latestHaveNoTrend checks the latest three windows strictly, and then all of them: a server that was
// still warming up in the first is steady if the last three agree.
func latestHaveNoTrend(values []float64, slack float64) bool {
	if len(values) > SettleLeast && hasNoTrend(values, slack) {
		return true
	}
	return hasNoTrend(values[len(values)-SettleLeast:], slack)
}

// latestMoving returns the windows at the end in which tokens moved.
func latestMoving(windows []engine.Window) []engine.Window {
	n := len(windows)
	for n > 0 && moving(&windows[n-1]) {
		n--
	}
	return windows[n:]
}

// firstMoving returns the index of the first window in which tokens moved, or -1.
func firstMoving(windows []engine.Window) int {
	for i := range windows {
		if moving(&windows[i]) {
			return i
		}
	}
	return -1
}

// moving reports whether requests ran and tokens moved in a window.
func moving(w *engine.Window) bool {
	return w.Evaluable && !w.Asleep && (w.Delta[engine.CounterGenerationTokens].Or(0) > 0 || w.Delta[engine.CounterPromptTokens].Or(0) > 0)
}

// inFlight returns the number of running and waiting requests.
func inFlight(w *engine.Window) stat.Opt { return w.Running.Plus(w.Waiting) }

// hasNoTrend reports whether values show no trend: the change of their fitted line is within
// settleDrift of their mean (and slack) or, if there are enough values to distinguish scatter from a
// trend, within their scatter about it.
func hasNoTrend(values []float64, slack float64) bool {
	n := float64(len(values))
	mean, slope := stat.Line(values)
	drift := math.Abs(slope) * (n - 1)
	if drift <= max(settleDrift*math.Abs(mean), slack) {
		return true
	}
	if len(values) <= SettleLeast {
		return false
	}
	squares := 0.0
	for i, v := range values {
		residual := v - mean - slope*(float64(i)-(n-1)/2)
		squares += residual * residual
	}
	return drift <= settleScatter*math.Sqrt(squares/(n-2))
}

// loadBack reports whether the requests of before are back, or the throughput is about the same
// without them.
func loadBack(asked, rate []float64, before *engine.Diagnosis) bool {
	if before == nil {
		return true
	}
	then := search.Demand(before)
	tokens := before.Quantity("generation_tokens_per_s").Value
	now, _ := stat.Line(asked)
	pace, _ := stat.Line(rate)
	return !then.OK || now >= SettleRequestShare*then.V || tokens.OK && pace >= settleThroughputShare*tokens.V
}

// barelyLoaded reports whether the server has hardly any load and throughput compared with
// before, so that a comparison would be meaningless.
func barelyLoaded(windows []engine.Window, before *engine.Diagnosis) bool {
	var asked, rate, n float64
	for i := range windows {
		if w := &windows[i]; moving(w) {
			asked += inFlight(w).Or(0)
			rate += w.Rate[engine.CounterGenerationTokens].Or(0)
			n++
		}
	}
	if before == nil || n < SettleLeast {
		return n < SettleLeast
	}
	asked, rate = asked/n, rate/n
	then, tokens := search.Demand(before), before.Quantity("generation_tokens_per_s").Value
	return then.OK && tokens.OK && asked < comparableLoadShare*then.V && rate < comparableLoadShare*tokens.V
}

// startSettling waits until the restarted server is steady.
func (s *settling) startSettling() {
	s.advisor.judgement = judgement{}
	s.loaded, s.unsteady = 0, ""
	s.enterPhase(PhaseSettling)
	s.current.startPhase()
	var opened *Iteration
	if it := s.lastIteration(); s.trials.open && it != nil {
		opened = new(*it)
	}
	s.emit(LevelInfo, Event{Kind: EventSettling, Iteration: s.iteration(), Opened: opened, Text: "settling: measuring starts once the load is steady"})
}

func (s *settling) settlingWindow() {
	windows := s.current.windowsFrom(s.current.from)
	ok, why := steady(windows, s.trials.before)
	recent := latestWindows(windows, SettleMost)
	switch {
	case len(recent) == 0 || firstMoving(recent) < 0:
		s.loaded = 0
	case s.loaded == 0:
		s.loaded = s.now
	}
	s.current.waitingFor = why
	switch {
	case ok:
		s.finishSettling("steady after " + figure.Elapsed(s.now-s.since))
	case s.loaded == 0:
	case s.now-s.loaded < SettleMost-engine.WindowLength:
	case barelyLoaded(recent, s.trials.before):
		s.current.waitingFor = "waiting for the load to return: most clients are not back yet"
	default:
		s.unsteady = why
		s.finishSettling("not steady after " + figure.Elapsed(s.now-s.since) + " (" + why + "): measuring anyway")
	}
}

// finishSettling ends the settling: a change is measured, a kept configuration waits for the next
// change.
func (s *settling) finishSettling(text string) {
	s.writeEntry(LevelInfo, EventSettling, text)
	s.current.host = hostLoad{}
	if !s.trials.open {
		s.trials.toWaiting()
		return
	}
	s.alterLatest(func(it *Iteration) { it.Settled = s.now })
	s.measuring.measureTrial()
}

// settleLength returns the longest duration of the settling, 0 without load or with too little
// load to compare.
func (s *settling) settleLength() time.Duration {
	if s.loaded == 0 || s.now-s.loaded > SettleMost {
		return 0
	}
	return s.loaded - s.since + SettleMost
}
