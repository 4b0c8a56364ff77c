package prometheus

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
)

var (
	begin = time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	whole = Range{begin, begin.Add(10 * time.Minute)}
)

// at returns the time of scrape n.
func at(n int) model.Time {
	return model.TimeFromUnixNano(begin.Add(time.Duration(n) * 15 * time.Second).UnixNano())
}

// stream returns a series with a value for each scrape.
func stream(labels model.Metric, values ...float64) *model.SampleStream {
	s := &model.SampleStream{Metric: labels}
	for i, v := range values {
		s.Values = append(s.Values, model.SamplePair{Timestamp: at(i), Value: model.SampleValue(v)})
	}
	return s
}

// scrape returns the series that Prometheus makes of one page, with the labels of a target.
func scrape(t *testing.T, page []byte, instance string) model.Matrix {
	t.Helper()
	var all model.Matrix
	sample := regexp.MustCompile(`^([a-zA-Z0-9_:]+)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (\S+)`)
	label := regexp.MustCompile(`([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"`)
	for line := range strings.Lines(string(page)) {
		m := sample.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(line, "#") {
			continue
		}
		labels := model.Metric{model.MetricNameLabel: model.LabelValue(m[1]), model.JobLabel: "vllm", model.InstanceLabel: model.LabelValue(instance)}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels[model.LabelName(l[1])] = model.LabelValue(strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(l[2]))
		}
		var v float64
		if _, err := fmt.Sscan(m[3], &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, stream(labels, v))
	}
	return all
}

func readPage(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// answering serves a query API whose queries have these answers, in turn.
func answering(t *testing.T, answers ...model.Value) (*Source, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.FormValue("query"))
		answer := answers[len(asked)-1]
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": answer.Type().String(), "result": answer}})
	}))
	t.Cleanup(server.Close)
	s, err := Open(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return s, &asked
}

var gpu7 = Target{Name: "gpu-7:8000", Labels: model.LabelSet{model.JobLabel: "vllm", model.InstanceLabel: "gpu-7:8000"}}

// pagesOf returns the pages of gpu7.
func pagesOf(t *testing.T, s *Source) ([]Page, error) {
	each, err := s.Pages(t.Context(), []Target{gpu7}, whole)
	if err != nil {
		return nil, err
	}
	return each[0], nil
}

// A page that went through Prometheus says what the server's own page says.
func TestScrapedPageReadsAsTheServersOwn(t *testing.T) {
	pages, err := filepath.Glob("../vllm/testdata/*.txt*")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	compared := 0
	for _, path := range pages {
		text := readPage(t, path)
		var want, got engine.Page
		if enginepage.NewReader("", vllm.Dialect()).Parse(text, &want) != nil {
			continue // the page of another program, or one without statistics
		}
		compared++
		t.Run(filepath.Base(path), func(t *testing.T) {
			source, _ := answering(t, scrape(t, text, "gpu-7:8000"))
			list, err := pagesOf(t, source)
			if err != nil || len(list) != 1 {
				t.Fatalf("%d pages: %v", len(list), err)
			}
			if err := enginepage.NewReader("", vllm.Dialect()).Parse(list[0].Text, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("page (-server +Prometheus):\n%s", diff)
			}
		})
	}
	if compared < 7 {
		t.Errorf("only %d pages were compared", compared)
	}
}

// labels returns the labels of a series of a target.
func labels(name, job, instance string, more ...string) model.Metric {
	m := model.Metric{model.JobLabel: model.LabelValue(job), model.InstanceLabel: model.LabelValue(instance)}
	if name != "" {
		m[model.MetricNameLabel] = model.LabelValue(name)
	}
	for i := 0; i < len(more); i += 2 {
		m[model.LabelName(more[i])] = model.LabelValue(more[i+1])
	}
	return m
}

