package corpus

import "strings"

// Case is one entry of the corpus: command lines that run one after another in one directory.
type Case struct {
	Name string // of its file: group, slash, name
	// Lines are command lines without the program's name. Words with blanks are in double quotes. A
	// line that ends in * runs once for each name that it lists without the *.
	Lines []string
	Width int      // of the terminal at stdout; 0 is no terminal
	Env   []string // environment variables as NAME=VALUE
	// Heavy cases are run only by compare: they take seconds, or their output depends on the
	// machine.
	Heavy bool
}

// Cases returns all cases.
func Cases() []Case {
	var all []Case
	for _, list := range [][]Case{helpCases(), explainCases(), ceilingCases(), replayCases(), pastCases(), traceCases(), runCases(), simulatorCases(), refusedCases()} {
		all = append(all, list...)
	}
	return all
}

// plain returns a case without a terminal.
func plain(name string, lines ...string) Case { return Case{Name: name, Lines: lines} }

// widths returns the cases of one command line on terminals of several widths. Reports are at most
// 120 columns wide, which a terminal of 200 shows.
func widths(name, line string, columns ...int) []Case {
	var list []Case
	for _, n := range columns {
		list = append(list, Case{Name: name + "-" + map[int]string{60: "60", 80: "80", 120: "120", 200: "200"}[n], Lines: []string{line}, Width: n, Env: []string{"NO_COLOR=1"}})
	}
	return list
}

// commands returns the names of all commands, "" for none.
func commands() []string {
	return []string{
		"", "diagnose", "fleet", "exporter", "rules", "mcp", "doctor", "tune", "observe", "probe", "trace", "history", "recover", "report", "compare",
		"ceiling", "demo", "replay", "catalog", "catalog check", "catalog list", "catalog show", "explain", "load", "sim", "help", "man", "version",
		"completion",
	}
}

func helpCases() []Case {
	list := []Case{plain("help/build", "version", "--version", "version --json")}
	for _, c := range commands() {
		name := strings.ReplaceAll(c, " ", "-")
		if c == "" {
			name = "rooftop"
		}
		list = append(list, plain("help/"+name, strings.TrimSpace(c+" --help")))
	}
	return append(list, Case{Name: "help/man", Lines: []string{"man pages"}, Heavy: true})
}

func explainCases() []Case {
	list := []Case{
		plain("explain/index", "explain"),
		plain("explain/each", "explain *"),
		plain("explain/json", "explain --json"),
		plain("explain/metric", "explain vllm:kv_cache_usage_perc", "explain slot --json", "explain R2 --ascii", "explain seat-saturatoin", "explain R5 --color always"),
		plain("catalog/list", "catalog list"),
		{Name: "catalog/json", Lines: []string{"catalog list --json"}, Heavy: true},
		plain("catalog/show", `catalog show "H100 SXM"`, "catalog show L4 --json", "catalog show Llama-3.1-8B-Instruct", "catalog show deepseek-ai/DeepSeek-R1 --ascii", "catalog show nothing"),
		plain("catalog/check", "catalog check catalog-good.yaml", "catalog check catalog-bad.yaml", "catalog check nothing.yaml", "catalog list --catalog catalog-bad.yaml"),
	}
	return list
}

func ceilingCases() []Case {
	const model, line = "ceiling --model Llama-3.1-8B-Instruct --gpu L4", `ceiling --model Qwen3-32B --gpu "H100 SXM" --tp 2 --batch 64`
	list := []Case{
		plain("ceiling/l4", model, model+" -v"),
		plain("ceiling/json", model+" --json", line+" --json"),
		plain("ceiling/fits", line+" --context 8000 --prompt 4000", "ceiling --model Llama-3.1-70B-Instruct --gpu L4", "ceiling --model Llama-3.1-70B-Instruct --gpu L4 --tp 8 --weight-dtype fp8 --kv-dtype fp8"),
		plain("ceiling/own", "ceiling --model-config model-config.json --gpu L4", `ceiling --model Llama-3.2-1B-Instruct --gpu "My CPU" --catalog catalog-good.yaml`, "ceiling --model Llama-3.1-8B-Instruct --gpu L4 --tp 64", "ceiling --model Llama-3.1-405B-Instruct --gpu A10G"),
		plain("ceiling/classic", line+" --ascii", line+" --color always"),
		plain("ceiling/unknown", "ceiling --model nothing --gpu L4", "ceiling --model Qwen3-32B --gpu nothing", "ceiling", model+" --tp 0", model+" --batch 0"),
		{Name: "ceiling/dtype", Lines: []string{model}, Env: []string{"DTYPE=fp8"}},
	}
	return append(list, widths("ceiling/wide", line+" -v", 60, 120)...)
}

// recordings returns the names of the recordings of one measurement.
func recordings() []string {
	return []string{
		"slots4-cpu", "sim-budget-too-low", "sim-cache-off", "sim-front-end", "sim-gpu-throttled", "sim-healthy", "sim-idle", "sim-kv-head-of-line",
		"sim-kv-preempting", "sim-lora-slots", "sim-low-batch", "sim-misread", "sim-mla", "sim-not-evaluable", "sim-prefill-saturated", "sim-rank-imbalance", "sim-seat-capped",
		"sim-slow-steps", "sim-stalled",
	}
}

