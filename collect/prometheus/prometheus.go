// Package prometheus reads what a Prometheus server scraped from inference servers: the pages as
// they were, one for each scrape. It speaks Prometheus' HTTP API, which Thanos, Mimir and
// VictoriaMetrics have too, and only queries.
package prometheus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
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
	// --http.config.file, and Read reads it; "" for none.
	HTTPConfig string
	Read       func(path string) ([]byte, error)
	UserAgent  string
	// Series are the names of the engines' series to read, without the prefix; nil reads all.
	Series []string
	// Dial opens connections; nil is the network. Tests have none.
	Dial Dial
}

// Dial opens a connection to an address, as [net.Dialer.DialContext] does.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Source queries one Prometheus server.
type Source struct {
	url   string
	api   v1.API
	names string // pattern of the names of series that pages have
}

// maxAnswer bounds the answer to a query, in bytes. The client takes up to four times as much memory for it.
const maxAnswer = 128 << 20

// Time limits of a query, its answer included: queryTimeout if a reading needs it, gpuTimeout for that of the GPUs,
// without which the reading continues.
const (
	queryTimeout = 30 * time.Second
	gpuTimeout   = 5 * time.Second
)

// ErrSlow means that there was no answer to a query in time. It wraps [collect.ErrUnreachable].
var ErrSlow = fmt.Errorf("%w: no answer within %v", collect.ErrUnreachable, queryTimeout)

// Open returns a source. It reads the HTTP configuration, if there is one, and sends no request.
func Open(o Options) (*Source, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of a Prometheus server: give it as http://HOST:9090", o.URL)
	}
	var c config.HTTPClientConfig
	if o.HTTPConfig != "" {
		text, err := o.Read(o.HTTPConfig)
		if err != nil {
			return nil, fmt.Errorf("read the HTTP configuration: %w", err)
		}
		read, err := config.LoadHTTPConfig(string(text))
		if err != nil {
			return nil, fmt.Errorf("read the HTTP configuration: %w", err)
		}
		read.SetDirectory(filepath.Dir(o.HTTPConfig))
		c = *read
	}
	c.FollowRedirects = false // to no address that was not given
	options := []config.HTTPClientOption{config.WithUserAgent(o.UserAgent)}
	if o.Dial != nil {
		options = append(options, config.WithDialContextFunc(o.Dial))
	}
	client, err := config.NewClientFromConfig(c, "rooftop", options...)
	if err != nil {
		return nil, fmt.Errorf("read the HTTP configuration: %w", err)
	}
	client.Transport = limited{client.Transport}
	server, err := api.NewClient(api.Config{Address: o.URL, Client: client})
	if err != nil {
		return nil, err
	}
	series := ".+"
	if o.Series != nil {
		series = "(" + oneOf(o.Series) + ")"
	}
	return &Source{url: o.URL, api: v1.NewAPI(server), names: prefixes() + series + "|" + besides}, nil
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

