package vllmsim

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// scrape reads a page: the sum of each family over its label sets, but of
// series with a finished_reason those too, by name{reason}.
func scrape(t testing.TB, v *Server, now time.Duration) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(string(v.Page(nil, now))) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("page has %q", line)
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		if strings.HasSuffix(name, "_bucket") {
			continue
		}
		out[name] += value
		if _, reason, ok := strings.Cut(labels, `finished_reason="`); ok {
			reason, _, _ = strings.Cut(reason, `"`)
			out[name+"{"+reason+"}"] += value
		}
	}
	return out
}

// world is a random server under a random load.
type world struct {
	args     []string
	requests []sent
	cancels  bool
	pages    time.Duration // between scrapes
}

type sent struct {
	at     time.Duration // since healthy
	call   Call
	cancel time.Duration // after at; 0 never
}

func randomWorld(seed uint64) world {
	r := rand.New(rand.NewPCG(seed, 99))
	pick := func(options ...string) string { return options[r.IntN(len(options))] }
	var w world
	add := func(args ...string) { w.args = append(w.args, args...) }
	slots := 1 + r.IntN(40)
	blocks := 150 + r.IntN(600)
	block := 16
	if r.IntN(3) == 0 {
		block = 32
	}
	add("--max-num-seqs", strconv.Itoa(slots), "--num-gpu-blocks-override", strconv.Itoa(blocks), "--block-size", strconv.Itoa(block))
	release := pick("0.10", "0.11", "0.20", "0.32", "0.32")
	add("--sim-seed", strconv.FormatUint(seed, 10), "--sim-dialect", release, "--max-model-len", "2048")
	budget := max(slots, []int{96, 512, 2048, 3072, 4096}[r.IntN(5)])
	if r.IntN(5) == 0 {
		add("--no-enable-chunked-prefill")
		budget = max(budget, 2048) // else vLLM refuses
	}
	add("--max-num-batched-tokens", strconv.Itoa(budget))
	for _, o := range []struct {
		odds, since int
		args        []string
	}{
		{3, 10, []string{"--no-async-scheduling"}},
		{3, 20, []string{"--no-scheduler-reserve-full-isl"}},
		{3, 32, []string{"--watermark", pick("0.01", "0.05", "0.2")}},
		{4, 10, []string{"--kv-cache-dtype", "fp8"}},
		{4, 10, []string{"--api-server-count", strconv.Itoa(2 + r.IntN(3))}},
		{4, 10, []string{"--tensor-parallel-size", "2"}},
		{5, 10, []string{"--enforce-eager"}},
		{4, 10, []string{"--no-enable-prefix-caching"}},
		{4, 10, []string{"--scheduling-policy", "priority"}},
		{4, 10, []string{"--long-prefill-token-threshold", strconv.Itoa(64 + r.IntN(400))}},
		{3, 10, []string{"--data-parallel-size", strconv.Itoa(2 + r.IntN(2))}},
		{3, 11, []string{"--stream-interval", strconv.Itoa(2 + r.IntN(6))}},
	} {
		if settings.Minor(release) >= o.since && r.IntN(o.odds) == 0 {
			add(o.args...)
		}
	}
	adapters := r.IntN(4) == 0
	if adapters {
		add("--enable-lora", "--max-loras", "1", "--lora-modules", "red=/r", "blue=/b")
	}
	w.cancels = r.IntN(2) == 0
	switch r.IntN(6) {
	case 0:
		add("--sim-fault", "slow@2+5x1.7,stall@4+3")
	case 1:
		// Client and page see different ends of an answer that is cancelled while under way.
		if !w.cancels {
			add("--sim-fault", "network@3+4x250ms,stall@6+1#0")
		}
	}
	w.pages = time.Duration(200+r.IntN(2000)) * time.Millisecond
	at := time.Duration(0)
	shared := prompt(200, seed)
	for i := range 60 + r.IntN(120) {
		if i%7 != 0 { // bursts
			at += time.Duration(r.ExpFloat64() * float64(150*time.Millisecond))
		}
		c := Call{Prompt: prompt(1+r.IntN(700), seed*1000+uint64(i)), MaxTokens: 1 + r.IntN(300), IgnoreEOS: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			c.Prompt = shared + " " + c.Prompt
		}
		c.Priority = r.IntN(3)
		c.Once = r.IntN(5) == 0
		if adapters {
			c.Model = pick("", "red", "blue")
		}
		if r.IntN(8) == 0 {
			c.MinTokens = min(c.MaxTokens, 10)
		}
		if r.IntN(8) == 0 {
			c.MaxTokens = 0
		}
		one := sent{at: at, call: c}
		if w.cancels && r.IntN(4) == 0 {
			one.cancel = time.Duration(r.Float64() * float64(6*time.Second))
		}
		w.requests = append(w.requests, one)
	}
	return w
}

