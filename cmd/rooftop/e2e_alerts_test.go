//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/porttest"
)

// alertedServer is a simulated server with a fault, and the alerts that the fault has to fire.
type alertedServer struct {
	name, model string
	sim         []string
	load        []string // nil for none
	// then is a second load in place of the first, from shift on.
	then []string
	want []string // alerts
}

// Queues make first tokens late: the objective is missed wherever requests wait.
var alertedServers = []alertedServer{
	{name: "slots", model: "Qwen/Qwen3-8B", sim: []string{"--max-num-seqs", "8"}, load: []string{"--clients", "24"},
		want: []string{"VLLMSlotsSaturated", "RooftopChangeRecommended", "VLLMTTFTBudgetBurnsFast", "VLLMTTFTBudgetBurns"}},
	{name: "pool", model: "meta-llama/Llama-3.1-8B-Instruct", sim: []string{"--num-gpu-blocks-override", "520"}, load: []string{"--clients", "24", "--prompt-tokens", "600", "--output-tokens", "300"},
		want: []string{"VLLMKVPressure", "RooftopChangeRecommended", "VLLMTTFTBudgetBurnsFast", "VLLMTTFTBudgetBurns"}},
	{name: "slow", model: "Qwen/Qwen3-4B", sim: []string{"--sim-fault", "slow@1s+80sx40"}, load: []string{"--clients", "4", "--output-tokens", "8"},
		want: []string{"VLLMTTFTBudgetBurnsFast", "VLLMTTFTBudgetBurns"}},
	{name: "prefixes", model: "Qwen/Qwen2.5-3B-Instruct", load: []string{"--clients", "4", "--prompt-tokens", "400", "--shared-prefix", "380", "--output-tokens", "20"}, then: []string{"--clients", "4", "--prompt-tokens", "400", "--output-tokens", "20", "--seed", "7"},
		want: []string{"VLLMPrefixHitsFell"}},
	{name: "hung", model: "meta-llama/Llama-3.2-3B-Instruct", sim: []string{"--sim-fault", "stall@30s+60s"}, load: []string{"--clients", "8", "--shared-prefix", "60"},
		want: []string{"VLLMStuck", "RooftopServerIll", "RooftopUneven"}},
	{name: "hung", model: "meta-llama/Llama-3.2-3B-Instruct", load: []string{"--clients", "8", "--shared-prefix", "60"}}, // of one model with the one that hangs
	{name: "down", model: "Qwen/Qwen2.5-7B-Instruct", load: []string{"--clients", "4", "--shared-prefix", "60"}, want: []string{"RooftopServerIll"}},
	{name: "unread", model: "Qwen/Qwen3-0.6B", want: []string{"RooftopServerUnreadable"}},
	{name: "healthy", model: "mistralai/Mistral-7B-Instruct-v0.3", load: []string{"--clients", "4", "--shared-prefix", "60"}},
	{name: "idle", model: "Qwen/Qwen3-1.7B"},
}

// shortened are the rules' durations for a test of minutes.
var shortened = map[string]string{
	"[3d]": "[50s]", "[6h]": "[40s]", "[1h]": "[20s]", "[30m]": "[15s]", "[5m]": "[15s]", "[2m]": "[12s]", "offset 1d": "offset 30s", "> 900": "> 40",
}

// alertTimes are times since the start of the servers.
const (
	alertShift   = 50 * time.Second // the second load, the server that goes away
	alertCleared = 95 * time.Second // no fault any more
	alertEnd     = 175 * time.Second
)

// webhook notes what Alertmanager tells.
type webhook struct {
	mu              sync.Mutex
	fired, resolved map[string]time.Duration // by alert and subject: the first and the latest time
	began           time.Time
}

func (h *webhook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []struct {
			Status string
			Labels map[string]string
		}
	}
	if json.NewDecoder(r.Body).Decode(&message) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range message.Alerts {
		subject := ""
		for _, label := range [...]string{"server", "model", "model_name", "instance"} {
			if v := a.Labels[label]; v != "" {
				subject = v
				break
			}
		}
		key := a.Labels["alertname"] + " " + subject
		if _, ok := h.fired[key]; !ok {
			h.fired[key] = time.Since(h.began)
		}
		delete(h.resolved, key)
		if a.Status == "resolved" {
			h.resolved[key] = time.Since(h.began)
		}
	}
}

