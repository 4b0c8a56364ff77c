package enginepage

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// page returns a file of another package's recordings.
func page(t testing.TB, file string) string {
	t.Helper()
	f, err := os.Open(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	body, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// server answers each request in memory with the next of its answers, the last again
// and again.
func server(t testing.TB, answers ...string) *collect.Client {
	t.Helper()
	target, err := collect.ParseTarget("http://server:8000")
	if err != nil {
		t.Fatal(err)
	}
	client, err := collect.NewClient(collect.Options{Target: target, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			for in := bufio.NewReader(far); ; {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
				if _, err := io.WriteString(far, answers[0]); err != nil {
					return
				}
				if len(answers) > 1 {
					answers = answers[1:]
				}
			}
		}()
		return near, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func answer(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

func TestPages(t *testing.T) {
	some := stat.Some
	for _, tc := range []struct {
		name, body, engine string
		want               capture.PageSample
	}{
		{"vLLM 0.32, two engines", page(t, "../vllm/testdata/vllm-0.32.0-cpu-dp2.txt.gz"), "vLLM", capture.PageSample{
			GenerationTokens: some(846), PromptTokens: some(3920), Requests: some(6), Running: some(8), Waiting: some(4), KVUsage: some(0.011730205278592365),
			TTFTSum: some(4.131924390792847), TTFTCount: some(14), QueueSum: some(0.0003022849), QueueCount: some(6), PrefillSum: some(1.1136023), PrefillCount: some(6),
		}},
		{"vLLM 0.6, V0 names", page(t, "../vllm/testdata/v0-0.6.6.txt"), "vLLM", capture.PageSample{
			GenerationTokens: some(2500), PromptTokens: some(5000), Requests: some(25), Running: some(7), Waiting: some(3), KVUsage: some(0.93),
			TTFTSum: some(3.5), TTFTCount: some(27), QueueSum: some(1.25), QueueCount: some(25),
		}},
		{"vLLM 0.9.2, several API servers: gauges are copies, counters are not", page(t, "../vllm/testdata/v1-0.9.2-multiprocess.txt"), "vLLM", capture.PageSample{
			GenerationTokens: some(200), Running: some(28), Waiting: some(6), KVUsage: some(0.4),
		}},
		{"Ray", page(t, "../vllm/testdata/ray.txt"), "vLLM", capture.PageSample{
			GenerationTokens: some(150), PromptTokens: some(10), Requests: some(7), Running: some(10), Waiting: some(1), KVUsage: some(0.6),
		}},
		{"vLLM, old and new name of one metric", page(t, "../vllm/testdata/v1-0.11-both-names.txt"), "vLLM", capture.PageSample{Running: some(5), KVUsage: some(0.4)}},
		{"SGLang 0.5.19, live", page(t, "testdata/sglang-0.5.19.txt"), "SGLang", capture.PageSample{
			GenerationTokens: some(1240), PromptTokens: some(787), Waiting: some(0), KVUsage: some(0),
		}},
		{"SGLang, metrics of all schedulers: tensor ranks are copies, data ranks are not", `sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 3
sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 3
sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 2
sglang:token_usage{dp_rank="0",tp_rank="0"} 0.5
sglang:token_usage{dp_rank="0",tp_rank="1"} 0.5
sglang:token_usage{dp_rank="1",tp_rank="0"} 0.1
sglang:num_requests_total{is_streaming="true"} 4
sglang:num_requests_total{is_streaming="false"} 1
sglang:time_to_first_token_seconds_sum 2.5
sglang:time_to_first_token_seconds_count 5
sglang:queue_time_seconds_sum{tp_rank="0"} 0.5
sglang:queue_time_seconds_sum{tp_rank="1"} 0.5
sglang:queue_time_seconds_count{tp_rank="0"} 5
sglang:queue_time_seconds_count{tp_rank="1"} 5
`, "SGLang", capture.PageSample{
			Running: some(5), KVUsage: some(0.3), Requests: some(5), TTFTSum: some(2.5), TTFTCount: some(5), QueueSum: some(0.5), QueueCount: some(5),
		}},
		{"llama.cpp b11549", page(t, "../probe/testdata/llamacpp/metrics.txt"), "llama.cpp", capture.PageSample{
			GenerationTokens: some(33), PromptTokens: some(18), Running: some(0), Waiting: some(0), SequenceSteps: some(33),
		}},
		{"llama.cpp: slots over steps", "llamacpp:n_decode_total 308\nllamacpp:n_busy_slots_per_decode 1.97403\n", "llama.cpp", capture.PageSample{SequenceSteps: some(608)}},
		{"llama.cpp: steps alone", "llamacpp:n_decode_total 308\n", "llama.cpp", capture.PageSample{}},
		{"llama.cpp: cached tokens are counted apart", "llamacpp:prompt_tokens_total 18\nllamacpp:prompt_tokens_cached_total 5\nllamacpp:kv_cache_usage_ratio 0.25\n", "llama.cpp", capture.PageSample{
			PromptTokens: some(23), KVUsage: some(0.25),
		}},
		{"TGI 3", "tgi_request_generated_tokens_sum 70\ntgi_request_input_length_sum 11\ntgi_request_success{method=\"generate\"} 2\ntgi_batch_current_size 1\ntgi_queue_size 3\ntgi_request_queue_duration_sum 0.5\ntgi_request_queue_duration_count 2\n", "TGI", capture.PageSample{
			GenerationTokens: some(70), PromptTokens: some(11), Requests: some(2), Running: some(1), Waiting: some(3), QueueSum: some(0.5), QueueCount: some(2),
		}},
		{"one bad value makes the whole absent", "vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_running{engine=\"1\"} NaN\nvllm:num_requests_waiting -1\nvllm:kv_cache_usage_perc 37\n", "vLLM", capture.PageSample{}},
		{"a page so young that it has no values", "# TYPE vllm:num_requests_running gauge\n", "vLLM", capture.PageSample{}},
		{"a family that comes twice counts once", "vllm:num_requests_running 1\nvllm:num_requests_running 1\n", "vLLM", capture.PageSample{Running: some(1)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := server(t, answer(200, tc.body))
				w, engine, err := OpenTotals(t.Context(), client)
				if err != nil {
					t.Fatal(err)
				}
				if engine != tc.engine {
					t.Errorf("got engine %q, want %q", engine, tc.engine)
				}
				if want := map[bool]capture.Counting{true: capture.EachStep, false: capture.AtEnd}[engine == "vLLM"]; w.Counting() != want {
					t.Errorf("%s counts at %q, want %q", engine, w.Counting(), want)
				}
				origin := time.Now()
				got := w.Sample(t.Context(), func() time.Duration { return time.Since(origin) })
				tc.want.At, tc.want.Took = 5*time.Millisecond, 10*time.Millisecond
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(1e-6, 0)); diff != "" {
					t.Error(diff)
				}
				client.Close()
			})
		})
	}
}

func TestNoPage(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		none         bool // collect.ErrNoData
		want         string
	}{
		{"llama.cpp without --metrics", answer(501, `{"error":{"code":501}}`), true, "no data: http://server:8000/metrics answered 501: llama.cpp serves metrics only with --metrics; restart it with that flag"},
		{"Ollama", answer(404, "404 page not found"), true, "no data: http://server:8000/metrics answered 404: SGLang serves metrics with --enable-metrics, Ollama and LM Studio serve none"},
		{"LM Studio", answer(200, `{"error":"Unexpected endpoint or method. (GET /metrics)"}`), true, "http://server:8000/metrics: no data: not a metrics page: it answered with JSON; this server serves no metrics"},
		{"vLLM with its statistics off", answer(200, page(t, "../vllm/testdata/vllm-0.32.0-cpu-stats-off.txt.gz")), true, "http://server:8000/metrics: no data: the page has no metrics of a known engine, only names such as python_gc_objects_collected_total, python_gc_objects_uncollectable_total, python_gc_collections_total; vLLM serves such a page with --disable-log-stats: restart it without that flag"},
		{"comments only", answer(200, "# nothing\n"), true, "http://server:8000/metrics: no data: the page has no metrics"},
		{"cut off", answer(200, "vllm:num_requests_running 1\nvllm:num"), false, "http://server:8000/metrics: page truncated: it ends in the middle of line 2"},
		{"wants a key", answer(401, ""), false, "http://server:8000/metrics answered 401 Unauthorized: an API key is required: give --api-key-file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := server(t, tc.answer)
				w, engine, err := OpenTotals(t.Context(), client)
				if err == nil || w != nil || engine != "" {
					t.Fatalf("got %v, %q, %v", w, engine, err)
				}
				if errors.Is(err, collect.ErrNoData) != tc.none || err.Error() != tc.want {
					t.Errorf("got  %q\nwant %q", err, tc.want)
				}
				client.Close()
			})
		})
	}
}