// lived is the result of a world.
type lived struct {
	clients   []*tally
	cancelled map[int]bool
	page      map[string]float64
}

func (w *world) live(t testing.TB, s *settings.Settings) (*Server, *lived) {
	t.Helper()
	v := start(t, s)
	out := &lived{cancelled: map[int]bool{}}
	type act struct {
		at     time.Duration
		i      int
		cancel bool
	}
	var acts []act
	for i, one := range w.requests {
		acts = append(acts, act{at: v.Healthy() + one.at, i: i})
		if one.cancel > 0 {
			acts = append(acts, act{at: v.Healthy() + one.at + one.cancel, i: i, cancel: true})
		}
		out.clients = append(out.clients, &tally{})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return cmp.Compare(a.at, b.at) })
	ids := make([]core.ID, len(w.requests))
	lastPage := map[string]float64{}
	nextPage := v.Healthy()
	pass := func(until time.Duration) {
		t.Helper()
		for ; nextPage <= until; nextPage += w.pages {
			run(v, nextPage)
			page := scrape(t, v, nextPage)
			compareCounters(t, lastPage, page)
			lastPage = page
		}
		run(v, until)
	}
	for _, a := range acts {
		pass(a.at)
		if a.cancel {
			if out.clients[a.i].ends == 0 {
				out.cancelled[a.i] = true
			}
			v.Cancel(a.at, ids[a.i])
			continue
		}
		id, err := v.Submit(a.at, w.requests[a.i].call, out.clients[a.i].sink)
		if err != nil {
			t.Fatal(err)
		}
		ids[a.i] = id
	}
	drain(t, v)
	out.page = scrape(t, v, v.now)
	compareCounters(t, lastPage, out.page)
	return v, out
}

// compareCounters checks that no counter decreased.
func compareCounters(t testing.TB, before, after map[string]float64) {
	t.Helper()
	for name, was := range before {
		base, _, _ := strings.Cut(name, "{")
		if !strings.HasSuffix(base, "_total") && !strings.HasSuffix(base, "_count") && !strings.HasSuffix(base, "_sum") {
			continue
		}
		if is, ok := after[name]; !ok || is < was {
			t.Errorf("%s fell from %v to %v", name, was, is)
		}
	}
}

func TestInvariants(t *testing.T) {
	worlds := uint64(15)
	if longtest.Tests {
		worlds = 60
	}
	preempted, aborted := 0, 0 // worlds in which something happened that the invariants are there for
	for seed := range worlds {
		w := randomWorld(seed)
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := parsed(t, w.args...)
			v, got := w.live(t, s)
			if got.page["vllm:num_preemptions_total"] > 0 {
				preempted++
			}
			if len(got.cancelled) >= 3 {
				aborted++
			}
			checkInvariants(t, &w, s, v, got)
			if t.Failed() {
				t.Log("vllm serve", strings.Join(w.args, " "))
			}
		})
	}
	if least := int(worlds) / 10; preempted < least || aborted < least {
		t.Errorf("of %d worlds, requests were preempted in %d and cancelled in %d, want each in a tenth", worlds, preempted, aborted)
	}
}

