package main

import "strings"

// corpusCase is one entry of the corpus: command lines that run one after another in one directory.
type corpusCase struct {
	name string // of its file: group, slash, name
	// lines are command lines without the program's name. Words with blanks are in double quotes; environment variables
	// come first, as in a shell, and COLUMNS also makes stdout a terminal of that width. A line that ends in * runs once
	// for each name that it lists without the *.
	lines []string
}

// recordings are the recordings of one measurement.
var recordings = strings.Fields(`slots4-cpu sim-budget-too-low sim-cache-off sim-front-end sim-gpu-throttled sim-healthy sim-idle sim-kv-head-of-line
	sim-kv-preempting sim-lora-slots sim-low-batch sim-misread sim-mla sim-not-evaluable sim-prefill-saturated sim-rank-imbalance sim-seat-capped
	sim-slow-steps sim-stalled`)

// each returns a command line for each name.
func each(before string, names []string, after string) (lines []string) {
	for _, name := range names {
		lines = append(lines, strings.TrimSpace(before+name+after))
	}
	return lines
}

func corpusCases() []corpusCase {
	const (
		l4      = "ceiling --model Llama-3.1-8B-Instruct --gpu L4"
		h100    = `ceiling --model Qwen3-32B --gpu "H100 SXM" --tp 2 --batch 64`
		kv      = "replay sim-kv-preempting.gz"
		past    = "compare sim-seat-capped.gz sim-healthy.gz"
		dense   = "trace operators.jsonl.gz"
		mixture = "trace operators-mixture.jsonl.gz"
	)
	commands := []string{
		"", "diagnose", "fleet", "exporter", "rules", "mcp", "doctor", "tune", "observe", "probe", "trace", "history", "recover", "report", "compare",
		"ceiling", "demo", "replay", "catalog", "catalog check", "catalog list", "catalog show", "explain", "load", "sim", "help", "man", "version",
		"completion",
	}
	return []corpusCase{
		{"help", append(each("", commands, " --help"), "version", "--version", "version --json")},
		{"explain/text", []string{
			"explain", "explain *", "explain vllm:kv_cache_usage_perc", "explain R2 --ascii", "explain seat-saturatoin", "explain R5 --color always",
		}},
		{"explain/words", each("explain ", strings.Split("not-comparable|not_comparable|restart spread|-- --slo|Prediction|cpu_starved|TTFT split|"+
			"over-provisioned|p99|rss|KV pool|headroom|recoverable|profile|TTFT p99|TTFT|running|running --json|starve|achieveable|R2 R3|"+
			"num_running_reqs|sglang:token_usage|requests_processing|kv_usage|kv_usage --engine sglang|ray_vllm_num_requests_waiting", "|"), "")},
		{"explain/json", []string{"explain --json", "explain slot --json"}},
		{"catalog", []string{
			"catalog list", `catalog show "H100 SXM"`, "catalog show L4 --json", "catalog show Llama-3.1-8B-Instruct",
			"catalog show deepseek-ai/DeepSeek-R1 --ascii", "catalog show nothing", "catalog check catalog-good.yaml", "catalog check catalog-bad.yaml",
			"catalog check nothing.yaml", "catalog list --catalog catalog-bad.yaml",
		}},
		{"ceiling", []string{
			l4, l4 + " -v", "DTYPE=fp8 " + l4, l4 + " --json", h100 + " --json", h100 + " --ascii", h100 + " --color always", h100 + " --context 8000 --prompt 4000",
			"ceiling --model Llama-3.1-70B-Instruct --gpu L4", "ceiling --model Llama-3.1-70B-Instruct --gpu L4 --tp 8 --weight-dtype fp8 --kv-dtype fp8",
			"ceiling --model-config model-config.json --gpu L4", `ceiling --model Llama-3.2-1B-Instruct --gpu "My CPU" --catalog catalog-good.yaml`,
			l4 + " --tp 64", "ceiling --model Llama-3.1-405B-Instruct --gpu A10G",
			"ceiling --model nothing --gpu L4", "ceiling --model Qwen3-32B --gpu nothing", "ceiling", l4 + " --tp 0", l4 + " --batch 0",
		}},
		{"replay/recordings", each("replay ", recordings, ".gz")},
		{"replay/forms", []string{
			kv + " -v", kv + " --ascii", kv + " --color always", kv + " --ceiling classic", kv + " --ceiling classic --plain --ascii", "replay slots4-cpu.gz -v",
		}},
		{"replay/json", each("replay ", []string{"slots4-cpu", "sim-kv-preempting"}, ".gz --json")},
		{"past/compare", []string{
			"compare slots4-cpu.gz slots4-cpu.gz", past, past + " --goal throughput --slo ttft_p99=500ms --ascii", "compare real/0.14.1-few-clients.gz real/0.32.0-one-client.gz",
			"compare real/sglang/0.5.23-healthy.gz real/sglang/0.5.23-hung.gz", "compare real/sglang/0.5.23-healthy.gz real/0.32.0-healthy.gz",
			"compare slots4-cpu.gz slots4-cpu.gz --json",
		}},
		{"past/rules", []string{"rules prometheus --slo ttft_p95=1s", "rules podmonitor"}},
		{"trace/text", []string{dense, mixture, mixture + " -v", mixture + " --ascii", mixture + " --color always"}},
		{"trace/json", []string{dense + " --json", mixture + " --json"}},
		{"trace/files", []string{mixture + " --plain --dot graph.dot", mixture + " --plain --html page.html"}},
		{"trace/dense-html", []string{dense + " --plain --html page.html"}},
		{"runs/history", []string{"history", "history -n 2", "history --ascii", "history --color always", "history --json"}},
		{"runs/report", []string{
			"report 1", "report 2", "report 1 --format json", "report 20260204", "report 20260205",
			"report 20260207", "report 20260208", "report nothing", "report 2026", "report 99", "report", "report last --format other",
		}},
		{"runs/html", []string{"report 1 --format html", "report 20260205 -o run.html"}},
		{"runs/recover", []string{"recover --dry-run", "recover --dry-run --ascii", "recover --dry-run --json", "recover"}},
		{"runs/none", each("XDG_STATE_HOME=/nowhere ", []string{"history", "history --json", "report last", "recover", "recover --json"}, "")},
		{"sim", []string{
			"demo --list", "sim nothing", "sim Qwen/Qwen3-8B --sim-gpu nothing", "sim Qwen/Qwen3-8B --max-num-seqs x", "demo --scenario nothing",
		}},
		{"terminals", []string{
			"COLUMNS=80 TERM=xterm-256color replay slots4-cpu.gz", "COLUMNS=200 TERM=dumb replay slots4-cpu.gz", "COLUMNS=80 TERM=linux NO_COLOR=1 replay sim-healthy.gz",
			"COLUMNS=60 NO_COLOR=1 " + kv, "COLUMNS=120 NO_COLOR=1 " + kv, "COLUMNS=60 NO_COLOR=1 " + h100 + " -v", "COLUMNS=120 NO_COLOR=1 " + h100 + " -v",
			"COLUMNS=60 NO_COLOR=1 " + past, "COLUMNS=120 NO_COLOR=1 " + past, "COLUMNS=60 NO_COLOR=1 history", "COLUMNS=120 NO_COLOR=1 history",
			"COLUMNS=60 NO_COLOR=1 " + mixture + " --plain", "COLUMNS=120 NO_COLOR=1 " + dense + " --plain",
		}},
		{"refused", refusedLines()},
	}
}

