//go:build e2e && linux

package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// scrapedServer is a simulated server with a planted fault, and the expected entry of the fleet.
type scrapedServer struct {
	name    string
	sim     []string
	load    []string // nil for none
	gone    bool     // ends after a minute
	outcome string
	flag    string // recommended
	ill     string // the state of its condition
}

var scrapedServers = []scrapedServer{
	{name: "few slots", sim: []string{"Qwen/Qwen3-8B", "--sim-gpu", "L4", "--max-model-len", "8192", "--max-num-seqs", "8"}, load: []string{"--clients", "24"}, outcome: "recommendation", flag: "--max-num-seqs"},
	{name: "small pool", sim: []string{"Qwen/Qwen3-8B", "--sim-gpu", "L4", "--max-model-len", "8192", "--num-gpu-blocks-override", "520"}, load: []string{"--clients", "24", "--prompt-tokens", "600", "--output-tokens", "300"}, outcome: "recommendation", flag: "--num-gpu-blocks-override"},
	{name: "caching off", sim: []string{"Qwen/Qwen3-4B", "--sim-gpu", "L4", "--max-model-len", "8192", "--no-enable-prefix-caching"}, load: []string{"--clients", "6", "--prompt-tokens", "1500", "--prefix-tokens", "1200", "--output-tokens", "40"}, outcome: "recommendation", flag: "--enable-prefix-caching"},
	{name: "healthy", sim: []string{"Qwen/Qwen3-8B", "--sim-gpu", "L4", "--max-model-len", "8192"}, load: []string{"--clients", "8", "--prefix-tokens", "60"}},
	{name: "idle", sim: []string{"Qwen/Qwen3-8B", "--sim-gpu", "L4", "--max-model-len", "8192"}, outcome: "no-load"},
	{name: "hung", sim: []string{"Qwen/Qwen3-8B", "--sim-gpu", "L4", "--max-model-len", "8192", "--sim-fault", "stall@40s+10m"}, load: []string{"--clients", "8"}, outcome: "unhealthy", ill: "hung"},
	{name: "down", sim: []string{"Qwen/Qwen3-8B", "--sim-gpu", "L4", "--max-model-len", "8192"}, load: []string{"--clients", "8"}, gone: true, outcome: "unhealthy", ill: "down"},
}

// scrapable starts servers and their load. It returns their addresses, each with its server, and functions that
// stop the servers that must be down.
func scrapable(t *testing.T, servers []scrapedServer) (targets []string, byName map[string]*scrapedServer, later []func()) {
	t.Helper()
	byName = map[string]*scrapedServer{}
	for i := range servers {
		s := &servers[i]
		at := programtest.Address(t)
		server := spawn(t, slices.Concat([]string{"sim"}, s.sim, []string{"--sim-startup-time", "1s"}, listensAt(at))...)
		address := at.String()
		targets, byName[address] = append(targets, address), s
		awaitAnswer(t, "http://"+address+"/health")
		if s.load != nil {
			spawn(t, append([]string{"load", "--url", "http://" + address, "--duration", "0"}, s.load...)...)
		}
		if s.gone {
			later = append(later, server.kill)
		}
	}
	return targets, byName, later
}

// scraping starts a Prometheus or a VictoriaMetrics that scrapes targets, and returns its URL. A target may be followed
// by its instance label: "127.0.0.1:8000 gpu-7".
func scraping(t *testing.T, programs, name string, interval time.Duration, targets []string) (string, *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: %v}\nscrape_configs:\n- job_name: vllm\n  static_configs:\n", interval)
	for _, target := range targets {
		address, instance, _ := strings.Cut(target, " ")
		text += fmt.Sprintf("  - {targets: ['%s'], labels: {instance: '%s'}}\n", address, cmp.Or(instance, address))
	}
	must(t, os.WriteFile(config, []byte(text), 0o600))
	argv := map[string][]string{
		"Prometheus":      {"prometheus", "--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address="},
		"VictoriaMetrics": {"victoria-metrics", "-promscrape.config=" + config, "-storageDataPath=" + filepath.Join(dir, "data"), "-httpListenAddr="},
	}[name]
	address := programtest.Address(t).String()
	argv[len(argv)-1] += address
	cmd := exec.Command(filepath.Join(programs, "root", "usr", "bin", argv[0]), argv[1:]...)
	must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	awaitAnswer(t, "http://"+address+"/-/healthy", "http://"+address+"/health")
	return "http://" + address, cmd
}

