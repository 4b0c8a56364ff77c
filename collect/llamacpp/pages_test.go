package llamacpp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// server answers each path with the next of its answers, the last again and again. A path without answers is
// answered 501.
type server map[string][]string

func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	list := s[r.URL.Path]
	if len(list) == 0 {
		http.Error(w, "not supported", http.StatusNotImplemented)
		return
	}
	_, _ = w.Write([]byte(list[0]))
	if len(list) > 1 {
		s[r.URL.Path] = list[1:]
	}
}

func (s server) client(t *testing.T) *collect.Client {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	target, err := collect.ParseTarget(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := collect.NewClient(collect.Options{Target: target, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// page is that of build b11669 after some requests, cut to what is read.
func page(predicted string) string {
	return `# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 120
llamacpp:prompt_tokens_cached_total 30
llamacpp:prompt_seconds_total 1.5
llamacpp:tokens_predicted_total ` + predicted + `
llamacpp:tokens_predicted_seconds_total 4
llamacpp:n_decode_total 100
llamacpp:spec_decode_num_drafts_total 0
llamacpp:spec_decode_num_draft_tokens_total 0
llamacpp:requests_processing 2
llamacpp:requests_deferred 3
llamacpp:n_busy_slots_per_decode 1.8
`
}

// slots are two of 2,048 tokens; the other fields of /slots are cut, except a prompt of a server in debug mode.
func slots(first, second string) string {
	return `[{"id":0,"n_ctx":2048,"speculative":false,` + first + `,"prompt":"a secret"},{"id":1,"n_ctx":2048,` + second + `}]`
}

func busy(task, held, generated string) string {
	return `"is_processing":true,"id_task":` + task + `,"n_prompt_tokens":` + held + `,"n_prompt_tokens_processed":40,"n_prompt_tokens_cache":10,"next_token":[{"n_remain":9,"n_decoded":` + generated + `}]`
}

var divided = map[string]facts.Setting{"max_num_seqs": {Value: "2", Source: engine.FromCmdline}}

// read polls a server and parses its page.
func read(t *testing.T, p *Pages, client *collect.Client, launch map[string]facts.Setting) engine.Page {
	t.Helper()
	body, err := p.Get(t.Context(), client, launch, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), "secret") {
		t.Errorf("the page keeps a prompt:\n%s", body)
	}
	var page engine.Page
	if err := enginepage.NewReader("", Dialect()).Parse(body, &page); err != nil {
		t.Fatal(err)
	}
	return page
}

func TestPagesAndSlots(t *testing.T) {
	idle := `"is_processing":false`
	client := server{
		"/metrics": {page("200"), page("200"), page("260")},
		"/slots": {
			slots(busy("7", "80", "30"), busy("9", "60", "10")),
			slots(busy("7", "100", "50"), busy("9", "80", "30")),
			slots(busy("12", "50", "5"), idle+strings.TrimPrefix(busy("9", "110", "60"), `"is_processing":true`)), // 7 gave way to 12, and 9 ended
		},
	}.client(t)
	p := new(Pages)
	first, second, third := read(t, p, client, divided), read(t, p, client, divided), read(t, p, client, divided)

	some := stat.Some
	for _, tc := range []struct {
		what      string
		got, want stat.Opt
	}{
		{"running", first.Gauges[engine.GaugeRunning], some(2)},
		{"waiting", first.Gauges[engine.GaugeWaiting], some(3)},
		{"slots", first.Gauges[engine.GaugeMaxNumSeqs], some(2)},
		{"the context that busy slots hold", first.Gauges[engine.GaugeKVUsage], some(140.0 / 4096)},
		{"prompt tokens, cached ones included", first.Counters[engine.CounterPromptTokens], some(150)},
		{"computed prompt tokens", first.Counters[engine.CounterPromptTokensComputed], some(120)},
		{"tokens of running requests", first.Counters[engine.CounterGenerationTokens], some(240)},
		{"tokens a poll later", second.Counters[engine.CounterGenerationTokens], some(280)},
		{"tokens do not fall when the page has not counted a request that ended", third.Counters[engine.CounterGenerationTokens], some(280)},
		{"requests", third.Counters[engine.CounterRequestSuccess], some(2)},
		{"no request at first", first.Counters[engine.CounterRequestSuccess], some(0)},
		{"speculation is off", first.Counters[engine.CounterSpecDraftTokens], stat.None},
		{"an idle slot holds nothing for a request", third.Gauges[engine.GaugeKVUsage], some(55.0 / 4096)},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v, want %v", tc.what, tc.got, tc.want)
		}
	}
	if itl := third.Hists[engine.HistITL]; itl.Sum != 4 || itl.Count != 260 || len(itl.Bounds) > 0 {
		t.Errorf("seconds per token %+v, want 4 s of 260 tokens and no buckets", itl)
	}
	if steps := first.Hists[engine.HistIterationTokens]; steps.Sum != 360 || steps.Count != 100 {
		t.Errorf("tokens of steps %+v, want 120 computed and 240 generated in 100", steps)
	}
	if output := third.Hists[engine.HistGenerationTokens]; output.Sum != 60 || output.Count != 2 {
		t.Errorf("outputs %+v, want the 60 tokens that the page counted for 2 requests", output)
	}
	if r := first.Ranks; len(r) != 1 || r[0].Cache.KVCacheSizeTokens != "4096" || r[0].Cache.BlockSize != "1" || r[0].Steps != some(100) {
		t.Errorf("ranks %+v", r)
	}
}

// Whether the slots share their context is not on the page: without the launch its size is unknown.
func TestPool(t *testing.T) {
	for _, tc := range []struct {
		name   string
		launch map[string]facts.Setting
		want   string
	}{
		{"divided", divided, "4096"},
		{"shared by --kv-unified", map[string]facts.Setting{"max_num_seqs": {Value: "2"}, "kv_unified": {Value: "true"}}, "2048"},
		{"shared because the slots are left to the server", map[string]facts.Setting{}, "2048"},
		{"divided although left to the server", map[string]facts.Setting{"kv_unified": {Value: "false"}}, "4096"},
		{"the launch is unknown", nil, ""},
	} {
		client := server{"/metrics": {page("0")}, "/slots": {slots(busy("1", "50", "0"), busy("2", "50", "0"))}}.client(t)
		got := read(t, new(Pages), client, tc.launch)
		if size := got.Ranks[0].Cache.KVCacheSizeTokens; size != tc.want || got.Gauges[engine.GaugeKVUsage].OK != (tc.want != "") {
			t.Errorf("%s: %q tokens, usage %v, want %q", tc.name, size, got.Gauges[engine.GaugeKVUsage], tc.want)
		}
	}
}

// Requests that come and go between two pages cannot be counted by what their slots serve.
func TestShortRequestsAreNotCounted(t *testing.T) {
	s := server{}
	predicted := 0
	for i := range 12 {
		predicted += 300 // three requests of 100 tokens in each slot
		s["/metrics"] = append(s["/metrics"], page(strconv.Itoa(predicted)))
		s["/slots"] = append(s["/slots"], slots(busy(strconv.Itoa(10+10*i), "50", "20"), busy(strconv.Itoa(11+10*i), "50", "20")))
	}
	client, p := s.client(t), new(Pages)
	var got engine.Page
	for range 12 {
		got = read(t, p, client, divided)
	}
	if n := got.Counters[engine.CounterRequestSuccess]; n.OK || got.Hists[engine.HistGenerationTokens].OK {
		t.Errorf("%v requests of %v tokens: want none, since one page in three of them is seen", n, got.Hists[engine.HistGenerationTokens])
	}
	if !got.Counters[engine.CounterGenerationTokens].OK {
		t.Error("their tokens are counted all the same")
	}
}

func TestAnswers(t *testing.T) {
	client := server{"/props": {`{"default_generation_settings":{"params":{},"n_ctx":2048},"total_slots":2,"model_alias":"m","model_path":"/models/m.gguf","build_info":"b11669-Debian"}`}}.client(t)
	got, missing, err := Discover(t.Context(), client)
	want := facts.ServerAnswers{Version: "b11669", Model: "m", Root: "/models/m.gguf", MaxModelLen: 2048}
	if d := cmp.Diff(want, got); d != "" || len(missing) > 0 || err != nil {
		t.Errorf("%s missing %v, %v", d, missing, err)
	}
	if _, missing, _ := Discover(t.Context(), server{}.client(t)); len(missing) != 1 || missing[0].What != "/props" {
		t.Errorf("without /props: %v", missing)
	}
}

func TestServersWithoutEndpoints(t *testing.T) {
	got := read(t, new(Pages), server{"/metrics": {page("5")}}.client(t), divided)
	if got.Gauges[engine.GaugeMaxNumSeqs].OK || got.Counters[engine.CounterGenerationTokens] != stat.Some(5) {
		t.Errorf("with --no-slots: slots %v, tokens %v, want no slots, and the page's tokens", got.Gauges[engine.GaugeMaxNumSeqs], got.Counters[engine.CounterGenerationTokens])
	}
	_, err := new(Pages).Get(t.Context(), server{}.client(t), nil, nil)
	var status *collect.StatusError
	if !errors.As(err, &status) || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("without --metrics: %v, want the flag", err)
	}
}

func FuzzSlots(f *testing.F) {
	f.Add(page("5"), slots(busy("1", "50", "3"), busy("2", "50", "0")))
	f.Add(page("5"), `[{"id":0,"next_token":{"n_decoded":3}}]`)
	f.Add("llamacpp:n_decode_total 1\n", `[]`)
	f.Fuzz(func(t *testing.T, text, list string) {
		got, err := parse([]byte(list))
		if err != nil {
			return
		}
		body := new(Pages).extend([]byte(text), got, divided)
		if !strings.HasPrefix(string(body), text) {
			t.Errorf("the page changed:\n%s", body)
		}
	})
}