func TestTargets(t *testing.T) {
	sample := func(job, instance string) *model.Sample {
		return &model.Sample{Metric: labels("", job, instance), Value: 1}
	}
	scraped := model.Vector{sample("vllm", "a:1"), sample("vllm", "b:1"), sample("other", "b:1")}
	source, asked := answering(t, scraped, model.Vector{sample("vllm", "b:1"), sample("vllm", "dead:1")}, scraped[:1], model.Vector{})
	names := func(match string) (out []string) {
		list, err := source.Targets(t.Context(), match, whole)
		if err != nil {
			t.Error(err)
		}
		for _, one := range list {
			out = append(out, one.Name+" by "+one.Match())
		}
		return out
	}
	if diff := cmp.Diff([]string{
		`a:1 by instance="a:1"`, `dead:1 by instance="dead:1"`,
		`{instance="b:1", job="other"} by job="other",instance="b:1"`, `{instance="b:1", job="vllm"} by job="vllm",instance="b:1"`,
	}, names("")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`a:1 by instance="a:1"`}, names(` {instance="a:1"} `)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, want := range map[int]string{0: `(num_requests_running|num_running_reqs|requests_processing)"}[600001ms]`, 1: `(up{} == 0 and on (job) count by (job) (last_over_time({`, 2: `requests_processing)",instance="a:1"}[`, 3: `(up{instance="a:1"} == 0 and`} {
		if !strings.Contains((*asked)[i], want) {
			t.Errorf("query %d: %s, want %s", i, (*asked)[i], want)
		}
	}
}

// vector returns an answer with the value 1 for each set of labels.
func vector(list ...model.Metric) (v model.Vector) {
	for _, m := range list {
		v = append(v, &model.Sample{Metric: m, Value: 1})
	}
	return v
}

// A target whose pod was replaced in a range, or that is down now, is one target.
func TestTargetsOfReplacedPods(t *testing.T) {
	source, asked := answering(t,
		vector(labels("", "vllm", "a:1", "namespace", "ml", "pod", "old"), labels("", "vllm", "a:1", "namespace", "ml", "pod", "new"), labels("", "vllm", "a:1")),
		vector(labels("", "vllm", "a:1", "namespace", "ml", "pod", "new")))
	list, err := source.Targets(t.Context(), "", whole)
	if err != nil || len(list) != 1 || len(*asked) != 2 {
		t.Fatalf("%d targets by %d queries: %v", len(list), len(*asked), err)
	}
	if one := list[0]; one.Name != "a:1" || one.Match() != `instance="a:1"` || len(one.Labels) != 2 {
		t.Errorf("%+v, selected by %s", one, one.Match())
	}
}