// Target is the labels that distinguish one scraped server from the others: cluster, job and
// instance.
type Target struct {
	// Name is its instance, or all labels if several servers have it.
	Name   string
	Labels model.LabelSet
	// GPU is the name of its GPUs, and GPUs how many its pod has, as far as [Source.NameGPUs] found them: "" and 0
	// if unknown.
	GPU  string
	GPUs int

	pods []pod // that it was in a range, several if its pod was replaced; none outside Kubernetes
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

// Deployment returns what the target is part of: its job, and the cluster of it if there is one.
func (t Target) Deployment() string {
	cluster, job := string(t.Labels["cluster"]), string(t.Labels[model.JobLabel])
	if cluster == "" {
		return job
	}
	return cluster + "/" + job
}

// targetLabels are the labels of a target.
var targetLabels = [...]model.LabelName{"cluster", model.JobLabel, model.InstanceLabel}

// prefixes match the prefixes of the engines' families, as exporters spell them.
func prefixes() string {
	var list []string
	for _, g := range catalog.Engines() {
		list = append(list, g.Families...)
	}
	return "(" + oneOf(list) + ")"
}

// running matches the names without prefixes of the gauges of running requests, which a page of an engine has.
func running() string {
	var list []string
	for _, g := range catalog.Engines() {
		for _, m := range g.Metrics() {
			if m.Key == "running" {
				list = append(list, m.Names...)
			}
		}
	}
	return "(" + oneOf(list) + ")"
}

// oneOf returns a pattern that matches the words of a list.
func oneOf(list []string) string {
	quoted := make([]string, len(list))
	for i, word := range list {
		quoted[i] = regexp.QuoteMeta(word)
	}
	return strings.Join(quoted, "|")
}

// besides are the families beside an engine's own that say how a server is: whether it could be scraped,
// when it started, what its API server does and answers, and that it is simulated.
const besides = "up|process_start_time_seconds|process_cpu_seconds_total|http_requests_total|sim_info"

// Targets returns the servers of which an engine's series were scraped in a range, in the order of their
// names, and the targets of the same jobs that cannot be scraped at its end. match holds label matchers such as
// `model_name="x",namespace="prod"`; a target that cannot be scraped has no labels of a page.
func (s *Source) Targets(ctx context.Context, match string, r Range) ([]Target, error) {
	chosen := strings.Trim(strings.TrimSpace(match), "{},")
	if chosen != "" {
		chosen = "," + chosen
	}
	by := "count by (cluster, job, instance, namespace, pod) " // the last two are for NameGPUs
	series := fmt.Sprintf(`{__name__=~"%s%s"%s}`, prefixes(), running(), chosen)
	found, err := s.query(ctx, fmt.Sprintf("%s(last_over_time(%s[%s]))", by, series, milliseconds(r)), r)
	if err != nil {
		return nil, err
	}
	vector, ok := found.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s answered with a %s: is it a Prometheus server?", s.url, found.Type())
	}
	// A job whose servers have all been down for long had its series a day ago.
	jobs := fmt.Sprintf("count by (job) (last_over_time(%[1]s[%[2]s]) or %[1]s offset 1h or %[1]s offset 6h or %[1]s offset 1d)", series, milliseconds(r))
	down, err := s.query(ctx, fmt.Sprintf("%s(up{%s} == 0 and on (job) %s)", by, strings.TrimPrefix(chosen, ","), jobs), r)
	if err != nil {
		return nil, err
	}
	if more, ok := down.(model.Vector); ok {
		vector = append(vector, more...)
	}
	return targets(vector), nil
}

