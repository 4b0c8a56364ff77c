package fleetscan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/prometheus"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// fake is a Prometheus server without a network that scrapes servers every 15 s.
type fake struct {
	servers []string
	lacks   func(instance, series string) bool // series that it does not have; nil for none
	down    string                             // the server that it cannot scrape, "" for none
	answers map[string]int                     // scrapes of a server that succeed before it is down; all if it has no entry
	removed map[string]bool                    // the servers that are not scraped at all after these
	ranks   map[string]int                     // data-parallel ranks of a server, 1 if it has no entry
	gpus    model.Vector                       // of DCGM exporters; a server's pod has its name
	flags   func(*attach.Options)              // that the user gives; nil for none
	// answer takes a query in place of the server, and reports whether it did.
	answer  func(w http.ResponseWriter, r *http.Request, query string) bool
	queries atomic.Int64
}

var (
	fakeBegin = time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	fakeRange = prometheus.Range{From: fakeBegin, To: fakeBegin.Add(10 * time.Minute)}
)

// ServeHTTP implements the query API.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	f.queries.Add(1)
	if f.answer != nil && f.answer(w, r, query) {
		return
	}
	var value model.Value = model.Vector{}
	switch {
	case strings.Contains(query, "DCGM_"):
		value = f.gpus
	case strings.Contains(query, "last_over_time"):
		var list model.Vector
		for _, s := range f.servers {
			m := model.Metric{"job": "vllm", "instance": model.LabelValue(s)}
			if slices.ContainsFunc(f.gpus, func(g *model.Sample) bool { return string(g.Metric["pod"]) == s }) {
				m["pod"] = model.LabelValue(s)
			}
			list = append(list, &model.Sample{Metric: m, Value: 1})
		}
		value = list
	case !strings.Contains(query, "== 0"):
		value = f.matrix(query)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": value.Type().String(), "result": value}})
}

// Series with their value at the beginning, and growth in a second.
var (
	vllmSeries = map[string][2]float64{
		"vllm:num_requests_running": {4, 0}, "vllm:num_requests_waiting": {0, 0}, "vllm:kv_cache_usage_perc": {0.2, 0},
		"vllm:generation_tokens_total": {1000, 200}, "vllm:prompt_tokens_total": {1000, 400}, "vllm:num_preemptions_total": {0, 0}, "up": {1, 0},
		"vllm:request_prompt_tokens_sum": {1000, 400}, "vllm:request_prompt_tokens_count": {10, 4},
	}
	sglangSeries = map[string][2]float64{
		"sglang:num_running_reqs": {4, 0}, "sglang:num_queue_reqs": {20, 0}, "sglang:token_usage": {0.2, 0}, "sglang:max_total_num_tokens": {16384, 0},
		"sglang:time_to_first_token_seconds_count": {100, 1}, "sglang:inter_token_latency_seconds_count": {1000, 199},
		"sglang:prompt_tokens_total": {1000, 400}, "sglang:num_requests_total": {100, 1}, "up": {1, 0},
	}
)

// matrix returns the series of the servers that a query selects.
func (f *fake) matrix(query string) model.Matrix {
	all := model.Matrix{}
	for _, instance := range f.servers {
		if !strings.Contains(query, instance+`"`) && !strings.Contains(query, instance+"|") {
			continue
		}
		of := vllmSeries
		if strings.HasPrefix(instance, "sglang") {
			of = sglangSeries
		}
		for name, at := range of {
			if f.lacks != nil && f.lacks(instance, name) || instance == f.down && name != "up" {
				continue
			}
			if instance == f.down {
				at = [2]float64{}
			}
			for rank := range max(1, f.ranks[instance]) {
				s := &model.SampleStream{Metric: model.Metric{model.MetricNameLabel: model.LabelValue(name), "job": "vllm", "instance": model.LabelValue(instance)}}
				if name != "up" {
					s.Metric["model_name"], s.Metric["engine"] = "Qwen/Qwen3-8B", model.LabelValue(strconv.Itoa(rank))
				}
				n := 0
				for t := time.Duration(0); t <= 10*time.Minute; t += 15 * time.Second {
					if most, few := f.answers[instance]; few && n >= most {
						if name == "up" && !f.removed[instance] {
							s.Values = append(s.Values, model.SamplePair{Timestamp: model.TimeFromUnixNano(fakeBegin.Add(t).UnixNano())})
						}
						continue
					}
					n++
					s.Values = append(s.Values, model.SamplePair{Timestamp: model.TimeFromUnixNano(fakeBegin.Add(t).UnixNano()), Value: model.SampleValue(at[0] + at[1]*t.Seconds())})
				}
				all = append(all, s)
				if name == "up" {
					break // of the whole server
				}
			}
		}
	}
	return all
}