func replayCases() []Case {
	var list []Case
	for _, name := range recordings() {
		list = append(list, plain("replay/"+name, "replay "+name+".gz"))
	}
	for _, name := range []string{"slots4-cpu", "sim-kv-preempting"} {
		file := "replay " + name + ".gz"
		list = append(list,
			plain("replay/"+name+"-v", file+" -v"),
			plain("replay/"+name+"-json", file+" --json"),
			plain("replay/"+name+"-ascii", file+" --ascii"),
			plain("replay/"+name+"-color", file+" --color always"),
			plain("replay/"+name+"-classic", file+" --ceiling classic", file+" --ceiling classic --plain --ascii"),
		)
		list = append(list, widths("replay/"+name, file, 60, 120)...)
	}
	for _, name := range recordings() {
		file := "replay " + name + ".gz"
		heavy := append(widths("replay/"+name+"-v", file+" -v", 60, 80, 120, 200), plain("replay/"+name+"-every", file+" --json", file+" -v --ascii --ceiling classic"))
		for i := range heavy {
			heavy[i].Heavy = true
		}
		list = append(list, heavy...)
	}
	return append(list,
		Case{Name: "replay/terminal", Lines: []string{"replay slots4-cpu.gz"}, Width: 80, Env: []string{"TERM=xterm-256color"}},
		Case{Name: "replay/dumb", Lines: []string{"replay slots4-cpu.gz"}, Width: 200, Env: []string{"TERM=dumb"}},
		Case{Name: "replay/linux", Lines: []string{"replay sim-healthy.gz"}, Width: 80, Env: []string{"TERM=linux", "NO_COLOR=1"}},
		plain("replay/refused", "replay nothing.gz", "replay probe-one.json", "replay operators.jsonl.gz", "replay", "replay slots4-cpu.gz --speed 2", "replay slots4-cpu.gz --mouse=false", "replay slots4-cpu.gz --tui", "replay slots4-cpu.gz --ceiling other"),
	)
}

func pastCases() []Case {
	const line = "compare sim-seat-capped.gz sim-healthy.gz"
	return append([]Case{
		plain("past/compare", "compare slots4-cpu.gz slots4-cpu.gz", line, line+" --goal throughput --slo ttft_p99=500ms --ascii", "compare real/0.14.1-few-clients.gz real/0.32.0-one-client.gz", "compare real/sglang/0.5.23-healthy.gz real/sglang/0.5.23-hung.gz",
			"compare real/sglang/0.5.23-healthy.gz real/0.32.0-healthy.gz"),
		plain("past/compare-json", "compare slots4-cpu.gz slots4-cpu.gz --json"),
		plain("past/refused", "compare", "compare slots4-cpu.gz", "compare nothing.gz slots4-cpu.gz", "compare slots4-cpu.gz probe-one.json", "compare slots4-cpu.gz 2026-11-26T03:00:00Z/2026-11-26T03:30:00Z",
			"compare slots4-cpu.gz slots4-cpu.gz --gpu L4", "compare slots4-cpu.gz slots4-cpu.gz --slo ttft", "compare slots4-cpu.gz slots4-cpu.gz --match x",
			"compare --prometheus http://127.0.0.1:1 2026-11-26T03:00:00Z/noon slots4-cpu.gz"),
		plain("past/rules", "rules prometheus --slo ttft_p95=1s", "rules podmonitor"),
		plain("past/rules-refused", "rules grafana", "rules nothing", "rules grafana nothing", "rules grafana fleet --slo ttft_p95=1s", "rules --slo ttft_p95=1.5s", "rules --slo ttft_p90=1s", "rules --slo ttft_p95=1s,ttft_p99=2s"),
	}, widths("past/compare", line, 60, 120)...)
}

func traceCases() []Case {
	var list []Case
	for _, name := range []string{"operators", "operators-mixture"} {
		file := "trace " + name + ".jsonl.gz"
		list = append(list,
			plain("trace/"+name, file),
			plain("trace/"+name+"-v", file+" -v"),
			plain("trace/"+name+"-ascii", file+" --ascii"),
			plain("trace/"+name+"-color", file+" --color always"),
			plain("trace/"+name+"-json", file+" --json"),
			plain("trace/"+name+"-dot", file+" --plain --dot graph.dot"),
			plain("trace/"+name+"-html", file+" --plain --html page.html"),
		)
		list = append(list, widths("trace/"+name, file+" --plain", 60, 120)...)
	}
	list = append(list,
		Case{Name: "trace/operators-mixture-trace", Lines: []string{"trace operators-mixture.jsonl.gz --trace run.trace.json"}, Heavy: true},
		Case{Name: "trace/saved", Lines: []string{"trace operators-mixture.jsonl.gz --save again.jsonl.gz", "trace again.jsonl.gz --json"}, Heavy: true},
		plain("trace/refused", "trace nothing.jsonl.gz", "trace trace-dense.json", "trace slots4-cpu.gz", "trace operators.jsonl.gz --duration 3s", "trace --level other"),
	)
	return list
}

