//go:build proof && e2e && linux

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/porttest"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

const small8B = "Qwen/Qwen3-8B --sim-gpu L4 --max-model-len 8192"

// moreScraped are servers beside those of TestE2EFleet: a fault more, and three of one model of which
// two differ from the first.
var moreScraped = []scrapedServer{
	{name: "small budget", sim: strings.Fields(small8B + " --max-num-batched-tokens 256"), load: []string{"--clients", "24", "--prompt-tokens", "1500", "--output-tokens", "40"}, outcome: "recommendation", flag: "--max-num-batched-tokens"},
	{name: "two clients", sim: strings.Fields(small8B), load: []string{"--clients", "2", "--shared-prefix", "60"}, outcome: "recommendation"},
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
	vllm := startServer(t, porttest.Address(t), "--max-num-seqs", "4")
	offer(t, vllm.url(), "", loadgen.Load{Clients: 16, PromptTokens: loadgen.Fixed(60), OutputTokens: loadgen.Fixed(60), Style: loadgen.Characters, Stagger: time.Second, Seed: 1})
	servers := append(slices.Clone(scrapedServers), moreScraped...)
	for i := range servers {
		for j, word := range servers[i].sim {
			servers[i].sim[j] = strings.Replace(word, "stall@40s+10m", "stall@40s+1h", 1)
		}
	}
	targets, byName, later := scrapable(t, servers)
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

// TestProofFleetScale reads 1,000 servers of four ranks each, of which each answers with the page of one simulated
// server under load, from one Prometheus that scrapes them every 30 s. It takes eight minutes, 6 GB, and the machine
// to itself:
//
//	ROOFTOP_E2E_PROMETHEUS=… go test -tags e2e,proof -run ProofFleetScale -v -timeout 30m ./cmd/rooftop
func TestProofFleetScale(t *testing.T) {
	const servers, interval = 1000, 30 * time.Second
	programs := os.Getenv("ROOFTOP_E2E_PROMETHEUS")
	if programs == "" {
		t.Fatal("ROOFTOP_E2E_PROMETHEUS is not set: run .ci/install-prometheus and give its last line")
	}
	source, _, _ := scrapable(t, []scrapedServer{{name: "four ranks", sim: strings.Fields("Qwen/Qwen3-8B --sim-gpu L4 --max-model-len 8192 --max-num-seqs 8 --data-parallel-size 4"), load: []string{"--clients", "64"}}})
	var mutex sync.Mutex
	var page []byte
	var read time.Time
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if time.Since(read) > time.Second {
			response, err := http.Get("http://" + source[0] + "/metrics")
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			page, _ = io.ReadAll(response.Body)
			response.Body.Close()
			read = time.Now()
		}
		_, _ = w.Write(page)
	}))
	defer pages.Close()
	var targets []string
	for i := range servers {
		targets = append(targets, fmt.Sprintf("%s server-%04d", strings.TrimPrefix(pages.URL, "http://"), i))
	}
	store, prometheus := scraping(t, programs, "Prometheus", interval, targets)
	time.Sleep(6 * time.Minute)

	// Between rooftop and Prometheus, the bytes of the answers are counted.
	upstream, err := neturl.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	var answered atomic.Int64
	through := httputil.NewSingleHostReverseProxy(upstream)
	through.ModifyResponse = func(r *http.Response) error {
		r.Body = &countedBody{r.Body, &answered}
		return nil
	}
	proxy := httptest.NewServer(through)
	defer proxy.Close()
	before := usageOf(t, prometheus.Process.Pid)
	path, err := named()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "fleet", "--prometheus", proxy.URL, "--since", "5m", "--json")
	began := time.Now()
	out, err := cmd.Output()
	took, state := time.Since(began), cmd.ProcessState
	after := usageOf(t, prometheus.Process.Pid)
	t.Logf("%d bytes of JSON, %v", len(out), err)
	rows := fleetRows(t, answer{stdout: out, code: state.ExitCode()}, servers)
	right := 0
	for _, row := range rows {
		if row.flag() == "--max-num-seqs" {
			right++
		}
	}
	t.Logf("rooftop: %.1f s, %.1f s of CPU, %d MB at most; %d MB of answers; %d of %d with the slots", took.Seconds(), (state.UserTime() + state.SystemTime()).Seconds(),
		state.SysUsage().(*syscall.Rusage).Maxrss>>10, answered.Load()>>20, right, servers)
	t.Logf("Prometheus: %.1f s of CPU meanwhile, scrapes included; %d MB before, %d MB after", after.cpu-before.cpu, before.resident>>20, after.resident>>20)
	if right != servers {
		t.Errorf("%d of %d servers have their recommendation", right, servers)
	}
}

type countedBody struct {
	io.ReadCloser
	sum *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.sum.Add(int64(n))
	return n, err
}

// usage is what a process took so far: seconds of CPU, and bytes that are resident.
type usage struct {
	cpu      float64
	resident int64
}

func usageOf(t *testing.T, pid int) usage {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest) // from the third field on
	return usage{cpu: float64(number(t, f[11])+number(t, f[12])) / 100, resident: int64(number(t, f[21])) * int64(os.Getpagesize())}
}
