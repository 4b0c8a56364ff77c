//go:build proof && e2e && linux

package main_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

const small8B = "Qwen/Qwen3-8B --sim-gpu L4 --max-model-len 8192"

// moreScraped are servers beside those of TestE2EFleet: a fault more, and three of one model of which
// two differ from the first.
var moreScraped = []scrapedServer{
	{name: "small budget", sim: strings.Fields(small8B + " --max-num-batched-tokens 256"), load: []string{"--clients", "24", "--prompt-tokens", "1500", "--output-tokens", "40"}, outcome: "recommendation", flag: "--max-num-batched-tokens"},
	{name: "two clients", sim: strings.Fields(small8B), load: []string{"--clients", "2", "--shared-prefix", "200"}, outcome: "recommendation"},
	{name: "older release", sim: strings.Fields(small8B + " --sim-dialect 0.20"), load: []string{"--clients", "8", "--shared-prefix", "60"}},
	{name: "other settings", sim: strings.Fields(small8B + " --max-num-seqs 64"), load: []string{"--clients", "8", "--shared-prefix", "60"}},
	{name: "restarted", sim: strings.Fields(small8B + " --sim-fault reset@60s"), load: []string{"--clients", "8", "--shared-prefix", "60"}},
}

// TestProofFleet reads twelve simulated servers and a real vLLM through Prometheus at four scrape intervals, and
// through VictoriaMetrics, and reports what is said of each. It takes 14 minutes:
//
//	ROOFTOP_E2E_VLLM=… ROOFTOP_E2E_PROMETHEUS=… go test -tags e2e,proof -run ProofFleet -v -timeout 30m ./cmd/rooftop
func TestProofFleet(t *testing.T) {
	programs := os.Getenv("ROOFTOP_E2E_PROMETHEUS")
	if programs == "" {
		t.Fatal("ROOFTOP_E2E_PROMETHEUS is not set: run .ci/install-prometheus and give its last line")
	}
	vllm := startServer(t, freePort(t), "--max-num-seqs", "4")
	offer(t, vllm.url(), "", loadgen.Load{Clients: 16, PromptTokens: loadgen.Fixed(60), OutputTokens: loadgen.Fixed(60), Style: loadgen.Characters, Stagger: time.Second, Seed: 1})
	targets, byName, later := scrapable(t, append(slices.Clone(scrapedServers), moreScraped...))
	address := strings.TrimPrefix(vllm.url(), "http://")
	targets, byName[address] = append(targets, address), &scrapedServer{name: "a real vLLM with few slots", outcome: "recommendation", flag: "--max-num-seqs"}

	const long = 12 * time.Minute
	stores := map[string]string{}
	var names []string
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute} {
		name := fmt.Sprintf("Prometheus every %v", interval)
		names = append(names, name)
		stores[name], _ = scraping(t, programs, "Prometheus", interval, targets)
	}
	const other = "VictoriaMetrics every 15s"
	names = append(names, other)
	stores[other], _ = scraping(t, programs, "VictoriaMetrics", 15*time.Second, targets)
	time.Sleep(long - 3*time.Minute)
	for _, f := range later {
		f()
	}
	time.Sleep(3 * time.Minute)
	for _, name := range names {
		a := rooftop(t, "fleet", "--prometheus", stores[name], "--since", (long - 20*time.Second).String(), "--json")
		right := 0
		for _, row := range fleetRows(t, a, len(targets)) {
			verdict := "NOT RIGHT"
			if s := byName[row.Name]; row.is(s) {
				verdict = "right"
				right++
			}
			t.Logf("%-26s %-28s %-9s %s", name, byName[row.Name].name, verdict, row.said())
		}
		t.Logf("%s: %d of %d", name, right, len(targets))
		t.Logf("\n%s", rooftop(t, "fleet", "--prometheus", stores[name], "--since", (long-20*time.Second).String()).stdout)
	}
}