// A page that fails once says why and nothing else; the next is read again.
func TestSampleFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := answer(200, "llamacpp:tokens_predicted_total 4\n")
		client := server(t, good, answer(503, ""), answer(200, "llamacpp:tokens_predicted_total"), good)
		w, _, err := OpenTotals(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		clock := func() time.Duration { return 7 }
		for i, want := range []capture.PageSample{
			{At: 7, Error: "http://server:8000/metrics answered 503 Service Unavailable: the server failed or is still starting; check its log"},
			{At: 7, Error: "page truncated: it ends in the middle of line 1"},
			{At: 7, GenerationTokens: stat.Some(4)},
		} {
			if diff := cmp.Diff(want, w.Sample(t.Context(), clock)); diff != "" {
				t.Errorf("sample %d: %s", i, diff)
			}
		}
		client.Close()
	})
}

// What a page costs grows with its series: by their square this would take minutes.
func TestTotalOfManySeries(t *testing.T) {
	const series = 1 << 17
	w := newTotals(nil, totalsDialects()[0])
	for i := range series {
		w.families.Samples = append(w.families.Samples, collect.Sample{
			Series: &collect.Series{Name: "n", Labels: []collect.Label{{Name: "engine", Value: strconv.Itoa(i)}}}, Value: 1,
		})
	}
	if got := w.total("n", level); got != stat.Some(series) {
		t.Errorf("got %v", got)
	}
}

