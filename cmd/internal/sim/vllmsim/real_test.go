package vllmsim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
)

// parse reads the command line of a server that is up at once, at an address of this
// process. "_" is a blank within a word.
func parseArgs(t testing.TB, line string) *settings.Settings {
	t.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "_", " ")
	}
	at := programtest.Address(t)
	s, err := settings.Parse(append(words, "--host", at.Addr().String(), "--port", strconv.Itoa(int(at.Port())), "--sim-startup-time", "0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func startReal(t testing.TB, line string) *Host {
	t.Helper()
	h, err := Open(parseArgs(t, line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background(), false) })
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// scrape reads the server's metrics as rooftop does.
func scrapeReal(t *testing.T, h *Host) *engine.Page {
	t.Helper()
	var p engine.Page
	if err := enginepage.NewReader("", vllm.Dialect()).Parse([]byte(ask(t, h, "GET", "/metrics", "").body), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// The page counts what clients received, and a restart begins at zero with the new configuration.
func TestWhatClientsGotIsOnThePage(t *testing.T) {
	h := startReal(t, "Qwen/Qwen3-8B --sim-gpu B200 --max-model-len 2048 --max-num-seqs 4 --sim-scale 200")
	const clients, each, tokens = 8, 3, 25
	var got atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for range each {
				body := fmt.Sprintf(`{"prompt":"word %d","max_tokens":%d,"ignore_eos":true,"stream":true}`, i, tokens)
				w, err := http.Post(h.URL()+"/v1/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				for scan := bufio.NewScanner(w.Body); scan.Scan(); {
					if strings.Contains(scan.Text(), `"choices":[{`) {
						got.Add(1)
					}
				}
				w.Body.Close()
			}
		})
	}
	all.Wait()
	p := scrapeReal(t, h)
	if want := int64(clients * each * tokens); got.Load() != want || int64(p.Counters[engine.CounterGenerationTokens].V) != want {
		t.Errorf("%d tokens were asked for, clients got %d, the page has %v", want, got.Load(), p.Counters[engine.CounterGenerationTokens])
	}
	if n := p.Counters[engine.CounterHTTP2xx]; n.V != clients*each {
		t.Errorf("%v answers of kind 2xx, want %d", n, clients*each)
	}
	if used := p.KVUsageMax; used.V != 0 {
		t.Errorf("an idle server's KV usage is %v", used)
	}

	before := p.StartTime
	if err := h.Restart(parseArgs(t, "Qwen/Qwen3-8B --sim-gpu B200 --max-model-len 1024 --sim-scale 200")); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = scrapeReal(t, h)
	if p.Counters[engine.CounterGenerationTokens].V != 0 || !(p.StartTime.V > before.V) {
		t.Errorf("after a restart: %v tokens, started %v and before %v", p.Counters[engine.CounterGenerationTokens], p.StartTime, before)
	}
	if models := ask(t, h, "GET", "/v1/models", ""); !strings.Contains(models.body, `"max_model_len":1024`) {
		t.Errorf("after a restart: %s", models.body)
	}
}

// If vLLM would not start with a configuration, the port is free for the next one.
func TestARefusedRestart(t *testing.T) {
	h := startReal(t, "Qwen/Qwen3-8B --sim-gpu L4 --max-model-len 2048")
	if err := h.Restart(parseArgs(t, "meta-llama/Llama-3.1-70B-Instruct --sim-gpu L4 --max-model-len 2048")); err == nil {
		t.Fatal("70 B parameters started on an L4")
	}
	if err := h.Wait(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("after a refused restart: %v", err)
	}
	if err := h.Restart(parseArgs(t, "Qwen/Qwen3-8B --sim-gpu L4 --max-model-len 2048")); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, h, "GET", "/health", ""); got.status != 200 {
		t.Errorf("health answers %d", got.status)
	}
}
