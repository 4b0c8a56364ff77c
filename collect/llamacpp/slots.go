package llamacpp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// slot is what /slots reports about one slot.
type slot struct {
	ID         int  `json:"id"`
	Task       int  `json:"id_task"`
	Context    int  `json:"n_ctx"` // tokens that it may hold
	Processing bool `json:"is_processing"`
	Held       int  `json:"n_prompt_tokens"`           // tokens that it holds: prompt and output so far
	Computed   int  `json:"n_prompt_tokens_processed"` // of the prompt, computed for this request
	Cached     int  `json:"n_prompt_tokens_cache"`     // of the prompt, held already
	Next       next `json:"next_token"`
}

// next is the output of a slot: an object, in newer builds a list of one.
type next struct {
	Generated int `json:"n_decoded"`
}

// UnmarshalJSON reads either form.
func (n *next) UnmarshalJSON(text []byte) error {
	type plain next
	if len(text) == 0 || text[0] != '[' {
		return json.Unmarshal(text, (*plain)(n))
	}
	var list []plain
	if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 {
		return err
	}
	*n = next(list[0])
	return nil
}

// Pages fetches the page of one server, with metrics of its slots appended. It counts requests and tokens
// from one page to the next, so it must not be used concurrently.
type Pages struct {
	buf      []byte
	closed   bool // the server has no /slots
	families collect.Families

	last      []slot
	first     totals  // of the first page, from which requests are counted
	predicted float64 // of the previous page
	generated float64 // with the tokens of running requests; never falls
	requests  float64 // seen to leave their slot
	busy      float64 // slots that served a request, summed over the pages
}

// totals are counters of the page.
type totals struct{ prompt, predicted, promptSeconds, predictedSeconds float64 }

// counted are the metrics of the page from which others follow.
var counted = collect.NewExactFilter("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_seconds_total",
	"llamacpp:tokens_predicted_total", "llamacpp:tokens_predicted_seconds_total", "llamacpp:n_decode_total")

// Get requests the metrics page and /slots and appends the page to buf. launch are the settings of the
// server's launch, nil if it cannot be read. A server started with --no-slots has a page without them.
func (p *Pages) Get(ctx context.Context, client *collect.Client, launch map[string]facts.Setting, buf []byte) ([]byte, error) {
	body, err := client.Get(ctx, "/metrics", collect.MetricsAccept, buf)
	if err != nil || p.closed {
		return body, Explain(err)
	}
	var status *collect.StatusError
	p.buf, err = client.Get(ctx, "/slots", "application/json", p.buf[:0])
	if errors.As(err, &status) {
		p.closed = status.Code < 500 || status.Code == http.StatusNotImplemented
		return body, nil
	}
	if err != nil {
		return body, err
	}
	slots, err := parse(p.buf)
	if err != nil {
		return body, fmt.Errorf("%s/slots: %w", client.Target().Base(), err)
	}
	return p.extend(body, slots, launch), nil
}

// parse parses what /slots answered.
func parse(text []byte) (slots []slot, err error) {
	err = json.Unmarshal(text, &slots)
	return slots, err
}

// Explain returns the error of a metrics page with the next step: the server answers 501 unless it was
// started with --metrics.
func Explain(err error) error {
	var status *collect.StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotImplemented {
		return fmt.Errorf("%w: llama.cpp serves metrics only with --metrics: restart it with that flag", err)
	}
	return err
}