func checkInvariants(t *testing.T, w *world, s *settings.Settings, v *Server, got *lived) {
	t.Helper()
	page := got.page
	generated, promptTokens := page["vllm:generation_tokens_total"], page["vllm:prompt_tokens_total"]

	// The page counts the tokens that the clients got.
	received, whole, finished, prompts := 0, true, 0, 0
	for i, c := range got.clients {
		if c.ends > 1 || c.ends == 0 && !got.cancelled[i] {
			t.Errorf("request %d ended %d times", i, c.ends)
		}
		if got.cancelled[i] {
			if c.ends != 0 {
				t.Errorf("request %d got its end after it was cancelled", i)
			}
			received += c.tokens
			whole = whole && s.StreamInterval == 1 && !w.requests[i].call.Once
			continue
		}
		finished++
		prompts += c.history.PromptTokens
		if c.history.OutputTokens != c.tokens {
			t.Errorf("request %d: %d tokens, its history has %d", i, c.tokens, c.history.OutputTokens)
		}
		received += c.tokens
		checkLife(t, i, w.requests[i].call, c)
	}
	switch counted := int(generated); {
	case whole && counted != received:
		t.Errorf("clients got %d tokens, the page counts %d", received, counted)
	case counted < received:
		t.Errorf("clients got %d tokens, more than the page's %d", received, counted)
	}
	if int(page["vllm:request_success_total"]) != finished {
		t.Errorf("%v requests finished by the page, %d by their clients", page["vllm:request_success_total"], finished)
	}
	if len(got.cancelled) == 0 && int(promptTokens) != prompts {
		t.Errorf("the page counts %v prompt tokens, clients %d", promptTokens, prompts)
	}
	if len(v.requests) != 0 {
		t.Errorf("%d requests in flight after the end", len(v.requests))
	}

	// The page is consistent.
	equal := func(name string, want float64) {
		t.Helper()
		if have, ok := page[name]; !ok || have != want {
			t.Errorf("%s = %v (on the page: %v), want %v", name, have, ok, want)
		}
	}
	equal("vllm:num_requests_running", 0)
	equal("vllm:num_requests_waiting", 0)
	equal("vllm:kv_cache_usage_perc", 0)
	equal("vllm:request_success_total{abort}", 0)
	equal("vllm:e2e_request_latency_seconds_count", float64(finished))
	ttft := page["vllm:time_to_first_token_seconds_count"]
	gaps := "vllm:inter_token_latency_seconds"
	if settings.Minor(s.Release) < 11 {
		gaps = "vllm:time_per_output_token_seconds"
	}
	equal(gaps+"_count", generated-ttft)
	if ttft < float64(finished) || ttft > float64(len(w.requests)) {
		t.Errorf("%v first tokens of %d requests, %d of them finished", ttft, len(w.requests), finished)
	}
	computed := promptTokens
	if s.Generation == core.New {
		computed -= page["vllm:prompt_tokens_cached_total"]
	}
	equal("vllm:iteration_tokens_total_sum", computed+generated)
	if hits, queries := page["vllm:prefix_cache_hits_total"], page["vllm:prefix_cache_queries_total"]; hits > queries || math.Mod(hits, float64(s.BlockSize)) != 0 {
		t.Errorf("%v of %v looked-up tokens hit, in blocks of %d", hits, queries, s.BlockSize)
	}
	sum := func(name string) float64 { return page["vllm:"+name+"_seconds_sum"] }
	if p, d, i := sum("request_prefill_time"), sum("request_decode_time"), sum("request_inference_time"); math.Abs(p+d-i) > 1e-6*i {
		t.Errorf("prefill %v + decode %v is not inference %v", p, d, i)
	}
}

func checkLife(t *testing.T, i int, call Call, c *tally) {
	t.Helper()
	l := c.history
	if !(l.Arrival <= l.Queued && l.Queued <= l.Scheduled && l.Scheduled < l.FirstToken && l.FirstToken <= l.LastToken && l.LastToken < c.last) {
		t.Errorf("request %d: times out of order: %+v", i, *l)
	}
	if !call.Once && c.first-l.Arrival < (l.Scheduled-l.Queued)+(l.FirstToken-l.Scheduled) {
		t.Errorf("request %d: first token after %v, queue and prefill take more", i, c.first-l.Arrival)
	}
	switch {
	case c.finish == core.Length && l.OutputTokens != l.MaxTokens:
		t.Errorf("request %d ended by length at %d of %d tokens", i, l.OutputTokens, l.MaxTokens)
	case c.finish == core.Stop && (call.IgnoreEOS || l.OutputTokens < call.MinTokens):
		t.Errorf("request %d stopped at %d tokens, ignore_eos %v, min_tokens %d", i, l.OutputTokens, call.IgnoreEOS, call.MinTokens)
	case c.finish != core.Length && c.finish != core.Stop:
		t.Errorf("request %d ended by %v: %v", i, c.finish, c.err)
	}
	if call.Once && c.updates != 1 {
		t.Errorf("request %d got %d updates without streaming", i, c.updates)
	}
}

// TestCoarseAdvance advances in large steps, like a wall clock that is late.
func TestCoarseAdvance(t *testing.T) {
	w := randomWorld(8)
	w.cancels = false
	drive := func(stride time.Duration) ([]byte, []time.Duration) {
		v := start(t, parsed(t, w.args...))
		var firsts []*tally
		for _, one := range w.requests {
			got, _ := submit(t, v, v.Healthy()+one.at, one.call)
			firsts = append(firsts, got)
		}
		end := v.Healthy() + 20*time.Minute
		if stride == 0 {
			run(v, end)
		}
		for at := v.Healthy(); stride > 0 && at <= end; at += stride {
			v.Advance(at)
		}
		var ends []time.Duration
		for _, c := range firsts {
			ends = append(ends, c.first, c.last)
		}
		return v.Page(nil, end), ends
	}
	page, ends := drive(0)
	for _, stride := range []time.Duration{time.Millisecond, 700 * time.Millisecond, time.Minute} {
		coarse, times := drive(stride)
		if !bytes.Equal(page, coarse) {
			t.Errorf("strides of %v change the page", stride)
		}
		if !slices.Equal(ends, times) {
			t.Errorf("strides of %v change the times of updates", stride)
		}
	}
}
