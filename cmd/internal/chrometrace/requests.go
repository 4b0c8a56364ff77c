package chrometrace

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// run draws the run as a whole, and below it a track for each client.
func (p *painter) run(c *capture.Capture) {
	pid := p.group("rooftop " + string(c.Kind))
	p.span(p.track(pid, "run", 0), "run", string(c.Kind), c.Begin, c.End, Text("ended", c.Ended))
	lanes := map[int][]*capture.Request{}
	for i := range c.Requests {
		r := &c.Requests[i]
		lanes[r.Lane] = append(lanes[r.Lane], r)
	}
	for _, lane := range slices.Sorted(maps.Keys(lanes)) {
		for n, row := range intoRows(lanes[lane], func(r *capture.Request) (from, to time.Duration) { return r.Sent, r.End }) {
			name := fmt.Sprintf("client %d", lane)
			if n > 0 {
				name = fmt.Sprintf("client %d (concurrent)", lane)
			}
			on := p.track(pid, name, lane+1)
			for _, r := range row {
				p.request(on, r)
			}
		}
	}
}

// request draws one request: its phases nested in its span, and its chunks.
func (p *painter) request(on Track, r *capture.Request) {
	end := max(r.End, r.Sent)
	within := func(t time.Duration) time.Duration { return min(max(t, r.Sent), end) }
	connected := within(r.Sent + r.Connect)
	first, last := end, end
	if n := len(r.Chunks); n > 0 {
		first = max(connected, within(r.Chunks[0].At))
		last = max(first, within(r.Chunks[n-1].At))
	}
	p.span(on, "request", fmt.Sprintf("request %d", r.ID), r.Sent, end, requestArgs(r)...)
	if r.Connect > 0 {
		p.span(on, "request", "connect", r.Sent, connected)
	}
	p.span(on, "request", "waiting for the first token", connected, first)
	if len(r.Chunks) == 0 {
		return
	}
	p.span(on, "request", "decode", first, last)
	at := first
	for n, c := range r.Chunks {
		at = min(max(at, c.At), last)
		p.instant(on, "chunk", chunkNames[min(int(c.Kind), len(chunkNames)-1)], at, Int("number", int64(n+1)), Int("bytes", int64(c.Bytes)))
	}
}

// chunkNames are the names of the kinds of chunks, by number.
var chunkNames = [...]string{capture.Text: "text", capture.Reasoning: "reasoning", capture.ToolCall: "tool call", capture.Empty: "empty"}

func requestArgs(r *capture.Request) []Arg {
	args := []Arg{Int("chunks", int64(len(r.Chunks)))}
	for _, a := range []struct {
		key string
		v   stat.Opt
	}{
		{"output_tokens", r.OutputTokens}, {"prompt_tokens", r.PromptTokens},
		{"cached_tokens", r.CachedTokens}, {"reasoning_tokens", r.ReasoningTokens},
		{"prefill_seconds", r.PrefillSeconds}, {"decode_seconds", r.DecodeSeconds},
	} {
		if a.v.OK {
			args = append(args, Real(a.key, a.v.V))
		}
	}
	if r.Status != 0 {
		args = append(args, Int("status", int64(r.Status)))
	}
	for _, t := range [...][2]string{{"finish", r.Finish}, {"error", r.Error}} {
		if t[1] != "" {
			args = append(args, Text(t[0], t[1]))
		}
	}
	if r.Reused {
		args = append(args, Text("connection", "used again"))
	}
	return args
}