// extend appends to a page what follows from the slots that were read just after it.
func (p *Pages) extend(body []byte, slots []slot, launch map[string]facts.Setting) []byte {
	if err := collect.Parse(body, counted, &p.families); err != nil || !bytes.HasSuffix(body, []byte("\n")) {
		return body // the reader says what is wrong with it
	}
	value := func(name string) stat.Opt {
		for _, s := range p.families.Samples {
			if s.Name == "llamacpp:"+name {
				return stat.Finite(s.Value)
			}
		}
		return stat.None
	}
	put := func(name string, v stat.Opt) {
		if v.OK {
			body = append(body, "llamacpp:slots"+name+" "+strconv.FormatFloat(v.V, 'g', -1, 64)+"\n"...)
		}
	}
	mean := func(name string, sum stat.Opt, count stat.Opt) {
		if sum.OK && count.OK {
			put(name+"_sum", sum)
			put(name+"_count", count)
		}
	}
	predicted, decoding := value("tokens_predicted_total"), value("tokens_predicted_seconds_total")
	computed, cached := value("prompt_tokens_total"), value("prompt_tokens_cached_total")
	prompt := computed.Plus(stat.Some(cached.Or(0)))
	now := totals{prompt.Or(0), predicted.Or(0), value("prompt_seconds_total").Or(0), decoding.Or(0)}
	generating, held := p.count(slots, now)
	put("", stat.Some(float64(len(slots))))
	if size := pool(slots, launch); size.OK {
		put("_kv_tokens", size)
		put("_kv_usage", stat.Some(min(1, held/size.V)))
	}
	// A request that ended between the two answers is on neither of them.
	p.generated = max(p.generated, now.predicted+generating)
	put("_generation_tokens_total", stat.Some(p.generated))
	if cached.OK {
		put("_prompt_tokens_total", prompt)
	}
	mean("_token_seconds", decoding, predicted)
	mean("_step_tokens", computed.Plus(stat.Some(p.generated)), value("n_decode_total"))
	if p.countable() {
		requests := stat.Some(p.requests)
		put("_requests_total", requests)
		mean("_request_prompt_tokens", stat.Some(now.prompt-p.first.prompt), requests)
		mean("_request_output_tokens", stat.Some(now.predicted-p.first.predicted), requests)
		mean("_prompt_seconds", stat.Some(now.promptSeconds-p.first.promptSeconds), requests)
		mean("_generation_seconds", stat.Some(now.predictedSeconds-p.first.predictedSeconds), requests)
	}
	return body
}

// count counts the requests that left their slots since the previous page, and returns what those that are in
// them have generated and hold, in tokens.
func (p *Pages) count(slots []slot, now totals) (generating, held float64) {
	if p.last == nil || now.predicted < p.predicted { // the first page, or another server
		p.last, p.first, p.generated, p.requests, p.busy = nil, now, 0, 0, 0
	}
	p.predicted = now.predicted
	for _, s := range slots {
		if s.Processing {
			p.busy++
			generating += float64(s.Next.Generated)
			held += float64(max(s.Held, s.Computed+s.Cached+s.Next.Generated))
		}
		for _, before := range p.last {
			if before.ID != s.ID {
				continue
			}
			if before.Processing && s.Task != before.Task {
				p.requests++
			}
			if !s.Processing && (before.Processing && s.Task == before.Task || s.Task > before.Task) {
				p.requests++
			}
		}
	}
	p.last = slots
	return generating, held
}

const (
	// countFrom is the number of requests from which it shows whether they are counted well.
	countFrom = 8
	// countPages is how many pages a request must last on average: of shorter ones, some come and go in a slot
	// between two pages.
	countPages = 2
)

// countable reports whether requests last long enough to be counted by what their slots serve.
func (p *Pages) countable() bool {
	if p.requests < countFrom || p.busy == 0 {
		return true
	}
	length, page := (p.predicted-p.first.predicted)/p.requests, (p.generated-p.first.predicted)/p.busy
	return length >= countPages*page
}

// pool returns the tokens that all slots may hold together, --ctx-size: it is divided among them unless they
// share one KV buffer, which each then may fill. /slots does not report which, so it is unknown without the
// launch.
func pool(slots []slot, launch map[string]facts.Setting) stat.Opt {
	if launch == nil || len(slots) == 0 {
		return stat.None
	}
	size := 0
	for _, s := range slots {
		size += s.Context
	}
	if Unified(launch) {
		size = slots[0].Context
	}
	return stat.Some(float64(size))
}

// Unified reports whether the slots of a launch share one KV buffer: by --kv-unified, or because their number
// is left to the server.
func Unified(launch map[string]facts.Setting) bool {
	if s, ok := launch["kv_unified"]; ok {
		return s.Value == "true"
	}
	n, ok := launch["max_num_seqs"]
	return !ok || n.Value == "-1"
}