// targets returns the targets of samples, each once, with its pods.
func targets(vector model.Vector) []Target {
	byKey := map[[len(targetLabels)]model.LabelValue]*Target{}
	instances := map[model.LabelValue]int{}
	for _, one := range vector {
		key := labelsOf(model.LabelSet(one.Metric))
		t := byKey[key]
		if t == nil {
			t = &Target{Labels: model.LabelSet{}}
			for i, name := range targetLabels {
				if key[i] != "" {
					t.Labels[name] = key[i]
				}
			}
			byKey[key] = t
			instances[t.Labels[model.InstanceLabel]]++
		}
		p := pod{one.Metric["cluster"], one.Metric["namespace"], one.Metric["pod"]}
		if p.name != "" && !slices.Contains(t.pods, p) {
			t.pods = append(t.pods, p)
		}
	}
	var out []Target
	for _, t := range byKey {
		instance := t.Labels[model.InstanceLabel]
		if t.Name = string(instance); instance == "" || instances[instance] > 1 {
			t.Name = t.Labels.String()
		}
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Target) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Pages returns, for each server of a list, the pages that were scraped in a range, in the order of
// time. It is one query.
func (s *Source) Pages(ctx context.Context, list []Target, r Range) ([][]Page, error) {
	selector := fmt.Sprintf("{__name__=~%q", s.names)
	for _, name := range targetLabels {
		selector += "," + matcher(name, list)
	}
	value, err := s.query(ctx, selector+"}["+milliseconds(r)+"]", r)
	if err != nil {
		return nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("%s answered a range with a %s: is it a Prometheus server?", s.url, value.Type())
	}
	index := map[[len(targetLabels)]model.LabelValue]int{}
	for i, t := range list {
		index[labelsOf(t.Labels)] = i
	}
	series := make([]model.Matrix, len(list))
	for _, one := range matrix {
		if i, ok := index[labelsOf(model.LabelSet(one.Metric))]; ok { // the matchers may select more
			series[i] = append(series[i], one)
		}
	}
	out := make([][]Page, len(list))
	for i := range out {
		out[i] = pages(series[i], r)
	}
	return out, nil
}

// labelsOf returns the labels that distinguish a target from the others.
func labelsOf(set model.LabelSet) (out [len(targetLabels)]model.LabelValue) {
	for i, name := range targetLabels {
		out[i] = set[name]
	}
	return out
}

// matcher returns a matcher of the values that a label has in a list.
func matcher(name model.LabelName, list []Target) string {
	var values []string
	for _, t := range list {
		values = append(values, string(t.Labels[name]))
	}
	slices.Sort(values)
	if values = slices.Compact(values); len(values) == 1 {
		return fmt.Sprintf("%s=%q", name, values[0])
	}
	return fmt.Sprintf("%s=~%q", name, oneOf(values))
}

// milliseconds returns the length of a range as PromQL writes it. Its beginning counts.
func milliseconds(r Range) string { return fmt.Sprintf("%dms", r.To.Sub(r.From).Milliseconds()+1) }

// query returns the value of a query at the end of a range.
func (s *Source) query(ctx context.Context, query string, r Range) (model.Value, error) {
	return s.queryWithin(ctx, queryTimeout, query, r)
}

// queryWithin is query with another bound.
func (s *Source) queryWithin(ctx context.Context, bound time.Duration, query string, r Range) (model.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	value, _, err := s.api.Query(ctx, query, r.To, v1.WithTimeout(bound))
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
		return fmt.Errorf("%s: %w; ask for a shorter time, or for fewer servers with --match", s.url, ErrSlow)
	case !errors.As(err, &answer):
		var sending *url.Error
		var dialing *net.OpError
		next := ""
		switch {
		case errors.As(err, &dialing): // the address precedes it
			err, next = dialing.Err, ": is the Prometheus server up? check --prometheus"
		case errors.As(err, &sending):
			err = sending.Err
		}
		return fmt.Errorf("%s: %w: %w%s", s.url, collect.ErrUnreachable, err, next)
	}
	why := cmp.Or(strings.TrimSpace(answer.Msg), answer.Error())
	var body struct{ ErrorType, Error string } // of an answer with a status that the library does not parse
	if json.Unmarshal([]byte(answer.Detail), &body) == nil && body.Error != "" {
		why, answer.Type = body.Error, v1.ErrorType(body.ErrorType)
	}
	switch answer.Type {
	case v1.ErrBadResponse:
		return fmt.Errorf("%s: %w as a Prometheus server: it answered with something else; check --prometheus", s.url, collect.ErrUnreachable)
	case v1.ErrBadData:
		return fmt.Errorf("%s refuses the query: %s; check --match", s.url, why)
	case v1.ErrExec, v1.ErrTimeout, v1.ErrCanceled:
		return fmt.Errorf("%s gave the query up: %s; ask for a shorter time, or for fewer servers with --match", s.url, why)
	case v1.ErrClient:
		return fmt.Errorf("%s: %s; check --prometheus and --http-config", s.url, why)
	}
	return fmt.Errorf("%s: %w: %s", s.url, collect.ErrUnreachable, why)
}