// TestE2EFleet reads servers through a real Prometheus and a real VictoriaMetrics that scrape them.
func TestE2EFleet(t *testing.T) {
	t.Parallel()
	programs := os.Getenv("ROOFTOP_E2E_PROMETHEUS")
	if programs == "" {
		t.Fatal("ROOFTOP_E2E_PROMETHEUS is not set: run .ci/install-prometheus and give its last line")
	}
	targets, byName, later := scrapable(t, scrapedServers)
	dir := t.TempDir()
	stores, running := map[string]string{}, map[string]*exec.Cmd{}
	for _, name := range []string{"Prometheus", "VictoriaMetrics"} {
		stores[name], running[name] = scraping(t, programs, name, 5*time.Second, targets)
	}
	time.Sleep(60 * time.Second)
	for _, f := range later {
		f()
	}
	time.Sleep(30 * time.Second)

	for name, url := range stores {
		t.Run(name, func(t *testing.T) {
			t.Logf("\n%s", rooftop(t, "fleet", "--prometheus", url, "--since", "85s").stdout)
			a := rooftop(t, "fleet", "--prometheus", url, "--since", "85s", "--json")
			if a.code != 6 {
				t.Errorf("exit code %d, want 6: two servers are ill\n%s", a.code, a.stderr)
			}
			for i, s := range fleetRows(t, a, len(byName)) {
				want := byName[s.Name]
				if !s.is(want) {
					t.Errorf("%s: %s; want %s, %q, %q", want.name, s.said(), want.outcome, want.ill, want.flag)
				}
				if (want.ill != "") != (i < 2) {
					t.Errorf("%s is in row %d: the ill come first", want.name, i+1)
				}
			}
			instance := ""
			for address, s := range byName {
				if s.name == "few slots" {
					instance = address
				}
			}
			one := rooftop(t, "diagnose", "--prometheus", url, "--match", fmt.Sprintf("instance=%q", instance), "--since", "85s")
			if one.code != 3 || !bytes.Contains(one.stdout, []byte("--max-num-seqs 8 → ")) {
				t.Errorf("exit code %d:\n%s%s", one.code, one.stdout, one.stderr)
			}
			now := time.Now().UTC()
			ago := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }
			past := rooftop(t, "compare", "--prometheus", url, "--match", fmt.Sprintf("instance=%q", instance), ago(85*time.Second)+"/"+ago(20*time.Second), ago(65*time.Second)+"/"+ago(0))
			t.Logf("\n%s", past.stdout)
			if bytes.Contains(past.stdout, []byte("WORSE")) || bytes.Contains(past.stdout, []byte("BETTER")) || !bytes.Contains(past.stdout, []byte("nothing that the server reports")) {
				t.Errorf("exit code %d of two ranges of one steady server:\n%s%s", past.code, past.stdout, past.stderr)
			}
		})
	}
	tool := filepath.Join(programs, "root", "usr", "bin", "promtool")
	t.Run("exporter", func(t *testing.T) {
		address := programtest.Address(t).String()
		spawn(t, "exporter", "--prometheus", stores["Prometheus"], "--since", "85s", "--listen", address)
		page := ""
		for began := time.Now(); !strings.Contains(page, "rooftop_diagnosis_timestamp_seconds "); time.Sleep(200 * time.Millisecond) {
			if time.Since(began) > soon {
				t.Fatalf("no diagnosis after %v:\n%s", soon, page)
			}
			response, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				continue
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			page = string(text)
		}
		for _, want := range []string{`state="hung"`, `state="down"`, `flag="--max-num-seqs",from="8"`, `rooftop_group_finding{finding="one-ill"`} {
			if !strings.Contains(page, want) {
				t.Errorf("no %s in\n%s", want, page)
			}
		}
		check := exec.Command(tool, "check", "metrics")
		check.Stdin = strings.NewReader(page)
		if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, said)
		}
	})
	t.Run("rules", func(t *testing.T) {
		test := readFile(t, "testdata/alerts_test.yml")
		for name, text := range map[string][]byte{"rules.yml": rooftop(t, "rules", "prometheus", "--slo", "ttft_p95=1s").stdout, "alerts_test.yml": test} {
			must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
		for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "alerts_test.yml"}} {
			cmd := exec.Command(tool, args...)
			cmd.Dir = dir
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said)
			}
		}
	})
	t.Run("polled", func(t *testing.T) {
		file := filepath.Join(dir, "urls.txt")
		must(t, os.WriteFile(file, []byte("# all\n"+strings.Join(targets, "\n")+"\n"), 0o600))
		report := filepath.Join(dir, "fleet.html")
		a := rooftop(t, "fleet", "--urls", file, "--duration", "12s", "--json", "-o", report)
		if text, err := os.ReadFile(report); err != nil || !bytes.Contains(text, []byte("concurrency-saturation")) {
			t.Errorf("a report of %d bytes: %v", len(text), err)
		}
		if a.code != 6 {
			t.Errorf("exit code %d:\n%s", a.code, a.stderr)
		}
		for _, s := range fleetRows(t, a, len(byName)) {
			want := byName[s.Name]
			if s.ill() != want.ill || want.name == "few slots" && s.flag() != want.flag {
				t.Errorf("%s: %s; want %q, %s", want.name, s.said(), want.ill, want.flag)
			}
		}
	})
	t.Run("screen", func(t *testing.T) { fleetScreen(t, stores["Prometheus"], running["Prometheus"].Process) })
}

