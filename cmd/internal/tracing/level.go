package tracing

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// costlyDetail are the details whose cost is estimated before tracing: their probes run at every
// operator.
const costlyDetail = optrace.DetailOperator | optrace.DetailTensor | optrace.DetailExperts | optrace.DetailBarrier | optrace.DetailCounters

// liveQuestion is a question for the user.
type liveQuestion struct {
	text     string
	expected float64        // expected cost after a yes, as a share of the target's speed
	less     optrace.Detail // level after a no
}

// request changes the level of detail: it estimates the level first, asks about it, or traces.
func (l *liveTrace) request(d optrace.Detail) {
	l.requested, l.ask = d, liveQuestion{}
	switch {
	case l.ended:
	case d&costlyDetail == 0, l.o.force && l.settled:
		l.watchAt(d)
	case l.expectation.GraphTime == 0:
		l.startCalibration()
	default:
		l.checkCost(d)
	}
}

func (l *liveTrace) startCalibration() {
	if l.calibrating != nil {
		return
	}
	w, err := l.beginCalibration()
	if err != nil {
		l.end(err)
		return
	}
	l.calibrating = w
}

// calibrated estimates costs from the recorded graphs, and continues with the requested level.
func (l *liveTrace) calibrated() {
	l.expectation = l.expectationOf(l.calibrating, l.calibrating.typical())
	l.calibrating = nil
	l.checkCost(l.requested)
	l.publish()
}

// costOf returns the expected cost of a level.
func (l *liveTrace) costOf(d optrace.Detail) optrace.Observer {
	in := l.expectation
	in.Detail = d
	o := optrace.Expect(in)
	o.Limit = l.o.limit()
	return o
}

// updateExpectation updates the estimate from the trace's own graphs when there are enough, and the
// notice about the current level's cost.
func (l *liveTrace) updateExpectation() {
	if in, ok := l.collector.tally.Expectation(l.target.Sites, 0); ok {
		in.Mute = l.expectation.Mute // measured only at the level of calls
		l.expectation = in
	}
	if !l.settled {
		return
	}
	l.observer = l.costOf(l.collector.tally.Level(l.detail))
	if said := l.costNotice(l.detail); l.lastCostNotice != "" && said != "" && l.notice == l.lastCostNotice {
		l.notice, l.lastCostNotice = said, said
	}
}

// currentCost returns the cost of tracing at the current level.
func (l *liveTrace) currentCost() optrace.Observer {
	if l.summary == nil {
		return l.observer
	}
	if l.detail == l.collector.tally.Level(l.detail) {
		return l.summary.Observer
	}
	return l.costOf(l.detail) // rooftop's own CPU cost was measured at another level
}

// costNotice describes the expected cost of a level, "" if it is unknown.
func (l *liveTrace) costNotice(d optrace.Detail) string {
	o := l.costOf(d)
	if o.HitsPerToken == 0 || l.expectation.GraphTime == 0 {
		return ""
	}
	return fmt.Sprintf("Detail %v is expected to cost %s (est): %.0f hits a token.", d, figure.PercentSign(o.Expected), o.HitsOfThread())
}

// checkCost traces at a level, or asks first if the expected cost is too high.
func (l *liveTrace) checkCost(d optrace.Detail) {
	o, limit := l.costOf(d), max(l.o.maxOverhead/100, l.granted)
	if l.o.force || o.Allowed(limit) || l.settled && d&^l.detail == 0 {
		l.watchAt(d)
		return
	}
	less, verb := l.detail, "stays with"
	if !l.settled {
		in := l.expectation
		in.Detail = d
		less, _, _ = optrace.Lighten(in, limit)
		if less&optrace.DetailOperator == 0 {
			less &^= unestimatedDetail // they are useful beside operators
		}
		verb = "takes"
	}
	l.ask = liveQuestion{expected: o.Expected, less: less, text: fmt.Sprintf(
		"Detail %v would cost %s of the target's speed (est), more than --max-overhead %v. Trace it anyway? n %s %v: %s%s.",
		d, figure.PercentSign(o.Expected), l.o.maxOverhead, verb, less, figure.PercentSign(l.costOf(less).Expected), l.tooMuch(less))}
}

// tooMuch says that the level after a no also exceeds the limit and that no level is cheaper, "" if
// it fits.
func (l *liveTrace) tooMuch(less optrace.Detail) string {
	switch o := l.costOf(less); {
	case o.Allowed(l.o.maxOverhead / 100):
		return ""
	case less == optrace.LevelToken, less == optrace.LevelGraph && l.expectation.Mute:
		return ", the least, which is more too: q detaches"
	}
	return ", which is more too"
}

// watchAt traces and records at a level.
func (l *liveTrace) watchAt(d optrace.Detail) {
	before, first := l.detail, !l.settled
	l.calibrating, l.ask, l.requested, l.detail = nil, liveQuestion{}, d, d
	if l.paused {
		return // takes effect at the end of the pause
	}
	l.settled = true
	if err := l.source.SetDetail(d); err != nil {
		if first || l.source.SetDetail(before) != nil {
			l.end(err)
			return
		}
		l.detail, l.requested, l.notice = before, before, fmt.Sprintf("%v cannot be traced: %v", d, err)
		return
	}
	if first {
		l.stretch = time.Now()
		l.others.begin(l.o, l.source.Target().PID)
	}
	l.observer = l.costOf(l.collector.tally.Level(d))
	if said := l.costNotice(d); said != "" {
		l.notice, l.lastCostNotice = said, said
	}
}

// answer answers the open question, if there is one.
func (l *liveTrace) answer(yes bool) {
	q := l.ask
	switch {
	case q.text == "":
	case yes:
		l.granted = max(l.granted, q.expected)
		l.watchAt(l.requested)
	case l.settled && q.less == l.detail:
		l.ask, l.requested = liveQuestion{}, l.detail
	default:
		l.watchAt(q.less)
	}
}

// pause removes the costly probes and stops counting, or resumes.
func (l *liveTrace) pause(paused bool) {
	switch {
	case l.ended || paused == l.paused:
		return
	case !l.settled:
		l.notice = "Nothing is recorded yet, so there is nothing to pause."
		return
	}
	detail := l.detail
	if paused {
		detail, l.calibrating = optrace.LevelToken, nil
		l.stop()
	} else {
		l.stretch = time.Now()
	}
	l.paused = paused
	if err := l.source.SetDetail(detail); err != nil {
		l.end(err)
	}
}