// TestE2EAlerts plants faults in simulated servers that a real Prometheus scrapes, with the rules that rooftop
// prints, shortened. Alertmanager has to tell each alert of its fault and no other, and that it ended. Meanwhile
// every panel of the boards is asked for its data.
func TestE2EAlerts(t *testing.T) {
	t.Parallel()
	programs := os.Getenv("ROOFTOP_E2E_PROMETHEUS")
	if programs == "" {
		t.Fatal("ROOFTOP_E2E_PROMETHEUS is not set: run .ci/install-prometheus and give its last line")
	}
	program := func(name string, args ...string) {
		root := filepath.Join(programs, "root", "usr")
		// Debian's Alertmanager reads its templates from /usr/share alone.
		cmd := exec.Command("unshare", append([]string{"-m", "sh", "-c", `mount -t overlay overlay -o "lowerdir=$0:/usr/share" /usr/share && exec "$@"`, filepath.Join(root, "share"), filepath.Join(root, "bin", name)}, args...)...)
		said := &bytes.Buffer{}
		cmd.Stderr = said
		must(t, cmd.Start())
		t.Cleanup(func() {
			_, _ = cmd.Process.Kill(), cmd.Wait()
			if t.Failed() {
				t.Logf("%s: %s", name, said.Bytes()[max(0, said.Len()-2000):])
			}
		})
	}
	address := func() string { return porttest.Address(t).String() }
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	hook := &webhook{fired: map[string]time.Duration{}, resolved: map[string]time.Duration{}}
	receiver := httptest.NewServer(hook)
	defer receiver.Close()

	prometheus, alertmanager, exporter, stale := address(), address(), address(), address()
	// The exporters ask through proxies: that of the first refuses queries about one server, that of the second fails
	// for a while.
	var refuses, fails atomic.Bool
	refuses.Store(true)
	var unreadPort string
	target, _ := neturl.Parse("http://" + prometheus)
	forward := httputil.NewSingleHostReverseProxy(target)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if refuses.Load() && bytes.Contains(body, []byte(neturl.QueryEscape(":"+unreadPort))) {
			http.Error(w, `{"status":"error","errorType":"execution","error":"too many samples"}`, http.StatusUnprocessableEntity)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	defer refusing.Close()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer failing.Close()

	hook.began = time.Now()
	want := map[string]bool{}
	named := map[string]string{"": "no exporter"}
	var targets []string
	var loads, replaced []*child
	loadOf := func(at string, args []string) *child {
		return spawn(t, append([]string{"load", "--url", "http://" + at, "--duration", "0"}, args...)...)
	}
	start := func(s *alertedServer, at string) *child {
		host, port, _ := strings.Cut(at, ":")
		return spawn(t, append([]string{"sim", s.model, "--sim-gpu", "L4", "--max-model-len", "8192", "--sim-startup-time", "1s", "--host", host, "--port", port}, s.sim...)...)
	}
	var down *child
	var downAt string
	for i := range alertedServers {
		s, at := &alertedServers[i], address()
		server := start(s, at)
		awaitAnswer(t, "http://"+at+"/health")
		if s.load != nil {
			l := loadOf(at, s.load)
			if s.then != nil {
				replaced = append(replaced, l)
			} else if s.name != "healthy" && s.name != "hung" {
				loads = append(loads, l)
			}
		}
		switch s.name {
		case "down":
			down, downAt = server, at
		case "unread":
			_, unreadPort, _ = strings.Cut(at, ":")
		}
		for _, name := range s.want {
			subject := at
			if strings.HasPrefix(name, "VLLMTTFT") || name == "RooftopUneven" {
				subject = s.model
			}
			want[name+" "+subject] = true
		}
		targets, named[at] = append(targets, "'"+at+"'"), s.name+" "+strconv.Itoa(i)
	}
	want["RooftopStale "+stale] = true

	rules := string(rooftop(t, "rules", "prometheus", "--slo", "ttft_p95=1s").stdout)
	alerts := regexp.MustCompile(`(?m)^  - alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	for _, a := range alerts {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(key string) bool { return strings.HasPrefix(key, a[1]+" ") }) {
			t.Errorf("no fault is planted for %s", a[1])
		}
	}
	for long, short := range shortened {
		if !strings.Contains(rules, long) {
			t.Errorf("no %q in the rules", long)
		}
		rules = strings.ReplaceAll(rules, long, short)
	}
	rules = regexp.MustCompile(`(?m)^    for: \w+$`).ReplaceAllString(rules, "    for: 4s")
	program("prometheus-alertmanager", "--config.file="+write("alertmanager.yml", fmt.Sprintf(
		"route: {receiver: test, group_by: ['...'], group_wait: 1s, group_interval: 1s, repeat_interval: 1h}\nreceivers: [{name: test, webhook_configs: [{url: '%s'}]}]\n", receiver.URL)),
		"--storage.path="+filepath.Join(dir, "alertmanager"), "--web.listen-address="+alertmanager, "--cluster.listen-address=")
	program("prometheus", "--config.file="+write("prometheus.yml", fmt.Sprintf(`global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: ['%s']
alerting: {alertmanagers: [{static_configs: [{targets: ['%s']}]}]}
scrape_configs:
- {job_name: vllm, static_configs: [{targets: [%s]}]}
- {job_name: rooftop, static_configs: [{targets: ['%s', '%s']}]}
`, write("rules.yml", rules), alertmanager, strings.Join(targets, ", "), exporter, stale)),
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address="+prometheus, "--rules.alert.resend-delay=2s")
	awaitAnswer(t, "http://"+prometheus+"/-/healthy")
	awaitAnswer(t, "http://"+alertmanager+"/-/healthy")
	until := func(at time.Duration) { time.Sleep(time.Until(hook.began.Add(at))) }
	until(20 * time.Second) // a diagnosis needs windows
	export := []string{"exporter", "--since", "1m", "--pause", "5s", "--gpu", "L4", "--listen"}
	spawn(t, append(export, exporter, "--prometheus", refusing.URL, "--cost-per-hour", "1")...)
	spawn(t, append(export, stale, "--prometheus", failing.URL, "--match", `model_name="mistralai/Mistral-7B-Instruct-v0.3"`)...)
	until(alertShift)
	fails.Store(true)
	down.kill()
	for i := range alertedServers {
		if s := &alertedServers[i]; s.then != nil {
			replaced[0].kill()
			replaced = append(replaced[1:], loadOf(strings.Trim(targets[i], "'"), s.then))
		}
	}
	until(alertCleared - 15*time.Second)
	t.Run("boards", func(t *testing.T) {
		askBoards(t, "http://"+prometheus, strings.Trim(targets[0], "'"), hook.began.Add(alertCleared))
	})
	until(alertCleared)
	fails.Store(false)
	refuses.Store(false)
	start(&alertedServers[slices.IndexFunc(alertedServers, func(s alertedServer) bool { return s.name == "down" })], downAt)
	for _, l := range loads {
		l.kill()
	}
	done := func() bool {
		hook.mu.Lock()
		defer hook.mu.Unlock()
		for key := range want {
			if _, ok := hook.resolved[key]; !ok {
				return false
			}
		}
		return true
	}
	for time.Since(hook.began) < alertEnd && !done() {
		time.Sleep(time.Second)
	}
	hook.mu.Lock()
	defer hook.mu.Unlock()
	// Until the exporters run there is none, for about as long as the alert needs.
	const noExporter = "RooftopStale " // of no instance
	if at, ok := hook.fired[noExporter]; ok && at < alertShift {
		want[noExporter] = true
	}
	spell := func(key string) string {
		name, subject, _ := strings.Cut(key, " ")
		if n := named[subject]; n != "" {
			subject = n
		}
		return name + " of " + subject
	}
	for key := range want {
		at, fired := hook.fired[key]
		end, ended := hook.resolved[key]
		switch {
		case !fired:
			t.Errorf("%s did not fire", spell(key))
		case !ended:
			t.Errorf("%s fired after %v and did not end", spell(key), at.Round(time.Second))
		default:
			t.Logf("%s fired after %v and ended after %v", spell(key), at.Round(time.Second), end.Round(time.Second))
		}
	}
	for key, at := range hook.fired {
		if !want[key] {
			t.Errorf("%s fired after %v without its fault", spell(key), at.Round(time.Second))
		}
	}
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
	// A quantile of no request is no number.
	if len(series) > 0 && !slices.ContainsFunc(series, func(r struct{ Value [2]any }) bool { return r.Value[1] != "NaN" }) {
		return "no number"
	}
	return ""
}