// pipes is a listener whose connections stay in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error { close(p.closed); return nil }
func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the fleet through a fake on virtual time. It returns the time that this took.
func (f *fake) read(t *testing.T) (list []fleet.Server, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: f}
		go func() { _ = server.Serve(p) }()
		defer server.Close()
		o := Scraped{Prometheus: "http://prometheus:9090", dial: p.dial}
		o.Register(pflag.NewFlagSet("fleet", pflag.ContinueOnError))
		o.Prometheus = "http://prometheus:9090"
		given := attach.Options{Flags: pflag.NewFlagSet("fleet", pflag.ContinueOnError), Env: func(string) (string, bool) { return "", false }, Ceiling: attach.PhysicalCeiling}
		if f.flags != nil {
			f.flags(&given)
		}
		began, last := time.Now(), 0
		list, err = o.Fleet(t.Context(), &given, fakeRange, func(done, all int) {
			if last = max(last, done); all != len(f.servers) {
				t.Errorf("%d of %d servers", done, all)
			}
		})
		took = time.Since(began)
		if err == nil && last != len(f.servers) {
			t.Errorf("progress reached %d of %d servers", last, len(f.servers))
		}
	})
	return list, took, err
}

// numbered returns the names of n servers.
func numbered(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("gpu-%02d:8000", i))
	}
	return list
}

// refusing answers queries that select one of some servers with an error of Prometheus.
func refusing(code int, text string, servers ...string) func(http.ResponseWriter, *http.Request, string) bool {
	return func(w http.ResponseWriter, _ *http.Request, query string) bool {
		if !slices.ContainsFunc(servers, func(s string) bool { return strings.Contains(query, s) }) {
			return false
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
		return true
	}
}

// unread returns the names of the servers that were not read.
func unread(list []fleet.Server) (names []string) {
	for i := range list {
		if list[i].Unread != "" {
			names = append(names, list[i].Name)
		}
	}
	return names
}

func TestFleet(t *testing.T) {
	f := fake{servers: numbered(25)}
	list, _, err := f.read(t)
	if err != nil || len(list) != 25 {
		t.Fatalf("%d servers: %v", len(list), err)
	}
	for i := range list {
		if s := &list[i]; s.Outcome == engine.OutcomeNotEvaluable || s.Windows.Active == 0 || s.Deployment != "vllm" || !strings.Contains(s.Command, "--match 'instance=\""+s.Name) {
			t.Errorf("%s: %s, %d active windows, of %q, %s", s.Name, s.Outcome, s.Windows.Active, s.Deployment, s.Command)
		}
	}
	if got := f.queries.Load(); got != 3+7 {
		t.Errorf("%d queries, want 10: two for the targets, one for their GPUs, and one for four servers", got)
	}
}

func TestAServerThatWasDownAllTheTime(t *testing.T) {
	f := fake{servers: numbered(2)}
	f.down = f.servers[0]
	list, _, err := f.read(t)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d servers: %v", len(list), err)
	}
	for i := range list {
		if s := &list[i]; (s.Condition.State == engine.Down) != (s.Name == f.down) || s.Name == f.down && s.Deployment != "vllm" {
			t.Errorf("%s: %+v, of %q", s.Name, s.Condition, s.Deployment)
		}
	}
}

// A server whose pod's GPUs are counted has the ceiling and the price of all of them, and one whose host alone has GPUs
// has neither.
// A server that answered too seldom to be judged and has been down since is down.
func TestAServerThatWentDownAtOnce(t *testing.T) {
	f := fake{servers: numbered(5), removed: map[string]bool{"gpu-02:8000": true, "gpu-03:8000": true}}
	f.answers = map[string]int{"gpu-00:8000": 1, "gpu-01:8000": 2, "gpu-02:8000": 1, "gpu-03:8000": 2}
	list, _, err := f.read(t)
	if err != nil || len(list) != 5 {
		t.Fatalf("%d servers: %v", len(list), err)
	}
	for i := range list {
		s := &list[i]
		if _, gone := f.answers[s.Name]; gone != (s.Condition.State == engine.Down) || gone != (s.Outcome == engine.OutcomeUnhealthy) || gone != (i < 4) {
			t.Errorf("%d. %s: %s, %+v", i+1, s.Name, s.Outcome, s.Condition)
		}
	}
}

