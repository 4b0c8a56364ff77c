//go:build e2e && linux

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// boardServers are servers for which every panel of the boards has data: one with a recommendation, and two of one
// model, one of which hangs.
var boardServers = []scrapedServer{
	{name: "slots", sim: []string{"Qwen/Qwen3-8B", "--sim-gpu", "L4", "--max-model-len", "8192", "--max-num-seqs", "8"}, load: []string{"--clients", "24"}},
	{name: "hung", sim: []string{"Qwen/Qwen3-4B", "--sim-gpu", "L4", "--max-model-len", "8192", "--sim-fault", "stall@30s+10m"}, load: []string{"--clients", "8"}},
	{name: "its twin", sim: []string{"Qwen/Qwen3-4B", "--sim-gpu", "L4", "--max-model-len", "8192"}, load: []string{"--clients", "8"}},
}

// TestE2EBoards asks a real Prometheus, which scrapes servers and an exporter and has the rules that rooftop prints, for
// the data of every panel. The alerts in the rules are tested by promtool in TestE2EFleet.
func TestE2EBoards(t *testing.T) {
	t.Parallel()
	programs := os.Getenv("ROOFTOP_E2E_PROMETHEUS")
	if programs == "" {
		t.Fatal("ROOFTOP_E2E_PROMETHEUS is not set: run .ci/install-prometheus and give its last line")
	}
	targets, _, _ := scrapable(t, boardServers)
	prometheus, exporter, dir := programtest.Address(t).String(), programtest.Address(t).String(), t.TempDir()
	config := fmt.Sprintf(`global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: ['rules.yml']
scrape_configs:
- {job_name: vllm, static_configs: [{targets: ['%s']}]}
- {job_name: rooftop, static_configs: [{targets: ['%s']}]}
`, strings.Join(targets, "', '"), exporter)
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "rules.yml"), rooftop(t, "rules", "prometheus", "--slo", "ttft_p95=1s").stdout, 0o600))
	cmd := exec.Command(filepath.Join(programs, "root", "usr", "bin", "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+prometheus)
	must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	awaitAnswer(t, "http://"+prometheus+"/-/healthy")
	time.Sleep(60 * time.Second) // a diagnosis needs windows, with the fault in them
	spawn(t, "exporter", "--prometheus", "http://"+prometheus, "--since", "1m", "--pause", "5s", "--gpu", "L4", "--listen", exporter, "--cost-per-hour", "1")
	askBoards(t, "http://"+prometheus, targets[0], time.Now().Add(time.Minute))
}

// emptyPanels are the panels without data for a server that is not ill.
var emptyPanels = map[string]string{"State, if it is ill or cannot be read": "the server is well"}

// askBoards asks a Prometheus server for the data of every panel, until every panel has what it should or limit
// has passed: rates over 15 s may have none for a moment.
func askBoards(t *testing.T, prometheus, server string, limit time.Time) {
	for _, name := range []string{"fleet", "server"} {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		must(t, json.Unmarshal(rooftop(t, "rules", "grafana", name).stdout, &board))
		queries := 0
		for _, p := range board.Panels {
			for _, q := range p.Targets {
				queries++
				expr := strings.NewReplacer("$__rate_interval", "15s", "$model", ".+", "$server", server).Replace(q.Expr)
				for {
					fault := askPanel(t, prometheus, expr, emptyPanels[p.Title])
					if fault == "" {
						break
					}
					if time.Now().After(limit) {
						t.Errorf("%s, %s: %s: %s", name, p.Title, fault, expr)
						break
					}
					time.Sleep(time.Second)
				}
			}
		}
		t.Logf("%s: %d panels, %d queries", name, len(board.Panels), queries)
	}
}

// askPanel asks for the data of one query, and returns what is wrong with the answer. If empty is set, it says why
// there should be no data.
func askPanel(t *testing.T, prometheus, expr, empty string) (fault string) {
	response, err := http.Get(prometheus + "/api/v1/query?query=" + neturl.QueryEscape(expr))
	must(t, err)
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		return fmt.Sprint(err, answer.Error)
	}
	series := answer.Data.Result
	if (len(series) == 0) != (empty != "") {
		return fmt.Sprintf("%d series, empty because %q", len(series), empty)
	}
	// A quantile without requests is not a number.
	if len(series) > 0 && !slices.ContainsFunc(series, func(r struct{ Value [2]any }) bool { return r.Value[1] != "NaN" }) {
		return "no number"
	}
	return ""
}
