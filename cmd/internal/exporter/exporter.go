// Package exporter serves the latest diagnoses of servers as metrics for Prometheus, and holds what
// Prometheus, Grafana and the Prometheus operator need to watch them: rules, dashboards and monitors.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Source returns the diagnoses of all servers. It is called again and again until ctx ends. Servers returned with an
// error are those that it knows of; only their names count.
type Source func(ctx context.Context) ([]fleet.Server, error)

// Exporter holds the latest diagnoses.
type Exporter struct {
	registry *prometheus.Registry

	mu      sync.Mutex
	servers []fleet.Server
	ended   time.Time // of the latest diagnosis that succeeded; zero before the first
	failed  float64   // diagnoses that failed
}

// New returns an exporter without a diagnosis. version is that of rooftop.
func New(version string) *Exporter {
	e := &Exporter{registry: prometheus.NewRegistry()}
	e.registry.MustRegister(e, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rooftop_build_info", Help: "The version of rooftop.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 }))
	return e
}

// Run diagnoses until ctx ends, each time after a pause. After a diagnosis that fails, the servers that the source knows
// of, or else those of the previous diagnosis, count as unreadable: stale data never looks healthy, and a known server
// never vanishes. failed is called with its error.
func (e *Exporter) Run(ctx context.Context, source Source, pause time.Duration, failed func(error)) {
	for {
		servers, err := source(ctx)
		if ctx.Err() != nil {
			return
		}
		e.mu.Lock()
		if err == nil {
			e.servers, e.ended = servers, time.Now()
		} else {
			if servers == nil {
				servers = e.servers
			}
			e.servers = unread(servers, err)
			e.failed++
		}
		e.mu.Unlock()
		if err != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// unread returns the servers of a list as ones that could not be read.
func unread(list []fleet.Server, err error) []fleet.Server {
	out := make([]fleet.Server, len(list))
	for i := range list {
		out[i] = fleet.Unread(list[i].Name, err.Error())
	}
	return out
}

// Serve answers /metrics on a listener until ctx ends.
func (e *Exporter) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", e.page)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "rooftop exporter: see /metrics") })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (e *Exporter) page(w http.ResponseWriter, r *http.Request) {
	families, err := e.registry.Gather()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
	w.Header().Set("Content-Type", string(format))
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return
		}
	}
	if c, ok := encoder.(expfmt.Closer); ok {
		_ = c.Close()
	}
}

// The metrics of one server have the label server; its value is a scraped instance or a URL.
var (
	ended      = prometheus.NewDesc("rooftop_diagnosis_timestamp_seconds", "When the latest diagnosis ended, in Unix time.", nil, nil)
	failures   = prometheus.NewDesc("rooftop_diagnosis_failures_total", "Diagnoses that failed as a whole: no server could be read.", nil, nil)
	info       = prometheus.NewDesc("rooftop_server_info", "Information about the server.", []string{"server", "model", "release", "gpu"}, nil)
	readable   = prometheus.NewDesc("rooftop_server_readable", "1 if the latest diagnosis could determine the state of the server, else 0. Absent for a server that no diagnosis has found, or that Prometheus no longer has.", []string{"server"}, nil)
	condition  = prometheus.NewDesc("rooftop_server_ill", "1 for the state of a server that is ill: down, dead, hung, partly-hung or failing.", []string{"server", "state"}, nil)
	evaluable  = prometheus.NewDesc("rooftop_server_evaluable", "1 if the server had a load that could be judged, else 0.", []string{"server"}, nil)
	findings   = prometheus.NewDesc("rooftop_finding", "1 for each finding of the server.", []string{"server", "finding"}, nil)
	change     = prometheus.NewDesc("rooftop_recommended_change_info", "The one change that is recommended.", []string{"server", "finding", "kind", "flag", "from", "to"}, nil)
	gain       = prometheus.NewDesc("rooftop_predicted_output_gain_ratio", "Relative change of output that the recommended change is predicted to bring, with its 80 % range.", []string{"server", "bound"}, nil)
	saves      = prometheus.NewDesc("rooftop_predicted_savings_dollars_per_hour", "Share of the server's price, as given or else of the catalog, that the change is predicted to save for the same output.", []string{"server", "bound"}, nil)
	output     = prometheus.NewDesc("rooftop_output_tokens_per_second", "Output that the diagnosis measured.", []string{"server"}, nil)
	ceiling    = prometheus.NewDesc("rooftop_ceiling_tokens_per_second", "Output that the hardware allows with the running requests, estimated.", []string{"server", "ceiling"}, nil)
	groups     = prometheus.NewDesc("rooftop_group_finding", "1 for each imbalance among the servers of one model.", []string{"model", "finding"}, nil)
	allMetrics = [...]*prometheus.Desc{ended, failures, info, readable, condition, evaluable, findings, change, gain, saves, output, ceiling, groups}
)

// visible returns a label in which control characters and bidirectional overrides are spelled, as \u202e.
func visible(label string) string {
	if !strings.ContainsFunc(label, func(r rune) bool { return !strconv.IsGraphic(r) || r == '\\' }) {
		return label
	}
	quoted := strconv.QuoteToGraphic(label)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Describe implements [prometheus.Collector].
func (e *Exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range allMetrics {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. A figure that is absent has no series.
func (e *Exporter) Collect(ch chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		for i, label := range labels {
			labels[i] = visible(label)
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	figure := func(d *prometheus.Desc, v stat.Opt, labels ...string) {
		if v.Finite().OK {
			gauge(d, v.V, labels...)
		}
	}
	span := func(d *prometheus.Desc, s fleet.Span, server string) {
		figure(d, s.Low, server, "low")
		figure(d, s.Mid, server, "mid")
		figure(d, s.High, server, "high")
	}
	ch <- prometheus.MustNewConstMetric(failures, prometheus.CounterValue, e.failed)
	if !e.ended.IsZero() {
		gauge(ended, float64(e.ended.UnixMilli())/1e3)
	}
	for i := range e.servers {
		s := &e.servers[i]
		if s.Unread != "" {
			gauge(readable, 0, s.Name)
			continue
		}
		gauge(readable, 1, s.Name)
		gauge(info, 1, s.Name, s.Target.Model, s.Target.EngineVersion, s.Facts.GPUName.Value)
		judged := 0.0
		if s.Outcome == engine.OutcomeHealthy || s.Outcome == engine.OutcomeRecommendation {
			judged = 1
		}
		gauge(evaluable, judged, s.Name)
		if s.Condition.Ill() {
			gauge(condition, 1, s.Name, string(s.Condition.State))
			continue // means from before are no figures of now
		}
		for j := range s.Findings {
			if f := &s.Findings[j]; f.State == engine.Fired && f.Significant {
				gauge(findings, 1, s.Name, string(f.ID))
			}
		}
		if r := s.Recommendation; r != nil {
			gauge(change, 1, s.Name, string(r.Finding), string(r.Kind), r.Flag, r.From, r.To)
		}
		span(gain, s.Gain(), s.Name)
		span(saves, s.Waste(), s.Name)
		figure(output, s.Quantity("generation_tokens_per_s").Value, s.Name)
		if p := s.Ceiling.Physical; p != nil {
			figure(ceiling, p.IdealTokensPerS, s.Name, "ideal")
			figure(ceiling, p.AchievableLower, s.Name, "achievable_low")
			figure(ceiling, p.AchievableTokensPerS, s.Name, "achievable")
			figure(ceiling, p.AchievableUpper, s.Name, "achievable_high")
		}
	}
	for _, f := range fleet.Findings(e.servers) {
		gauge(groups, 1, f.Model, string(f.ID))
	}
}