func TestGPUsOfAFleet(t *testing.T) {
	const h100 = "NVIDIA H100 80GB HBM3"
	gpus := func(pod string, n float64) *model.Sample {
		return &model.Sample{Metric: model.Metric{"pod": model.LabelValue(pod), "modelName": h100}, Value: model.SampleValue(n)}
	}
	f := fake{
		servers: []string{"four:1", "one:1", "ranks:1", "host:1"}, ranks: map[string]int{"ranks:1": 2},
		gpus: model.Vector{gpus("four:1", 4), gpus("one:1", 1), gpus("ranks:1", 4), {Metric: model.Metric{"Hostname": "host", "modelName": h100}, Value: 8}},
	}
	list, _, err := f.read(t)
	must(t, err)
	ideal := map[string]float64{}
	var got []string
	for i := range list {
		s := &list[i]
		p := s.Ceiling.Physical
		if p != nil {
			ideal[s.Name] = p.IdealTokensPerS.V
		}
		got = append(got, fmt.Sprintf("%s: %s, TP %d, price %v %.2f, ceiling %v",
			s.Name, s.Facts.GPUName.Value, s.Facts.TensorParallel.Value, s.Facts.CostPerHour.Known, s.Facts.CostPerHour.Value, p != nil))
		if why := s.Ceiling.PhysicalReason; (p == nil) != strings.Contains(why, "the number of these GPUs") {
			t.Errorf("%s: no ceiling because %q", s.Name, why)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{
		"four:1: " + h100 + ", TP 4, price true 13.80, ceiling true", "host:1: " + h100 + ", TP 1, price false 0.00, ceiling false",
		"one:1: " + h100 + ", TP 1, price true 3.45, ceiling true", "ranks:1: " + h100 + ", TP 2, price true 13.80, ceiling true",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ideal["four:1"] <= ideal["one:1"] {
		t.Errorf("ideal ceilings %v: want that of 4 GPUs above that of one", ideal)
	}
}

// A reading needs no answer about GPUs, waits 5 s for it, and does not ask where the user names them.
func TestAReadingNeedsNoNamesOfGPUs(t *testing.T) {
	refused := refusing(http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"subqueries are not allowed"}`, "DCGM_")
	slow := func(_ http.ResponseWriter, r *http.Request, query string) bool {
		if strings.Contains(query, "DCGM_") {
			<-r.Context().Done()
		}
		return false
	}
	for _, c := range []struct {
		name    string
		answer  func(http.ResponseWriter, *http.Request, string) bool
		gpu     string // given
		queries int64
		takes   time.Duration
	}{
		{"refused", refused, "", 2 + 1 + 2, 0},
		{"slow", slow, "", 2 + 1 + 2, 5 * time.Second},
		{"given", slow, "L4", 2 + 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fake{servers: numbered(8), answer: c.answer, flags: func(o *attach.Options) { o.GPU = c.gpu }}
			list, took, err := f.read(t)
			if err != nil || len(list) != 8 || len(unread(list)) != 0 {
				t.Fatalf("%d servers, %v not read: %v", len(list), unread(list), err)
			}
			if got := f.queries.Load(); got != c.queries || took != c.takes {
				t.Errorf("%d queries in %v, want %d in %v", got, took, c.queries, c.takes)
			}
		})
	}
}

// A fleet may have servers of several engines.
func TestFleetOfSeveralEngines(t *testing.T) {
	f := fake{servers: []string{"sglang:1", "vllm:1"}}
	list, _, err := f.read(t)
	must(t, err)
	var got []string
	for i := range list {
		d := &list[i].Diagnosis
		got = append(got, fmt.Sprintf("%s %s %.0f tok/s", list[i].Name, d.Facts.Dialect().Name, d.Quantity("generation_tokens_per_s").Value.V))
	}
	if diff := cmp.Diff([]string{"sglang:1 SGLang 200 tok/s", "vllm:1 vLLM 200 tok/s"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One server whose query fails is a row with its reason; the others are shown.
func TestOneServerFails(t *testing.T) {
	const tooMany = `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`
	f := fake{servers: numbered(25), answer: refusing(http.StatusUnprocessableEntity, tooMany, "gpu-13:8000")}
	list, _, err := f.read(t)
	if err != nil || len(list) != 25 {
		t.Fatalf("%d servers: %v", len(list), err)
	}
	if diff := cmp.Diff([]string{"gpu-13:8000"}, unread(list)); diff != "" {
		t.Errorf("not read (-want +got):\n%s", diff)
	}
	if s := &list[0]; s.Name != "gpu-13:8000" || !strings.Contains(s.Unread, "too many samples") || s.Outcome != engine.OutcomeNotEvaluable || s.Deployment != "vllm" {
		t.Errorf("first is %s: %q, %s, of %q", s.Name, s.Unread, s.Outcome, s.Deployment)
	}
}

// If no server can be read, the whole list fails, and each server is known not to be readable.
func TestAllServersFail(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, string) bool
		says   string
		code   cli.ExitCode
		within time.Duration
	}{
		{"overloaded", refusing(http.StatusServiceUnavailable, "no healthy upstream", "gpu"), "503", cli.ExitUnreachable, time.Second},
		{"refused", refusing(http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"too long"}`, "gpu"), "too long; ask for a shorter time", 0, time.Second},
		{"slow", func(_ http.ResponseWriter, r *http.Request, query string) bool {
			if strings.Contains(query, "gpu") {
				<-r.Context().Done()
			}
			return false
		}, "no answer within 30s", cli.ExitUnreachable, 31 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fake{servers: numbered(200), answer: c.answer}
			list, took, err := f.read(t)
			if len(unread(list)) != 200 || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%d servers, %d not read, error %v, want %q", len(list), len(unread(list)), err, c.says)
			}
			var coded *cli.CodedError
			if errors.As(err, &coded) != (c.code != 0) || coded != nil && coded.Code != c.code {
				t.Errorf("error %v, want exit code %d", err, c.code)
			}
			if took > c.within {
				t.Errorf("it took %v, want at most %v", took, c.within)
			}
		})
	}
}