// refusedLines are command lines that are rejected, most of them before anything is read.
func refusedLines() []string {
	var lines []string
	for _, command := range []struct{ before, after string }{
		{"", "diagnos|diagnoze|nothing|tun|map|doctor extra|explain one two|explain conc-saturation|explain kv-presure|catalog other|sum --sim-gpu L4"},
		{"demo", "--scenario failng/8b-a100|failing/8b-a100|nothing|--json --plain"},
		{"sim", "--sim-scenario failng|--sim-gpu H10|Qwen3-9B"},
		{"", "ceiling --model x --gpu H1000|version --json --plain|catalog list --json --plain"},
		{"ROOFTOP_PLAIN=true", "version --json"},
		{"diagnose", "--foo|--url http:/foo|--json --plain|--durationn 30s|extra|https://gpu-7:8000|--url=|--duration 1s|--color red|--ceiling other|--json --interactive|--match x"},
		{"diagnose --prometheus http://127.0.0.1:1", "--url http://127.0.0.1:2|-i"},
		{"replay", "|nothing.gz|probe-one.json|operators.jsonl.gz|slots4-cpu.gz --speed 2|slots4-cpu.gz --mouse=false|slots4-cpu.gz --tui|slots4-cpu.gz --ceiling other"},
		{"compare", "|slots4-cpu.gz|nothing.gz slots4-cpu.gz|slots4-cpu.gz probe-one.json|slots4-cpu.gz 2026-11-26T03:00:00Z/2026-11-26T03:30:00Z"},
		{"compare slots4-cpu.gz slots4-cpu.gz", "--gpu L4|--slo ttft|--match x"},
		{"compare --prometheus http://127.0.0.1:1", "2026-11-26T03:00:00Z/noon slots4-cpu.gz"},
		{"rules", "grafana|nothing|grafana nothing|grafana fleet --slo ttft_p95=1s|--slo ttft_p95=1.5s|--slo ttft_p90=1s|--slo ttft_p95=1s,ttft_p99=2s"},
		{"trace", "a b|nothing.jsonl.gz|trace-dense.json|slots4-cpu.gz|operators.jsonl.gz --duration 3s|--level other"},
		{"probe", "--repeat 0|--concurrency 0|--api other"},
		{"observe", "--duration 0s"},
		{"fleet", "|--prometheus prometheus:9090|--since 1h|--urls nothing.txt|--urls catalog-bad.yaml|--context c --urls nothing.txt|--prometheus http://127.0.0.1:1"},
		{"fleet --urls nothing.txt", "--prometheus http://127.0.0.1:1|--duration 1s|--match x|--pause 1s|-o fleet.txt"},
		{"fleet --prometheus http://127.0.0.1:1", "--duration 8s|--from yesterday|--http-config nothing.yaml|--from 2026-11-26T03:00:00Z --since 1h"},
		{"fleet --prometheus http://127.0.0.1:1 --from 2026-11-26T03:00:00Z", "--to 2026-11-26T03:00:10Z|--to 2026-11-26T09:00:00Z"},
		{"tune", "--goal other|--slo ttft=never|--precision 200%|--restart-in-place --apply-cmd ./x|--max-restarts -1|--apply-cmd ./nothing|--allow-flags max-num-seqs"},
		{"tune", "--refesh 1|--max-num-seq 1|--ulr x|-x 1|--duration abc|--duration 5|--cost-per-hour x|--auto=perhaps --plain|--goal latancy|extra -- vllm serve m"},
		{"tune --slo", "ttft_p99=500|ttft_p9=1s|speed=1s|ttft_p99|itl_p50=1s,itl_p50=2s|itl_p50=1s --slo itl_p50=2s|itl_p50=0s|itl_p50=soon"},
		{"tune", "--precision close|--precision 0.5|--precision 0.1%|--longest 10s|--start-timeout 0s|--max-restarts 3|--max-restarts 1.5"},
		{"tune --auto", "--max-restarts 1|--max-downtime 0s|--allow-flags max_num_seq|--allow-flags=|--countdown=90m|--|-- sleep 10|-- vllm serve m --config no-such.yaml"},
		{"tune --auto --restart-in-place", "-- vllm serve x|--apply-cmd /bin/true|--apply-cmd /bin/true -- vllm serve m"},
		{"ROOFTOP_DURATION=soon", "tune"},
		{"mcp", "--allow-changes foo|extra|--url ftp://x|--allow-changes file:///x|--api-key-file nothing"},
		{"ROOFTOP_ALLOW_CHANGES=http://127.0.0.1:8000", "mcp"},
		{"load", "--json --plain|--rate x|--clients 0|--arrival other|--steps 1-2|--prompt-tokens x|--trace nothing.csv|--slo x=1|--slo ttft=1s --slo x=1"},
		{"ROOFTOP_MAX_NUM_SEQS=many", "diagnose|replay slots4-cpu.gz --speed 1"},
		{"", "diagnose --url http://127.0.0.1:1 --duration 8s|diagnose --url ftp://x|probe --url http://127.0.0.1:1|load --url http://127.0.0.1:1 --duration 1s"},
		{"tune --plain --url http://127.0.0.1:1/x", "--duration 8s --record x --json --plain --bogus"},
	} {
		lines = append(lines, each(command.before+" ", strings.Split(command.after, "|"), "")...)
	}
	return lines
}
