package main

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// dearDetail are the details whose cost is weighed before they are watched: their probes
// are hit at every operator.
const dearDetail = optrace.DetailOperator | optrace.DetailTensor | optrace.DetailExperts | optrace.DetailBarrier | optrace.DetailCounters

// liveQuestion waits for a person's answer.
type liveQuestion struct {
	text     string
	expected float64        // what yes may cost, as a share of the target's speed
	less     optrace.Detail // what no takes
}

// aim is a wish for a level of detail: it is weighed, asked for or watched.
func (l *liveTrace) aim(d optrace.Detail) {
	l.aimed, l.ask = d, liveQuestion{}
	switch {
	case l.ended:
	case d&dearDetail == 0, l.o.force && l.settled:
		l.settle(d)
	case l.expectation.GraphTime == 0:
		l.startWeighing()
	default:
		l.afford(d)
	}
}

func (l *liveTrace) startWeighing() {
	if l.weigh != nil {
		return
	}
	if err := l.source.SetDetail(weighed); err != nil {
		l.end(err)
		return
	}
	l.weigh = newWeighing(l.source.Tables())
}

// count goes on to count the operators of graphs that do not say how many they have.
func (l *liveTrace) count() {
	if err := l.source.SetDetail(weighedOperators); err != nil {
		l.end(err)
		return
	}
	l.weigh.count()
}

// weighed reckons with the graphs that were seen, and goes on to what was aimed at.
func (l *liveTrace) weighed() {
	l.expectation = l.expectationOf(l.weigh, l.weigh.typical())
	l.weigh = nil
	l.afford(l.aimed)
	l.publish()
}

// expect is what a level is expected to cost.
func (l *liveTrace) expect(d optrace.Detail) optrace.Observer {
	in := l.expectation
	in.Detail = d
	o := optrace.Expect(in)
	o.Limit = l.o.limit()
	return o
}

// learn reckons with the trace's own graphs once there are enough. What was said of the
// level that goes on is said again with them.
func (l *liveTrace) learn() {
	if in, ok := l.keeper.tally.Expectation(l.target.Sites, 0); ok {
		in.Mute = l.expectation.Mute // is told by calls alone
		l.expectation = in
	}
	if !l.settled {
		return
	}
	l.observer = l.expect(l.keeper.tally.Level(l.detail))
	if said := l.costs(l.detail); l.said != "" && said != "" && l.notice == l.said {
		l.notice, l.said = said, said
	}
}

// costsNow is what watching costs at the level that goes on.
func (l *liveTrace) costsNow() optrace.Observer {
	if l.summary == nil {
		return l.observer
	}
	if l.detail == l.keeper.tally.Level(l.detail) {
		return l.summary.Observer
	}
	return l.expect(l.detail) // what rooftop's own CPU cost was seen at another level
}

// costs says what watching at a level is expected to cost; "" not known.
func (l *liveTrace) costs(d optrace.Detail) string {
	o := l.expect(d)
	if o.HitsPerToken == 0 || l.expectation.GraphTime == 0 {
		return ""
	}
	return fmt.Sprintf("Detail %v is expected to cost %s (est): %.0f hits a token.", d, perCent(o.Expected), o.HitsOfThread())
}

// afford watches at a level, or asks first where that is expected to cost too much.
func (l *liveTrace) afford(d optrace.Detail) {
	o, limit := l.expect(d), max(l.o.maxOverhead/100, l.granted)
	if l.o.force || o.Allowed(limit) || l.settled && d&^l.detail == 0 {
		l.settle(d)
		return
	}
	less, verb := l.detail, "stays with"
	if !l.settled {
		in := l.expectation
		in.Detail = d
		less, _, _ = optrace.Lighten(in, limit)
		if less&optrace.DetailOperator == 0 {
			less &^= unreckoned // they are seen beside operators
		}
		verb = "takes"
	}
	l.ask = liveQuestion{expected: o.Expected, less: less, text: fmt.Sprintf(
		"Detail %v would cost %s of the target's speed (est), more than --max-overhead %v. Trace it all the same? n %s %v: %s%s.",
		d, perCent(o.Expected), l.o.maxOverhead, verb, less, perCent(l.expect(less).Expected), l.tooMuch(less))}
}

// tooMuch says of what no takes that it costs more than the limit too, and that nothing
// costs less; "" it does not.
func (l *liveTrace) tooMuch(less optrace.Detail) string {
	switch o := l.expect(less); {
	case o.Allowed(l.o.maxOverhead / 100):
		return ""
	case less == optrace.LevelToken, less == optrace.LevelGraph && l.expectation.Mute:
		return ", the least, which is more too: q detaches"
	}
	return ", which is more too"
}

// perCent is a share with one decimal.
func perCent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// settle watches at a level, and records from then on.
func (l *liveTrace) settle(d optrace.Detail) {
	before, first := l.detail, !l.settled
	l.weigh, l.ask, l.aimed, l.detail = nil, liveQuestion{}, d, d
	if l.paused {
		return // it comes into effect when that ends
	}
	l.settled = true
	if err := l.source.SetDetail(d); err != nil {
		if first || l.source.SetDetail(before) != nil {
			l.end(err)
			return
		}
		l.detail, l.aimed, l.notice = before, before, fmt.Sprintf("%v cannot be watched: %v", d, err)
		return
	}
	if first {
		l.stretch = time.Now()
		l.others.begin(l.o, l.source.Target().PID)
	}
	l.observer = l.expect(l.keeper.tally.Level(d))
	if said := l.costs(d); said != "" {
		l.notice, l.said = said, said
	}
}

// answer answers the open question, if there is one.
func (l *liveTrace) answer(yes bool) {
	q := l.ask
	switch {
	case q.text == "":
	case yes:
		l.granted = max(l.granted, q.expected)
		l.settle(l.aimed)
	case l.settled && q.less == l.detail:
		l.ask, l.aimed = liveQuestion{}, l.detail
	default:
		l.settle(q.less)
	}
}

// pause takes the probes off that cost something and counts nothing, or goes on.
func (l *liveTrace) pause(paused bool) {
	switch {
	case l.ended || paused == l.paused:
		return
	case !l.settled:
		l.notice = "Nothing is recorded yet, so that there is nothing to pause."
		return
	}
	detail := l.detail
	if paused {
		detail, l.weigh = optrace.LevelToken, nil
		l.stop()
	} else {
		l.stretch = time.Now()
	}
	l.paused = paused
	if err := l.source.SetDetail(detail); err != nil {
		l.end(err)
	}
}