// A Prometheus that goes away during a reading costs the servers that were not read yet, and no further time.
func TestPrometheusGoesAway(t *testing.T) {
	var asked atomic.Int64
	f := fake{servers: numbered(200)}
	f.answer = func(_ http.ResponseWriter, _ *http.Request, query string) bool {
		if !strings.Contains(query, "gpu") || asked.Add(1) <= 4 {
			return false
		}
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	list, took, err := f.read(t)
	if err != nil || len(list) != 200 {
		t.Fatalf("%d servers: %v", len(list), err)
	}
	if got := len(unread(list)); got != 200-4*batch {
		t.Errorf("%d servers were not read, want %d", got, 200-4*batch)
	}
	// It gives up after four failures in a row: each of the four answers may come late and begin the count again. The
	// client sends each query twice: once more on a new connection. Without giving up it sends 54.
	if n := asked.Load(); n > 4+2*4*atOnce || took > time.Second {
		t.Errorf("%d queries in %v, although Prometheus was gone after 4", n, took)
	}
	if !strings.Contains(list[0].Unread, "unreachable") && !strings.Contains(list[0].Unread, "not asked") {
		t.Errorf("%s: %s", list[0].Name, list[0].Unread)
	}
}

// Servers with missing series are judged by the existing ones, and never look healthy because of the missing ones.
func TestHalfOfTheSeriesAreMissing(t *testing.T) {
	f := fake{servers: numbered(3), lacks: func(instance, series string) bool {
		return instance == "gpu-01:8000" && (strings.Contains(series, "tokens") || strings.Contains(series, "running")) || instance == "gpu-02:8000" && series != "up"
	}}
	list, _, err := f.read(t)
	must(t, err)
	got := map[string]engine.Outcome{}
	for i := range list {
		got[list[i].Name] = list[i].Outcome
		t.Logf("%s: %s %s %s", list[i].Name, list[i].Outcome, list[i].Condition.String(), list[i].Doubt)
	}
	if got["gpu-00:8000"] == engine.OutcomeNotEvaluable || got["gpu-01:8000"] != engine.OutcomeNotEvaluable || got["gpu-02:8000"] != engine.OutcomeNotEvaluable {
		t.Errorf("outcomes %v", got)
	}
}

// TestAHostileLabelIsData checks that a command to copy gives a shell the label and nothing to run.
func TestAHostileLabelIsData(t *testing.T) {
	for _, name := range []string{"x'; touch pwned; echo '", "$(touch pwned)", "a\nb`c`", `"},{a="`, "\u202egpu"} {
		f := fake{servers: []string{name}}
		list, _, err := f.read(t)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(list[0].Command, "rooftop", `printf '%s\0'`, 1)).Output()
		want := []string{"diagnose", "--prometheus", "http://prometheus:9090", "--match", "instance=" + strconv.Quote(name), ""}
		if diff := cmp.Diff(want, strings.Split(string(out), "\x00")); err != nil || diff != "" {
			t.Errorf("%s (-want +got):\n%s%v", list[0].Command, diff, err)
		}
	}
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
