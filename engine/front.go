package engine

import "github.com/rooftop-dev/rooftop/engine/stat"

// OutsideEngine returns the mean seconds that finished requests spent outside
// the engine, from what its histograms gained: end to end less queue and
// inference. vLLM observes these at one instant for one request, when it
// finishes (v1/metrics/stats.py, update_from_finished_request), so the
// difference is that of the same requests, whatever the load did meanwhile; a
// time to first token is observed while other requests finish.
//
// It contains the API server's own time, on the way in and with the last token
// on the way out, and the wait for the step at hand: between two steps the
// engine takes in what has arrived and notes it as queued. Absent, with what is
// missing, where a family is, nothing finished, or the counts differ.
func OutsideEngine(h *[NumHists]stat.Delta) (outside stat.Opt, missing string) {
	e2e, queue := &h[HistE2E], &h[HistQueue]
	inference, n := inEngine(h)
	switch {
	case !e2e.OK:
		return stat.None, "e2e_request_latency_seconds"
	case !queue.OK:
		return stat.None, "request_queue_time_seconds"
	case n < 0:
		return stat.None, "request_inference_time_seconds"
	case e2e.Count <= 0:
		return stat.None, "a request that finished"
	case e2e.Count != queue.Count || e2e.Count != n:
		return stat.None, "request times of the same requests"
	}
	total, waited := e2e.Mean(), queue.Mean()
	if !total.OK || !waited.OK || !inference.OK {
		return stat.None, "request times that are numbers"
	}
	return stat.Some(total.V - waited.V - inference.V), ""
}

// inEngine returns the mean seconds from first scheduling to last token and of
// how many requests it is; -1 where the page does not tell.
func inEngine(h *[NumHists]stat.Delta) (mean stat.Opt, requests float64) {
	if d := &h[HistInference]; d.OK {
		return d.Mean(), d.Count
	}
	prefill, decode := &h[HistPrefill], &h[HistDecode]
	if !prefill.OK || !decode.OK || prefill.Count != decode.Count {
		return stat.None, -1
	}
	p, d := prefill.Mean(), decode.Mean()
	if !p.OK || !d.OK {
		return stat.None, prefill.Count
	}
	return stat.Some(p.V + d.V), prefill.Count
}
