// Package prometheus reads what a Prometheus server scraped of vLLM servers: the pages as they
// were, one for each scrape. It speaks Prometheus' HTTP API, which Thanos, Mimir and
// VictoriaMetrics have too, and only queries.
package prometheus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
)

// Options say where a Prometheus server is and how to reach it.
type Options struct {
	URL string // of its API, as http://prometheus:9090 or https://mimir/prometheus
	// HTTPConfig is a file with TLS, credentials and headers, as that of promtool's
	// --http.config.file; "" for none.
	HTTPConfig string
	UserAgent  string
}

// Source queries one Prometheus server.
type Source struct {
	url string
	api v1.API
}

// maxAnswer bounds the answer to a query, in bytes.
const maxAnswer = 256 << 20

// queryTimeout bounds a query, its answer included.
const queryTimeout = 30 * time.Second

// Open returns a source. It reads the HTTP configuration, if there is one, and sends no request.
func Open(o Options) (*Source, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL of a Prometheus server: give it as http://HOST:9090", o.URL)
	}
	var c config.HTTPClientConfig
	if o.HTTPConfig != "" {
		read, _, err := config.LoadHTTPConfigFile(o.HTTPConfig)
		if err != nil {
			return nil, fmt.Errorf("read the HTTP configuration: %w", err)
		}
		c = *read
	}
	c.FollowRedirects = false // to no address that was not given
	client, err := config.NewClientFromConfig(c, "rooftop", config.WithUserAgent(o.UserAgent))
	if err != nil {
		return nil, fmt.Errorf("read the HTTP configuration: %w", err)
	}
	client.Transport = limited{client.Transport}
	server, err := api.NewClient(api.Config{Address: o.URL, Client: client})
	if err != nil {
		return nil, err
	}
	return &Source{url: o.URL, api: v1.NewAPI(server)}, nil
}

// limited cuts answers that are larger than maxAnswer.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// Range is a span of time, its ends included.
type Range struct{ From, To time.Time }

// Target are the labels that tell one scraped server from the others: cluster, job and instance.
type Target struct {
	// Name is its instance, or all labels where several servers have it.
	Name   string
	Labels model.LabelSet
}

// Match returns the label matchers that select the target alone, as --match takes them.
func (t Target) Match() string {
	var list []string
	for _, name := range targetLabels {
		if v := t.Labels[name]; v != "" && (name == model.InstanceLabel || t.Name != string(t.Labels[model.InstanceLabel])) {
			list = append(list, fmt.Sprintf("%s=%q", name, string(v)))
		}
	}
	return strings.Join(list, ",")
}

// targetLabels are the labels of a target.
var targetLabels = [...]model.LabelName{"cluster", model.JobLabel, model.InstanceLabel}

// prefixes match the prefixes of vLLM's families, as exporters spell them.
func prefixes() string {
	list := make([]string, len(catalog.Spellings))
	for i, p := range catalog.Spellings {
		list[i] = regexp.QuoteMeta(p)
	}
	return "(" + strings.Join(list, "|") + ")"
}

// besides are the families beside vLLM's own that say how a server is: whether it could be scraped,
// when it started, what it answered, and that it is simulated.
const besides = "up|process_start_time_seconds|http_requests_total|sim_info"

// Targets returns the servers of which vLLM series were scraped in a range, in the order of their
// names. match holds label matchers such as `model_name="x",namespace="prod"`; with "" it returns
// also the targets of the same jobs that cannot be scraped at its end.
func (s *Source) Targets(ctx context.Context, match string, r Range) ([]Target, error) {
	chosen := strings.Trim(strings.TrimSpace(match), "{},")
	if chosen != "" {
		chosen = "," + chosen
	}
	by := "count by (cluster, job, instance) "
	found, err := s.query(ctx, fmt.Sprintf(`%s(last_over_time({__name__=~"%snum_requests_running"%s}[%s]))`, by, prefixes(), chosen, milliseconds(r)), r)
	if err != nil {
		return nil, err
	}
	vector, ok := found.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s answered with a %s: is it a Prometheus server?", s.url, found.Type())
	}
	var jobs []string
	for _, one := range vector {
		if job := string(one.Metric[model.JobLabel]); job != "" {
			jobs = append(jobs, regexp.QuoteMeta(job))
		}
	}
	if chosen == "" && len(jobs) > 0 {
		slices.Sort(jobs)
		down, err := s.query(ctx, fmt.Sprintf(`%s(up{job=~%q} == 0)`, by, strings.Join(slices.Compact(jobs), "|")), r)
		if err != nil {
			return nil, err
		}
		if more, ok := down.(model.Vector); ok {
			vector = append(vector, more...)
		}
	}
	return targets(vector), nil
}