// The GPUs of a server are those of its pod or host, by the DCGM exporters that are scraped beside it.
func TestGPUsOfTargets(t *testing.T) {
	in := func(instance, pod string) model.Metric { // a server in a pod
		return labels("", "vllm", instance, "namespace", "ml", "pod", pod)
	}
	gpus := func(n float64, exporter, name string, more ...string) *model.Sample {
		return &model.Sample{Metric: labels("", "", exporter, append(more, "modelName", name)...), Value: model.SampleValue(n)}
	}
	used := func(pod string) []string { // the labels of a pod's GPUs, beside the exporter's own
		return []string{"pod", "dcgm-x", "namespace", "gpus", "exported_pod", pod, "exported_namespace", "ml"}
	}
	const h100 = "NVIDIA H100 80GB HBM3"
	source, asked := answering(t,
		vector(
			labels("", "vllm", "gpu-7:8000"), labels("", "vllm", "mixed:8000"), labels("", "vllm", "none:8000"), labels("", "vllm", "localhost:8000"),
			in("10.0.0.1:8000", "four"), in("10.0.0.2:8000", "one"), in("10.0.0.3:8000", "mixed"), in("10.0.0.4:8000", "none"),
			in("10.0.0.5:8000", "restarted"), in("10.0.0.6:8000", "restarted"),
			in("10.0.0.7:8000", "old"), in("10.0.0.7:8000", "new"), in("10.0.0.8:8000", "less"), in("10.0.0.8:8000", "more"),
			in("10.0.0.9:8000", "two-servers"), in("10.0.0.9:8001", "two-servers"),
		),
		model.Vector{}, // none is down
		model.Vector{
			gpus(8, "gpu-7:9400", "NVIDIA L4"),
			gpus(8, "localhost:9400", "NVIDIA L4"),
			gpus(1, "x:9400", "NVIDIA L4", "Hostname", "mixed"), gpus(1, "x:9400", "NVIDIA L40S", "Hostname", "mixed"),
			gpus(4, "node1:9400", h100, used("four")...), gpus(4, "node1:9500", h100, used("four")...), // as of two exporters
			gpus(4, "node1:9400", "NVIDIA T4", "Hostname", "10.0.0.1", "pod", "dcgm-x", "namespace", "gpus"), // of no pod
			gpus(1, "node1:9400", "NVIDIA A100-SXM4-80GB", "pod", "one", "namespace", "ml"),
			gpus(1, "node1:9400", h100, used("mixed")...), gpus(1, "node1:9400", "NVIDIA L4", used("mixed")...),
			gpus(2, "node1:9400", h100, used("restarted")...), gpus(2, "node2:9400", h100, used("restarted")...),
			gpus(2, "node1:9400", h100, used("old")...), gpus(2, "node2:9400", h100, used("new")...),
			gpus(2, "node1:9400", h100, used("less")...), gpus(4, "node2:9400", h100, used("more")...),
			gpus(4, "node1:9400", h100, used("two-servers")...),
		})
	list, err := source.Targets(t.Context(), "", whole)
	if err != nil {
		t.Fatal(err)
	}
	source.NameGPUs(t.Context(), list, whole)
	got := map[string]string{}
	for _, one := range list {
		got[one.Name] = fmt.Sprintf("%d %s", one.GPUs, one.GPU)
	}
	want := map[string]string{
		"gpu-7:8000": "0 NVIDIA L4", "mixed:8000": "0 ", "none:8000": "0 ", "localhost:8000": "0 ",
		"10.0.0.1:8000": "4 " + h100, "10.0.0.2:8000": "1 NVIDIA A100-SXM4-80GB", "10.0.0.3:8000": "0 ", "10.0.0.4:8000": "0 ",
		"10.0.0.5:8000": "2 " + h100, "10.0.0.6:8000": "2 " + h100, "10.0.0.7:8000": "2 " + h100, "10.0.0.8:8000": "0 " + h100,
		"10.0.0.9:8000": "0 " + h100, "10.0.0.9:8001": "0 " + h100,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if q := (*asked)[2]; len(*asked) != 3 || !strings.HasSuffix(q, `(DCGM_FI_DEV_GPU_UTIL{GPU_I_PROFILE="",modelName!=""})[600001ms:1m])`) {
		t.Errorf("%d queries, the last %s", len(*asked), q)
	}
}

func TestPages(t *testing.T) {
	source, asked := answering(t, model.Matrix{
		stream(labels("vllm:num_requests_running", "vllm", "gpu-7:8000", "model_name", "m", "endpoint", "metrics", "exported_endpoint", "/v1"), 1, 2),
		stream(labels("up", "vllm", "gpu-7:8000"), 1, 1, 0),
		stream(labels("process_start_time_seconds", "vllm", "gpu-7:8000"), 7, 7),
	})
	got, err := pagesOf(t, source)
	if err != nil {
		t.Fatal(err)
	}
	const text = "process_start_time_seconds 7\nvllm:num_requests_running{endpoint=\"/v1\",model_name=\"m\"} "
	want := []Page{{At: at(0).Time(), Text: []byte(text + "1\n")}, {At: at(1).Time(), Text: []byte(text + "2\n")}, {At: at(2).Time(), Down: true}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if every := Interval(got); every != 15*time.Second {
		t.Errorf("scraped every %v, want 15s", every)
	}
	if q := (*asked)[0]; !strings.Contains(q, `,cluster="",job="vllm",instance="gpu-7:8000"}[600001ms]`) {
		t.Errorf("query %s", q)
	}
}

// One query reads several servers, whose series are distinguished by all labels of their targets.
func TestPagesOfSeveralServers(t *testing.T) {
	const running = "vllm:num_requests_running"
	source, asked := answering(t, model.Matrix{
		stream(labels(running, "vllm", "a:1"), 1), stream(labels(running, "vllm", "b:1"), 2, 3), stream(labels(running, "other", "b:1"), 4),
		stream(labels(running, "vllm", "b:1", "cluster", "east"), 5),
	})
	target := func(job, instance string) Target {
		return Target{Name: instance, Labels: model.LabelSet{model.JobLabel: model.LabelValue(job), model.InstanceLabel: model.LabelValue(instance)}}
	}
	each, err := source.Pages(t.Context(), []Target{target("vllm", "a:1"), target("vllm", "b:1"), target("vllm", "c.d:1")}, whole)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pages := range each {
		text := ""
		for _, p := range pages {
			text += string(p.Text)
		}
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{running + " 1\n", running + " 2\n" + running + " 3\n", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if q := (*asked)[0]; !strings.Contains(q, `,cluster="",job="vllm",instance=~"a:1|b:1|c\\.d:1"}[600001ms]`) {
		t.Errorf("query %s", q)
	}
}

// A source that is asked for some series asks Prometheus for no other ones.
func TestOnlyTheSeriesAskedFor(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("query")
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
	}))
	defer server.Close()
	source, err := Open(Options{URL: server.URL, Series: []string{"num_requests_running", "generation_tokens_total"}})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := pagesOf(t, source); err != nil || len(list) != 0 {
		t.Errorf("%d pages: %v", len(list), err)
	}
	pattern, err := strconv.Unquote(regexp.MustCompile(`__name__=~(".*?[^\\]")`).FindStringSubmatch(asked)[1])
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("^(?:" + pattern + ")$") // as PromQL anchors it
	for wire, want := range map[string]bool{
		"vllm:num_requests_running": true, "ray_vllm_generation_tokens_total": true, "up": true, "process_cpu_seconds_total": true,
		"vllm:request_params_n_bucket": false, "num_requests_running": false, "vllm:up": false, "vllm:num_requests_running_total": false,
	} {
		if name.MatchString(wire) != want {
			t.Errorf("%s: asked for %v, want %v", wire, !want, want)
		}
	}
}

// Prometheus can store a classic histogram as a native one with the same buckets.
func TestNativeHistogram(t *testing.T) {
	name := model.Metric{model.MetricNameLabel: "vllm:time_to_first_token_seconds", model.JobLabel: "vllm", model.InstanceLabel: "gpu-7:8000", "model_name": "m"}
	source, _ := answering(t, model.Matrix{{Metric: name, Histograms: []model.SampleHistogramPair{{Timestamp: at(0), Histogram: &model.SampleHistogram{
		Count: 10, Sum: 4.5, Buckets: model.HistogramBuckets{{Lower: 0, Upper: 0.25, Count: 4}, {Lower: 0.25, Upper: 1, Count: 5}, {Lower: 1, Upper: model.FloatString(math.Inf(1)), Count: 1}},
	}}}}})
	list, err := pagesOf(t, source)
	if err != nil {
		t.Fatal(err)
	}
	const series = "vllm:time_to_first_token_seconds"
	want := series + "_bucket{le=\"0.25\",model_name=\"m\"} 4\n" + series + "_bucket{le=\"1\",model_name=\"m\"} 9\n" + series + "_bucket{le=\"+Inf\",model_name=\"m\"} 10\n" +
		series + "_count{model_name=\"m\"} 10\n" + series + "_sum{model_name=\"m\"} 4.5\n"
	if diff := cmp.Diff(want, string(list[0].Text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Prometheus leaves out empty buckets, and halves the resolution of a histogram that has too many: the buckets of ranks
// and of scrapes differ, and have to be summed nevertheless.
func TestNativeHistogramsOfRanks(t *testing.T) {
	const series = "vllm:time_to_first_token_seconds"
	inf := math.Inf(1)
	type buckets [][3]float64 // lower, upper, count
	of := func(rank string, scrapes ...buckets) *model.SampleStream {
		s := &model.SampleStream{Metric: model.Metric{model.MetricNameLabel: series, model.JobLabel: "vllm", model.InstanceLabel: "gpu-7:8000", "engine": model.LabelValue(rank)}}
		for i, list := range scrapes {
			h := &model.SampleHistogram{Sum: 1}
			for _, b := range list {
				h.Count += model.FloatString(b[2])
				h.Buckets = append(h.Buckets, &model.HistogramBucket{Lower: model.FloatString(b[0]), Upper: model.FloatString(b[1]), Count: model.FloatString(b[2])})
			}
			s.Histograms = append(s.Histograms, model.SampleHistogramPair{Timestamp: at(15 * i), Histogram: h})
		}
		return s
	}
	for _, c := range []struct {
		name  string
		ranks []*model.SampleStream
		want  []string // of each scrape, bound:count of each rank
	}{
		{
			"empty buckets", []*model.SampleStream{of("0", buckets{{1, 2, 3}}, buckets{{1, 2, 3}, {4, 8, 1}}), of("1", buckets{{2, 4, 5}}, buckets{{2, 4, 5}, {8, inf, 2}})},
			[]string{"1:0 2:3 4:3 8:3 +Inf:3 1:0 2:0 4:5 8:5 +Inf:5", "1:0 2:3 4:3 8:4 +Inf:4 1:0 2:0 4:5 8:5 +Inf:7"},
		},
		{
			"a coarser schema", []*model.SampleStream{of("0", buckets{{1, 1.5, 3}, {1.5, 2, 1}, {2, 3, 1}}), of("1", buckets{{1, 2, 4}})},
			[]string{"1:0 2:4 3:5 +Inf:5 1:0 2:4 3:4 +Inf:4"},
		},
		{
			"coarser later", []*model.SampleStream{of("0", buckets{{1, 1.5, 3}, {1.5, 2, 1}}, buckets{{1, 2, 4}, {4, 8, 1}})},
			[]string{"1:0 2:4 4:4 8:4 +Inf:4", "1:0 2:4 4:4 8:5 +Inf:5"},
		},
		{"a zero bucket", []*model.SampleStream{of("0", buckets{{-1e-9, 1e-9, 2}, {1, 2, 1}}), of("1", buckets{{1, 2, 1}})}, []string{"1e-09:2 1:2 2:3 +Inf:3 1e-09:0 1:0 2:1 +Inf:1"}},
		{"none yet", []*model.SampleStream{of("0", nil)}, []string{"+Inf:0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, _ := answering(t, model.Matrix(c.ranks))
			list, err := pagesOf(t, source)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range list {
				var counts []string
				for _, m := range regexp.MustCompile(`_bucket{.*le="(.*?)"} (.*)`).FindAllStringSubmatch(string(p.Text), -1) {
					counts = append(counts, m[1]+":"+m[2])
				}
				got = append(got, strings.Join(counts, " "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsSayTheNextStep(t *testing.T) {
	answer := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example/")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
		}
	}
	for _, c := range []struct {
		name        string
		handler     http.HandlerFunc
		unreachable bool
		says        string
	}{
		{"selector", answer(400, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected =="}`), false, "refuses the query: parse error: unexpected ==; check --match"},
		{"too many samples", answer(422, `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`), false, "too many samples into memory in query execution; ask for a shorter time"},
		{"query timeout", answer(503, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`), false, "query timed out in expression evaluation; ask for a shorter time"},
		{"overloaded", answer(503, "no healthy upstream"), true, "503"},
		{"no access", answer(401, "Unauthorized"), false, "401; check --prometheus and --http-config"},
		{"moved", answer(302, ""), true, "check --prometheus"},
		{"another server", answer(200, "<html>"), true, "check --prometheus"},
		{"a number", answer(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`), false, "is it a Prometheus server?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			s, err := Open(Options{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Targets(t.Context(), "", whole)
			if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, collect.ErrUnreachable) != c.unreachable {
				t.Errorf("error %v, want %q, unreachable %v", err, c.says, c.unreachable)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
	t.Run("no server there", func(t *testing.T) {
		s, err := Open(Options{URL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Targets(t.Context(), "", whole); !errors.Is(err, collect.ErrUnreachable) {
			t.Errorf("error %v, want unreachable", err)
		}
	})
	for _, address := range []string{"", "prometheus:9090", "ftp://x", "http://"} {
		if _, err := Open(Options{URL: address}); err == nil || !strings.Contains(err.Error(), "http://HOST:9090") {
			t.Errorf("%q: error %v", address, err)
		}
	}
}

func TestHTTPConfiguration(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "http.yaml")
	if err := os.WriteFile(file, []byte("basic_auth: {username: me, password: secret}\nhttp_headers: {X-Scope-OrgID: {values: [team-a]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{URL: server.URL + "/prometheus", HTTPConfig: file, Read: os.ReadFile, UserAgent: "rooftop/test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Targets(t.Context(), "", whole); err != nil {
		t.Fatal(err)
	}
	user, password, _ := got.BasicAuth()
	if user != "me" || password != "secret" || got.Header.Get("X-Scope-OrgID") != "team-a" || got.URL.Path != "/prometheus/api/v1/query" || got.UserAgent() != "rooftop/test" {
		t.Errorf("%s %v", got.URL, got.Header)
	}
	if _, err := Open(Options{URL: server.URL, HTTPConfig: file + "x", Read: os.ReadFile}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
}
