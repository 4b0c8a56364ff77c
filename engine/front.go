package engine

import "github.com/rooftop-dev/rooftop/engine/stat"

// OutsideEngine returns the mean seconds that finished requests spent outside the engine,
// from the deltas of its histograms: end to end minus queue and inference. vLLM observes
// these together when a request finishes (v1/metrics/stats.py,
// update_from_finished_request), so all describe the same requests, however the load
// varies. A time to first token, in contrast, is observed while other requests finish.
//
// The result contains the API server's own time, before and after the engine, and the wait
// for the current step: the engine queues arrived requests between two steps. It is
// absent, with the name of what is missing, if a histogram is missing, nothing finished, or
// the counts differ.
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

// inEngine returns the mean seconds from first scheduling to last token, and the number of
// requests behind it, or -1 if the page lacks the histograms.
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