// runCases returns the cases for stored runs in the state directory.
func runCases() []Case {
	list := []Case{
		plain("runs/history", "history", "history -n 2", "history --ascii", "history --color always"),
		plain("runs/history-json", "history --json"),
		plain("runs/journal", "report 1", "report 2", "report 1 --format json"),
		plain("runs/journal-html", "report 1 --format html"),
		plain("runs/tuned", "report 20260204"),
		plain("runs/piloted", "report 20260205"),
		plain("runs/piloted-html", "report 20260205 -o run.html"),
		plain("runs/nothing", "report 20260207", "report 20260208", "report nothing", "report 2026", "report 99", "report", "report last --format other"),
		plain("runs/recover", "recover --dry-run", "recover --dry-run --ascii", "recover --dry-run --json", "recover"),
		{Name: "runs/none", Lines: []string{"history", "history --json", "report last", "recover", "recover --json"}, Env: []string{"XDG_STATE_HOME=/nowhere"}},
	}
	return append(list, widths("runs/history", "history", 60, 120)...)
}

func simulatorCases() []Case {
	return []Case{
		plain("sim/list", "demo --list"),
		plain("sim/refused", "sim nothing", "sim Qwen/Qwen3-8B --sim-gpu nothing", "sim Qwen/Qwen3-8B --max-num-seqs x", "demo --scenario nothing"),
	}
}

// refusedCases returns command lines that are rejected before anything is read.
func refusedCases() []Case {
	return []Case{
		plain("refused/usage", "diagnos", "nothing", "diagnose --durationn 30s", "diagnose extra", "diagnose https://gpu-7:8000", "diagnose --url=", "diagnose --duration 1s", "diagnose --color red", "diagnose --ceiling other", "diagnose --json --interactive",
			"doctor extra", "explain one two", "probe --repeat 0", "probe --concurrency 0", "probe --api other", "observe --duration 0s", "catalog other"),
		plain("refused/prometheus", "fleet", "fleet --prometheus prometheus:9090", "fleet --since 1h", "diagnose --match x", "diagnose --prometheus http://127.0.0.1:1 --url http://127.0.0.1:2", "diagnose --prometheus http://127.0.0.1:1 -i",
			"fleet --prometheus http://127.0.0.1:1 --from 2026-11-26T03:00:00Z --to 2026-11-26T03:00:10Z", "fleet --prometheus http://127.0.0.1:1 --from yesterday", "fleet --prometheus http://127.0.0.1:1 --from 2026-11-26T03:00:00Z --since 1h",
			"fleet --prometheus http://127.0.0.1:1 --from 2026-11-26T03:00:00Z --to 2026-11-26T09:00:00Z", "fleet --prometheus http://127.0.0.1:1 --http-config nothing.yaml"),
		plain("refused/fleet", "fleet --urls nothing.txt", "fleet --urls catalog-bad.yaml", "fleet --urls nothing.txt --prometheus http://127.0.0.1:1", "fleet --prometheus http://127.0.0.1:1 --duration 8s", "fleet --urls nothing.txt --duration 1s",
			"fleet --urls nothing.txt --match x", "fleet --urls nothing.txt --pause 1s", "fleet --context c --urls nothing.txt", "fleet --urls nothing.txt -o fleet.txt", "fleet --prometheus http://127.0.0.1:1"),
		plain("refused/tune", "tune --goal other", "tune --slo ttft=never", "tune --precision 200%", "tune --restart-in-place --apply-cmd ./x", "tune --max-restarts -1",
			"tune --auto --restart-in-place -- vllm serve x", "tune --apply-cmd ./nothing", "tune --allow-flags max-num-seqs"),
		plain("refused/mcp", "mcp extra", "mcp --url ftp://x", "mcp --allow-changes file:///x", "mcp --api-key-file nothing"),
		{Name: "refused/mcp-variable", Lines: []string{"mcp"}, Env: []string{"ROOFTOP_ALLOW_CHANGES=http://127.0.0.1:8000"}},
		plain("refused/load", "load --rate x", "load --clients 0", "load --arrival other", "load --steps 1-2", "load --prompt-tokens x", "load --trace nothing.csv", "load --cancel 2", "load --slo x=1", "load --slo ttft=1s --slo x=1"),
		{Name: "refused/variables", Lines: []string{"diagnose", "replay slots4-cpu.gz --speed 1"}, Env: []string{"ROOFTOP_MAX_NUM_SEQS=many"}},
		plain("refused/unreachable", "diagnose --url http://127.0.0.1:1 --duration 8s", "diagnose --url ftp://x", "probe --url http://127.0.0.1:1", "load --url http://127.0.0.1:1 --duration 1s", "tune --plain --url http://127.0.0.1:1/x --duration 8s --record x --json --plain --bogus"),
	}
}
