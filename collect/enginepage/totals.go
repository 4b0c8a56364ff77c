package enginepage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// metricsPath is the path of the metrics page of every engine.
const metricsPath = "/metrics"

// totalsInterval is how often totals are read at most. Rendering a page takes milliseconds of vLLM's event loop, and a
// probe needs only the values at its start and end.
const totalsInterval = time.Second

// Totals reads the few numbers of a server's metrics page that cross-check what its clients measured: tokens, requests,
// queue and time to first token, of all models and clients together. Besides the engines that are diagnosed it knows TGI.
// Reading llama.cpp's page resets its averages (prompt_tokens_seconds, predicted_tokens_seconds), not its totals. It keeps
// the parsed series between readings, so it must not be used concurrently.
type Totals struct {
	client   *collect.Client
	dialect  totalsDialect
	filter   *collect.Filter
	families collect.Families
	body     []byte
	pacer    Pacer
}

// OpenTotals reads the page once and returns a Totals with the name of the engine that wrote
// it: "vLLM", "SGLang", "llama.cpp" or "TGI". The error wraps collect.ErrNoData, with
// the reason and the next step, if the server has no usable page; any other error
// is that of collect.Client.Get.
func OpenTotals(ctx context.Context, client *collect.Client) (r *Totals, engine string, err error) {
	body, err := client.Get(ctx, metricsPath, collect.MetricsAccept, nil)
	if err != nil {
		return nil, "", wrapRefusal(client.Target().Base()+metricsPath, err)
	}
	d, err := totalsOf(body)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", client.Target().Base()+metricsPath, err)
	}
	return newTotals(client, d), d.engine, nil
}

// Interval returns the time from one reading to the next that does not disturb the server.
func (r *Totals) Interval() time.Duration { return r.pacer.Interval() }

// Counting returns when the page's counter of output tokens grows.
func (r *Totals) Counting() capture.Counting { return r.dialect.counting }

func newTotals(client *collect.Client, d totalsDialect) *Totals {
	r := &Totals{client: client, dialect: d, pacer: Pacer{Base: totalsInterval}}
	var names []string
	for _, f := range d.fields {
		names = append(names, slices.Concat(f.names, f.plus)...)
		if f.times != "" {
			names = append(names, f.times)
		}
	}
	r.filter = collect.NewExactFilter(names...)
	return r
}

// wrapRefusal wraps collect.ErrNoData around a status that means that the server has no
// metrics page, and returns other errors unchanged.
func wrapRefusal(where string, err error) error {
	var status *collect.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch status.Code {
	case http.StatusNotImplemented:
		return fmt.Errorf("%w: %s answered 501: llama.cpp serves metrics only with --metrics; restart it with that flag", collect.ErrNoData, where)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: %s answered %d: SGLang serves metrics with --enable-metrics, Ollama and LM Studio serve none", collect.ErrNoData, where, status.Code)
	}
	return err
}

// totalsOf returns the dialect of the engine that wrote a page.
func totalsOf(body []byte) (totalsDialect, error) {
	// promtext decides whether this is a metrics page at all; no sample is kept.
	var none collect.Families
	if err := collect.Parse(body, collect.NewExactFilter(), &none); err != nil {
		if errors.Is(err, collect.ErrNotMetrics) {
			return totalsDialect{}, fmt.Errorf("%w: %w; this server serves no metrics", collect.ErrNoData, err)
		}
		return totalsDialect{}, err
	}
	names := collect.Names(body, 10_000)
	for _, d := range totalsDialects() {
		if slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(d.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		}) {
			return d, nil
		}
	}
	if len(names) == 0 {
		return totalsDialect{}, fmt.Errorf("%w: the page has no metrics", collect.ErrNoData)
	}
	first := strings.Join(names[:min(len(names), 3)], ", ")
	return totalsDialect{}, fmt.Errorf("%w: the page has no metrics of a known engine, only names such as %s; vLLM serves such a page with --disable-log-stats: restart it without that flag", collect.ErrNoData, first)
}

// Sample reads the page once. At is halfway between the request and the end of the
// response, by the clock; Took is the time between them. If the page cannot be read,
// Error says why and no values are set.
func (r *Totals) Sample(ctx context.Context, clock func() time.Duration) capture.PageSample {
	asked := clock()
	body, err := r.client.Get(ctx, metricsPath, collect.MetricsAccept, r.body[:0])
	took := clock() - asked
	r.body = body
	s := capture.PageSample{At: asked + took/2, Took: took}
	if err == nil {
		err = r.read(body, &s)
	}
	if err != nil {
		s.Error = err.Error()
	} else {
		r.pacer.Observe(took)
	}
	return s
}

// read parses a page into s. After an error s is unchanged.
func (r *Totals) read(body []byte, s *capture.PageSample) error {
	if err := collect.Parse(body, r.filter, &r.families); err != nil {
		return err
	}
	fields := s.Fields()
	for i := range r.dialect.fields {
		f := &r.dialect.fields[i]
		value := r.first(f)
		for _, name := range f.plus {
			if more := r.total(name, f.merge); value.OK && more.OK {
				value = value.Plus(more)
			}
		}
		if f.times != "" {
			value = product(value, r.total(f.times, f.merge))
		}
		*fields[f.page] = value
	}
	return nil
}