// targets returns the targets of samples, each once.
func targets(vector model.Vector) []Target {
	byKey := map[string]model.LabelSet{}
	instances := map[model.LabelValue]int{}
	for _, one := range vector {
		labels := model.LabelSet(one.Metric)
		if byKey[labels.String()] == nil {
			byKey[labels.String()] = labels
			instances[labels[model.InstanceLabel]]++
		}
	}
	var out []Target
	for key, labels := range byKey {
		name := string(labels[model.InstanceLabel])
		if name == "" || instances[labels[model.InstanceLabel]] > 1 {
			name = key
		}
		out = append(out, Target{Name: name, Labels: labels})
	}
	slices.SortFunc(out, func(a, b Target) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Pages returns the pages of one server that were scraped in a range, in the order of time.
func (s *Source) Pages(ctx context.Context, t Target, r Range) ([]Page, error) {
	selector := fmt.Sprintf(`{__name__=~"%s.+|%s"`, prefixes(), besides)
	for _, name := range targetLabels {
		selector += fmt.Sprintf(",%s=%q", name, string(t.Labels[name]))
	}
	value, err := s.query(ctx, selector+"}["+milliseconds(r)+"]", r)
	if err != nil {
		return nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("%s answered a range with a %s: is it a Prometheus server?", s.url, value.Type())
	}
	return pages(matrix, r), nil
}

// milliseconds returns the length of a range as PromQL writes it. Its beginning counts.
func milliseconds(r Range) string { return fmt.Sprintf("%dms", r.To.Sub(r.From).Milliseconds()+1) }

// query returns the value of a query at the end of a range.
func (s *Source) query(ctx context.Context, query string, r Range) (model.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	value, _, err := s.api.Query(ctx, query, r.To, v1.WithTimeout(queryTimeout))
	if err != nil {
		return nil, s.explain(err)
	}
	return value, nil
}

// explain returns an error as one sentence with the next step.
func (s *Source) explain(err error) error {
	var answer *v1.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return fmt.Errorf("%s: %w: more than %d MiB; ask for a shorter time, or for fewer servers with --match", s.url, collect.ErrTooLarge, maxAnswer>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: no answer within %v; ask for a shorter time, or for fewer servers with --match", s.url, collect.ErrUnreachable, queryTimeout)
	case !errors.As(err, &answer):
		var sending *url.Error
		if errors.As(err, &sending) {
			err = sending.Err
		}
		return fmt.Errorf("%s: %w: %w", s.url, collect.ErrUnreachable, err)
	}
	why := cmp.Or(strings.TrimSpace(answer.Msg), answer.Error())
	var body struct{ ErrorType, Error string } // of an answer with a status that the library does not parse
	if json.Unmarshal([]byte(answer.Detail), &body) == nil && body.Error != "" {
		why, answer.Type = body.Error, v1.ErrorType(body.ErrorType)
	}
	switch answer.Type {
	case v1.ErrBadResponse:
		return fmt.Errorf("%s: %w as a Prometheus server: its answer is something else; check --prometheus", s.url, collect.ErrUnreachable)
	case v1.ErrBadData:
		return fmt.Errorf("%s refuses the query: %s; check --match", s.url, why)
	case v1.ErrExec, v1.ErrTimeout, v1.ErrCanceled:
		return fmt.Errorf("%s gave the query up: %s; ask for a shorter time, or for fewer servers with --match", s.url, why)
	case v1.ErrClient:
		return fmt.Errorf("%s: %s; check --prometheus and --http-config", s.url, why)
	}
	return fmt.Errorf("%s: %w: %s", s.url, collect.ErrUnreachable, why)
}
