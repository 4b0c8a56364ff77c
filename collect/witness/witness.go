package witness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/promtext"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// endpoint is where all engines have their page.
const endpoint = "/metrics"

// Witness reads one server's page. It keeps what it learned of the page's series for
// the next reading, so it must not be used concurrently.
type Witness struct {
	client   *collect.Client
	dialect  dialect
	filter   *promtext.Filter
	families promtext.Families
	body     []byte
}

// Open reads a server's page once and returns a witness with the name of the engine
// that wrote it: "vLLM", "SGLang", "llama.cpp" or "TGI". The error wraps
// collect.ErrNoData, with the reason and the next step, where the server has no page
// that says anything; else it is that of collect.Client.Get.
func Open(ctx context.Context, client *collect.Client) (w *Witness, engine string, err error) {
	body, err := client.Get(ctx, endpoint, collect.MetricsAccept, nil)
	if err != nil {
		return nil, "", refused(client.Target().Base()+endpoint, err)
	}
	d, err := recognise(body)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", client.Target().Base()+endpoint, err)
	}
	return newWitness(client, d), d.engine, nil
}

// Counting is when the page's counter of output tokens moves.
func (w *Witness) Counting() capture.Counting { return w.dialect.counting }

func newWitness(client *collect.Client, d dialect) *Witness {
	w := &Witness{client: client, dialect: d}
	var names []string
	for _, f := range d.fields {
		names = append(names, slices.Concat(f.names, f.plus)...)
		if f.times != "" {
			names = append(names, f.times)
		}
	}
	w.filter = promtext.NewExactFilter(names...)
	return w
}

// refused turns a refusal that means that there is no page into collect.ErrNoData.
func refused(where string, err error) error {
	var status *collect.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch status.Code {
	case http.StatusNotImplemented:
		return fmt.Errorf("%w: %s answered 501: llama.cpp's server has its metrics off; restart it with --metrics", collect.ErrNoData, where)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: %s answered %d: SGLang has metrics with --enable-metrics, Ollama and LM Studio have none", collect.ErrNoData, where, status.Code)
	}
	return err
}

// recognise finds out whose page it is.
func recognise(body []byte) (dialect, error) {
	// promtext judges what is no page; nothing of it is wanted yet.
	var none promtext.Families
	if err := promtext.Parse(body, promtext.NewExactFilter(), &none); err != nil {
		if errors.Is(err, promtext.ErrNotMetrics) {
			return dialect{}, fmt.Errorf("%w: %w; this server has no metrics", collect.ErrNoData, err)
		}
		return dialect{}, err
	}
	names := promtext.Names(body, 10_000)
	for _, d := range dialects() {
		if slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(d.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		}) {
			return d, nil
		}
	}
	if len(names) == 0 {
		return dialect{}, fmt.Errorf("%w: the page holds no metrics", collect.ErrNoData)
	}
	first := strings.Join(names[:min(len(names), 3)], ", ")
	return dialect{}, fmt.Errorf("%w: the page holds no metrics of an engine that is known, only %s and the like; a vLLM server with --disable-log-stats shows such a page: restart it without", collect.ErrNoData, first)
}

// Sample reads the page once. At is halfway between the question and the end of the
// answer, by the clock; Took is the time between them. Where the page cannot be read
// Error says why and nothing else is set.
func (w *Witness) Sample(ctx context.Context, clock func() time.Duration) capture.PageSample {
	asked := clock()
	body, err := w.client.Get(ctx, endpoint, collect.MetricsAccept, w.body[:0])
	took := clock() - asked
	w.body = body
	s := capture.PageSample{At: asked + took/2, Took: took}
	if err == nil {
		err = w.read(body, &s)
	}
	if err != nil {
		s.Error = err.Error()
	}
	return s
}

// read takes a page into s. After an error s is as it was.
func (w *Witness) read(body []byte, s *capture.PageSample) error {
	if err := promtext.Parse(body, w.filter, &w.families); err != nil {
		return err
	}
	for i := range w.dialect.fields {
		f := &w.dialect.fields[i]
		value := w.first(f)
		for _, name := range f.plus {
			if more := w.total(name, f.merge); value.OK && more.OK {
				value = value.Plus(more)
			}
		}
		if f.times != "" {
			value = product(value, w.total(f.times, f.merge))
		}
		*f.into(s) = value
	}
	return nil
}