// fleetRow is a server in a document of the fleet.
type fleetRow struct {
	Name           string
	Outcome        string
	Condition      *struct{ State string }
	Recommendation *struct{ Kind, Flag, From, To string }
}

// fleetRows returns the servers of a document.
func fleetRows(t *testing.T, a answer, want int) []fleetRow {
	t.Helper()
	var doc struct{ Servers []fleetRow }
	if err := json.Unmarshal(a.stdout, &doc); err != nil || len(doc.Servers) != want {
		t.Fatalf("%d servers, want %d, exit code %d: %v\n%s", len(doc.Servers), want, a.code, err, a.stderr)
	}
	return doc.Servers
}

func (r *fleetRow) ill() string {
	if r.Condition == nil {
		return ""
	}
	return r.Condition.State
}

// flag returns the recommended one.
func (r *fleetRow) flag() string {
	if r.Recommendation == nil || r.Recommendation.Kind != "flag" {
		return ""
	}
	return r.Recommendation.Flag
}

func (r *fleetRow) said() string {
	said := r.Outcome
	if r.Condition != nil {
		said += ", " + r.Condition.State
	}
	if c := r.Recommendation; c != nil {
		said += fmt.Sprintf(", %s %s %s -> %s", c.Kind, c.Flag, c.From, c.To)
	}
	return said
}

// is reports whether the row says what is wrong with a server.
func (r *fleetRow) is(s *scrapedServer) bool {
	return r.ill() == s.ill && r.flag() == s.flag && (s.outcome == "" || r.Outcome == s.outcome)
}

// fleetScreen uses the screen in a terminal: the list, a filter, a page, groups, a small terminal, and the screen
// after Prometheus was killed.
func fleetScreen(t *testing.T, url string, prometheus *os.Process) {
	x := openScreen(t, 120, 30)
	frame := x.started("2 ill", "fleet", "--prometheus", url, "--since", "85s", "--pause", "5s")
	t.Logf("the list:\n%s", boxedText(frame))
	for _, want := range []string{"7 servers", "SIMULATED", "hung", "down", "concurrency-saturation", "one ill"} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in the list", want)
		}
	}
	x.Press("/", "h", "u", "n", "g", "Enter")
	x.Await(`1 of 7 servers match "hung"`, soon)
	x.Press("Enter")
	t.Logf("a page:\n%s", boxedText(x.Await("Engine hung", soon)))
	x.Press("Escape")
	x.Await("[1 Servers]", soon)
	x.Press("Escape")
	x.AwaitThat("the whole list", soon, func(s string) bool { return !strings.Contains(s, "match") })
	x.Press("/", "c", "o", "n", "c", "u", "r", "Enter", "y")
	x.Await("Copied, if the terminal allows it", soon)
	if got := x.Clipboard(); !strings.Contains(got, "--max-num-seqs") {
		t.Errorf("copied %q", got)
	}
	x.Press("Escape")
	x.AwaitThat("no copied command", soon, func(s string) bool { return !strings.Contains(s, "Copied") })
	x.Press("Escape")
	x.AwaitThat("no filter", soon, func(s string) bool { return !strings.Contains(s, "match") })
	x.Press("g")
	t.Logf("groups:\n%s", boxedText(x.Await("[2 Groups]", soon)))
	x.Press("Escape")
	x.Resize(80, 24)
	t.Logf("80x24:\n%s", boxedText(x.Await("[1 Servers]", soon)))
	must(t, prometheus.Kill())
	old := x.Await("Showing the last values", soon)
	t.Logf("without Prometheus:\n%s", boxedText(old))
	for _, want := range []string{"7 servers", "OLD", "old", "refused"} {
		if !strings.Contains(old, want) {
			t.Errorf("no %q on the screen without Prometheus", want)
		}
	}
	x.Press("q")
	if left := x.ended(0); !strings.Contains(left, "this list is") {
		t.Errorf("what is left does not say that the list is old:\n%s", left)
	}
}

// awaitAnswer waits until one of the addresses answers.
func awaitAnswer(t *testing.T, urls ...string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < soon; time.Sleep(100 * time.Millisecond) {
		for _, url := range urls {
			if response, err := http.Get(url); err == nil {
				response.Body.Close()
				if response.StatusCode == http.StatusOK {
					return
				}
			}
		}
	}
	t.Fatalf("%v: no answer within %v", urls, soon)
}
