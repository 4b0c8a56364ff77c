package bench

import (
	"cmp"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
)

// scrapeTook is how long fetching a page over loopback takes for the client.
const scrapeTook = 3 * time.Millisecond

// observer polls the world's server and diagnoses it.
type observer struct {
	world    *World
	analysis *session.Analysis
	began    time.Duration
	until    time.Duration
	every    time.Duration // between polls of pages alone; 0 is engine.PollInterval with everything else
	body     []byte
	pages    func(at time.Duration, body []byte) // called with every page; may be nil
}

// observe starts polling now, for the given length; every is as in [Options].
func (w *World) observe(h session.Header, length, every time.Duration) (*observer, error) {
	a, err := session.NewAnalysis(h)
	if err != nil {
		return nil, err
	}
	o := &observer{world: w, analysis: a, began: w.now, until: w.now + length, every: every}
	o.poll()
	return o, nil
}

func (o *observer) poll() {
	w := o.world
	tick := w.now - o.began
	p := &session.Poll{T: tick, PageT: tick + scrapeTook, Took: scrapeTook}
	body, err := w.Page(o.body[:0])
	if err != nil {
		p.PageErr = err.Error()
	} else {
		o.body = body
		p.Body = string(body)
		if o.pages != nil {
			o.pages(w.now, body)
		}
	}
	if err == nil && o.every == 0 && tick%engine.WindowLength == 0 {
		h := w.Health()
		h.T = p.PageT
		p.Health = &h
	}
	if o.every == 0 {
		p.GPU = w.GPUs(tick)
	}
	o.analysis.Add(p)
	if next := w.now + cmp.Or(o.every, engine.PollInterval); next <= o.until {
		w.At(next, o.poll)
	}
}

// diagnose ends the measurement and returns its diagnosis.
func (o *observer) diagnose() engine.Diagnosis {
	return o.analysis.Diagnose(session.End{Duration: o.until - o.began}, version)
}