// Whatever a page holds, nothing panics, and what is read is a number that a page can
// mean.
func FuzzRead(f *testing.F) {
	for _, file := range []string{"testdata/sglang-0.5.19.txt", "../probe/testdata/llamacpp/metrics.txt", "../vllm/testdata/v1-0.9.2-multiprocess.txt"} {
		f.Add([]byte(page(f, file)))
	}
	f.Add([]byte("tgi_queue_size +Inf\n"))
	f.Add([]byte("vllm:generation_tokens_total{engine=\"0\"} 1e308\nvllm:generation_tokens_total{engine=\"1\"} 1e308\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := totalsOf(body)
		if err != nil {
			return
		}
		w := newTotals(nil, d)
		var first, second capture.PageSample
		errFirst, errSecond := w.read(body, &first), w.read(body, &second)
		if (errFirst == nil) != (errSecond == nil) || !cmp.Equal(first, second) {
			t.Fatalf("read again: %v, %v\n%s", errFirst, errSecond, cmp.Diff(first, second))
		}
		for _, field := range d.fields {
			if v := *first.Fields()[field.page]; v.OK && !(v.V >= 0 && v.V <= math.MaxFloat64) || !v.OK && v.V != 0 {
				t.Errorf("got %v", v)
			}
		}
		if first.KVUsage.V > 1 {
			t.Errorf("a share of %v", first.KVUsage.V)
		}
	})
}
