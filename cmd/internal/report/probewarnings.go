package report

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// warnings are what a reader must know before believing a figure.
func (r *probePage) warnings() {
	r.ended()
	if n := r.failed(); n > 0 {
		r.para(indent, indent+2, text{r.mark(bad, "failed:"), r.span(body, fmt.Sprintf(" %s of %s did not end well", figure.Whole(float64(n)), plural(r.s.Requests.Sent, "request"))+r.firstFailure())})
	}
	for _, w := range r.s.Warnings {
		r.para(indent, indent+2, text{r.mark(warn, "warning "+w.ID+":"), r.span(body, " "+w.Text)})
	}
}

// interrupt is what ended a capture that a signal did: a person's, not the server.
const interrupt = "interrupt"

// ended says what cut a run short, and how far it came.
func (r *probePage) ended() {
	if r.c.Ended == "" {
		return
	}
	word, after := "cut short:", " "+r.c.Ended+" after "
	if r.c.Ended == interrupt {
		word, after = "interrupted", " by you after "
	}
	if q := r.Setup.Request; q != nil && r.c.Kind == capture.Probe {
		whole, sent := 0, len(r.c.Requests)
		if s := r.s.Requests; s != nil {
			whole = s.Whole
		}
		after += figure.Whole(float64(whole)) + " of " + plural(max(q.Repeat, sent), "request") + ", "
	}
	r.para(indent, indent+2, text{r.mark(warn, word), r.span(body, after+shownTime(r.c.Span())+"; figures are of what came until then")})
}

// cutOff says that requests ended with the run, by no fault of the server.
func (r *probePage) cutOff(f *capture.Failure) bool { return r.c.Ended == interrupt && f.Interrupted() }

// failed is how many requests the server or the way to it did not answer to their end.
func (r *probePage) failed() int {
	q := r.s.Requests
	if q == nil {
		return 0
	}
	n := q.Sent - q.Whole
	for i := range q.Failures {
		if r.cutOff(&q.Failures[i]) {
			n -= q.Failures[i].Count
		}
	}
	return n
}

// firstFailure is the error of the requests that failed, the first of several.
func (r *probePage) firstFailure() string {
	var all []*capture.Failure
	for i := range r.s.Requests.Failures {
		if f := &r.s.Requests.Failures[i]; !r.cutOff(f) {
			all = append(all, f)
		}
	}
	switch {
	case len(all) == 0:
		return ""
	case len(all) > 1 || all[0].Example:
		return ", such as: " + all[0].Error
	}
	return ": " + all[0].Error
}
