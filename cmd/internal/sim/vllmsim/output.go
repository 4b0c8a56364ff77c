package vllmsim

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// chunkOutputs is the number of outputs of a step that an API server handles before it sends their
// messages. vLLM handles 128 at a time (VLLM_V1_OUTPUT_PROC_CHUNK_SIZE), and each client's task writes in
// between; smaller chunks are closer to that than 128 messages at one instant.
const chunkOutputs = 32

// delivery is the report of one step while the API servers handle it. It owns its memory.
type delivery struct {
	rank      *rank
	report    core.Report
	outputs   []core.Output
	histories []core.History
	requests  []*request // of the outputs; nil if the client was gone
	sends     []bool     // whether the output makes a message
	order     []int32    // outputs by API server
	chunks    int        // not handled yet
	later     *delivery  // next of the rank
}

// chunk is the part of a delivery that one API server handles at once: order[from:to].
type chunk struct {
	d        *delivery
	from, to int
}

// dispatch passes the report of a step to the API servers.
func (v *Server) dispatch(r *rank, report *core.Report, now time.Duration) {
	n := len(report.Outputs)
	d := &delivery{
		rank: r, report: *report, outputs: slices.Clone(report.Outputs), histories: make([]core.History, 0, n), // pointers into it must hold
		requests: make([]*request, 0, n), sends: make([]bool, 0, n), order: make([]int32, 0, n),
	}
	for i := range d.outputs {
		o := &d.outputs[i]
		q := v.requests[o.ID]
		if o.First || o.Finish != core.NotFinished {
			d.histories = append(d.histories, *o.History)
			o.History = &d.histories[len(d.histories)-1]
		} else {
			o.History = nil // the page reads it of first and last outputs alone
		}
		if o.Finish != core.NotFinished {
			q.ended = true
			r.inFlight--
			v.balancer.fronts[q.front].inFlight[r.index]--
			if q.gone {
				v.forget(q)
			}
		}
		send := false
		if q.gone {
			q = nil
		} else {
			send = q.sendsMessage(o, v.settings.StreamInterval)
		}
		d.requests, d.sends = append(d.requests, q), append(d.sends, send)
	}
	if r.reports == nil {
		r.reports = d
	} else {
		r.latest.later = d
	}
	r.latest = d
	for i, f := range v.fronts {
		v.share(d, i, f, now)
	}
	if d.chunks == 0 {
		// No client waits for the report, but its gauges pass the same event loop.
		f := v.fronts[0]
		at := f.loop.add(now, v.costs.Delivery)
		f.deliveries.Push(at, chunk{d: d})
		d.chunks, d.report.Ended = 1, at
	}
}

// share schedules the outputs of a delivery that belong to one API server.
func (v *Server) share(d *delivery, front int, f *front, now time.Duration) {
	var work time.Duration
	from := len(d.order)
	for i, q := range d.requests {
		if q == nil || q.front != front {
			continue
		}
		if len(d.order) == from {
			// vLLM records the time of an iteration before it handles its outputs.
			d.report.Ended = max(d.report.Ended, f.loop.free)
			work += v.costs.Delivery
		}
		d.order = append(d.order, int32(i))
		work += v.costs.Token
		if d.sends[i] {
			work += v.costs.Message
		}
		if len(d.order)-from == chunkOutputs {
			f.deliveries.Push(f.loop.add(now, work), chunk{d, from, len(d.order)})
			d.chunks++
			from, work = len(d.order), 0
		}
	}
	if len(d.order) > from {
		f.deliveries.Push(f.loop.add(now, work), chunk{d, from, len(d.order)})
		d.chunks++
	}
}

// sendsMessage reports whether an output makes a message to the client (vLLM
// v1/engine/output_processor.py, make_request_output).
func (q *request) sendsMessage(o *core.Output, interval int) bool {
	if o.HasToken {
		q.made++
	}
	switch {
	case o.Finish != core.NotFinished:
	case q.call.Once, q.sent > 0 && q.made-q.sent < interval:
		return false
	}
	q.sent = q.made
	return true
}

// deliver sends the messages of a chunk at its time.
func (v *Server) deliver(at time.Duration, c chunk) {
	d := c.d
	for _, i := range d.order[c.from:c.to] {
		q := d.requests[i]
		if q.gone {
			d.requests[i] = nil // the client left before this was handled: not counted
			continue
		}
		o := &d.outputs[i]
		if o.HasToken {
			q.out = append(q.out, o.Token)
		}
		if d.sends[i] {
			v.update(q, o, at)
		}
	}
	d.chunks--
	// The page counts the steps of a rank in order.
	for r := d.rank; r.reports != nil && r.reports.chunks == 0; {
		oldest := r.reports
		r.reports = oldest.later
		v.observe(oldest)
	}
}

// update sends the new tokens of a request to its client.
func (v *Server) update(q *request, o *core.Output, now time.Duration) {
	u := Update{At: now, Tokens: q.out, Finish: o.Finish}
	if !q.call.Quiet && q.sink != nil {
		u.Text = JoinTokens(q.out)
	}
	if o.Finish != core.NotFinished {
		u.History = o.History
		status := 200
		if o.Finish == core.Error {
			u.Err, status = errFailed, errFailed.Status
		}
		v.close(q, status)
	}
	if delay := v.faults.delay(now); delay > 0 || q.outside > 0 {
		v.detain(q, u, now+delay)
	} else {
		v.send(q, u)
	}
	q.out = q.out[:0]
}

// send calls the sink with an update, at once or after the delay of the network.
func (v *Server) send(q *request, u Update) {
	if u.Finish != core.NotFinished {
		v.forget(q)
	}
	if q.sink != nil {
		q.sink(u)
	}
}

// detain delays an update in a slow network. The updates of one request stay in order.
func (v *Server) detain(q *request, u Update, at time.Duration) {
	q.last = max(q.last, at)
	u.At = q.last
	u.Tokens = slices.Clone(u.Tokens)
	if u.History != nil {
		history := *u.History
		u.History = &history
	}
	q.outside++
	v.events.Push(u.At, func(time.Duration) {
		q.outside--
		v.send(q, u)
	})
}

// observe counts a delivery on the page, without the outputs of clients that were gone before it was
// handled.
func (v *Server) observe(d *delivery) {
	kept, computed := d.outputs[:0], 0
	for i, q := range d.requests {
		if q == nil {
			continue
		}
		o := d.outputs[i]
		kept = append(kept, o)
		if o.First {
			computed += o.History.PromptTokens
			if v.settings.Generation == core.New {
				computed -= o.History.CachedTokens
			}
		}
	}
	d.report.Outputs, d.report.ComputedPrompt = kept, computed
	v.book.Observe(d.rank.index, &d.report)
	if v.settings.LoRA {
		v.book.Adapters(v.now-v.started, d.rank.engine.Adapters())
	}
}
