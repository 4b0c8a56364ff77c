package capture

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// fromTimings is where llama.cpp's server reports its times.
const fromTimings = "timings of the answer"

const prefillAlone = "the server reports only its prefill: the rest is its queue, other requests that it computed meanwhile, and the network"

// serverTTFT divides the time to first token into parts. The server's mean covers only our requests
// if it counted as many first tokens as we received; the parts are known only then.
func (c *Capture) serverTTFT() ServerTTFT {
	var client []float64
	for i := range c.Requests {
		if ttft, ok := c.Requests[i].TTFT(); ok {
			client = append(client, ttft.Seconds())
		}
	}
	s := ServerTTFT{Client: stat.Mean(client)}
	if len(client) == 0 {
		s.Reason = "no request reached its first token"
		return s
	}
	sum, _ := c.pageGrowth(func(p *PageSample) stat.Opt { return p.TTFTSum })
	count, why := c.pageGrowth(func(p *PageSample) stat.Opt { return p.TTFTCount })
	ours := sum.OK && count.V == float64(len(client))
	if ours && sum.V/count.V <= s.Client.V {
		s.Server, s.From = sum.Div(count), c.PagesFrom+" metrics"
		s.Outside = stat.Some(s.Client.V - s.Server.V)
		s.Queue, s.Prefill = queueAndPrefill(c, len(client))
		return s
	}
	if timed, ok := c.timings(); ok {
		return timed
	}
	switch {
	case ours:
		s.Server, s.From = sum.Div(count), c.PagesFrom+" metrics"
		s.Reason = "the server's mean is longer than that of these requests, so it includes others: the rest cannot be split"
	case sum.OK && count.V > 0:
		s.Server, s.From = sum.Div(count), c.PagesFrom+" metrics"
		s.Reason = fmt.Sprintf("the server counted %.0f first tokens, but %d arrived here: its mean covers all of them, so the rest cannot be split", count.V, len(client))
	case count.OK:
		s.Reason = "the server counted no first token during the run"
	case why == "its metrics do not have it":
		s.Reason = "the server's metrics have no time to first token"
	default:
		s.Reason = "the server's own time to first token is unknown: " + why
	}
	return s
}

// queueAndPrefill returns the means of the server's histograms of finished requests, if all of
// these are ours.
func queueAndPrefill(c *Capture, requests int) (queue, prefill stat.Opt) {
	part := func(sum, count func(*PageSample) stat.Opt) stat.Opt {
		total, _ := c.pageGrowth(sum)
		if n, _ := c.pageGrowth(count); n.V != float64(requests) {
			return stat.None
		}
		return total.Times(1 / float64(requests))
	}
	return part(func(p *PageSample) stat.Opt { return p.QueueSum }, func(p *PageSample) stat.Opt { return p.QueueCount }),
		part(func(p *PageSample) stat.Opt { return p.PrefillSum }, func(p *PageSample) stat.Opt { return p.PrefillCount })
}

// timings uses the timings in llama.cpp's answers. Their prefill begins when a slot takes the
// request, and excludes the computation for other requests. The remainder then includes the server
// as well as the network. Client covers the same requests.
func (c *Capture) timings() (s ServerTTFT, ok bool) {
	var client, prefill []float64
	for i := range c.Requests {
		if r := &c.Requests[i]; r.PrefillSeconds.OK && len(r.Chunks) > 0 {
			client = append(client, (r.Chunks[0].At - r.Sent).Seconds())
			prefill = append(prefill, r.PrefillSeconds.V)
		}
	}
	if len(prefill) == 0 {
		return s, false
	}
	return ServerTTFT{
		Client: stat.Mean(client), Prefill: stat.Mean(prefill), From: fromTimings,
		Reason: prefillAlone,
	}, true
}
