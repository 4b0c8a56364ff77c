package capture

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// fromTimings is where llama.cpp's server tells its times.
const fromTimings = "timings of the answer"

const prefillAlone = "the server tells its prefill alone: the rest is its queue, other requests that it computed meanwhile, and the network"

// serverTTFT divides the time to first token. The server's mean is ours alone where it
// counted as many first tokens as came here; the rest is told apart only then.
func (c *Capture) serverTTFT() ServerTTFT {
	var client []float64
	for i := range c.Requests {
		if r := &c.Requests[i]; len(r.Chunks) > 0 {
			client = append(client, (r.Chunks[0].At - r.Sent).Seconds())
		}
	}
	s := ServerTTFT{Client: meanOf(client)}
	if len(client) == 0 {
		s.Reason = "no request came to its first token"
		return s
	}
	sum, _ := c.pageGrowth(func(p *PageSample) stat.Opt { return p.TTFTSum })
	count, why := c.pageGrowth(func(p *PageSample) stat.Opt { return p.TTFTCount })
	ours := sum.OK && count.V == float64(len(client))
	if ours && sum.V/count.V <= s.Client.V {
		s.Server, s.From = sum.Div(count), c.PagesFrom+" metrics"
		s.Outside = stat.Some(s.Client.V - s.Server.V)
		s.Queue, s.Prefill = c.queueAndPrefill(len(client))
		return s
	}
	if timed, ok := c.timings(); ok {
		return timed
	}
	switch {
	case ours:
		s.Server, s.From = sum.Div(count), c.PagesFrom+" metrics"
		s.Reason = "the server's mean is longer than that of these requests, so that it is of others too: the rest is not told apart"
	case sum.OK && count.V > 0:
		s.Server, s.From = sum.Div(count), c.PagesFrom+" metrics"
		s.Reason = fmt.Sprintf("the server counted %.0f first tokens while %d came here: its mean is over all of them, so the rest is not told apart", count.V, len(client))
	case count.OK:
		s.Reason = "the server counted no first token in the run"
	case why == "its page does not have it":
		s.Reason = "the server's page tells no time to first token"
	default:
		s.Reason = "the server's own time to first token is not known: " + why
	}
	return s
}

// queueAndPrefill are the means of the server's histograms of finished requests, where
// these are all ours.
func (c *Capture) queueAndPrefill(requests int) (queue, prefill stat.Opt) {
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

// timings go by what llama.cpp's answers tell: their prefill, which begins when a slot
// takes the request and leaves out what other requests computed meanwhile. The rest is
// then the server's as well as the network's. Client is over the same requests.
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
		Client: meanOf(client), Prefill: meanOf(prefill), From: fromTimings,
		Reason: prefillAlone,
	}, true
}
