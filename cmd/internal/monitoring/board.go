package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// board is a dashboard of Grafana.
type board struct {
	title, description string
	variables          []variable
	rows               [][]panel
}

// variable is a choice at the top of a board.
type variable struct {
	name, query string
	all         bool // any number of values, all by default
}

// panel is one picture of a board.
type panel struct {
	kind        string // stat, table or timeseries
	title, unit string
	description string
	queries     []query
}

// query is an expression of PromQL with the legend of its series.
type query struct{ expr, legend string }

// Units as Grafana names them.
const (
	unitCount   = "short"
	unitTokens  = "suffix: tok/s"
	unitRate    = "reqps"
	unitShare   = "percentunit"
	unitSeconds = "s"
	unitDollars = "currencyUSD"
)

// boardNames are the boards in the order in which they are named.
var boardNames = []string{"fleet", "server"}

// Boards returns the names of the boards.
func Boards() []string { return boardNames }

// Board returns a board as JSON of Grafana; ok is false if there is none of that name.
func Board(name string) (text string, ok bool) {
	b, ok := map[string]board{"fleet": fleetBoard, "server": serverBoard}[name]
	if !ok {
		return "", false
	}
	return b.encode("rooftop-" + name), true
}

var modelVariable = variable{"model", "label_values(vllm:num_requests_running, model_name)", true}

// rate returns the sum of the rates of a counter of vLLM, of the series that a matcher selects.
func rate(by, name, matcher string) string {
	return fmt.Sprintf("sum by (%s) (rate(vllm:%s{%s}[$__rate_interval]))", by, name, matcher)
}

// quantile returns a quantile of a histogram of vLLM.
func quantile(q, by, name, matcher string) string {
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, rate(strings.TrimPrefix(by+", le", ", "), name+"_bucket", matcher))
}

// quantiles returns three quantiles of a histogram of the chosen server.
func quantiles(title, name string) panel {
	p := panel{kind: "timeseries", title: title, unit: unitSeconds}
	for _, q := range [...]string{"0.5", "0.95", "0.99"} {
		p.queries = append(p.queries, query{quantile(q, "", name, ofServer), "p" + strings.TrimPrefix(q, "0.")})
	}
	return p
}

// mean returns the mean of a histogram of the chosen server.
func mean(name string) string {
	return rate("", name+"_sum", ofServer) + " / " + rate("", name+"_count", ofServer)
}

const (
	ofModel  = `model_name=~"$model"`
	ofServer = `instance="$server"`
	// none is 0 while servers are diagnosed, and no data if the exporter is gone.
	none = "0 * count(rooftop_server_readable)"
	// ill are servers that are not well as far as is known.
	ill = "(rooftop_server_ill == 1 or rooftop_server_readable == 0)"
	// first lists the recommended flags with the gain that is predicted at least.
	first = `sum by (server, finding, flag, from, to) (rooftop_predicted_output_gain_ratio{bound="low"%s} * on (server) group_left (finding, flag, from, to) rooftop_recommended_change_info{kind="flag"})`
)

var fleetBoard = board{
	title:       "rooftop: fleet",
	description: "Which of the vLLM servers to look at first, and which to change. Needs vLLM's pages, rooftop exporter and the rules of rooftop rules prometheus.",
	variables:   []variable{modelVariable},
	rows: [][]panel{{
		{kind: "stat", title: "Servers", unit: unitCount, queries: []query{{"count(count by (instance) (vllm:num_requests_running{" + ofModel + "}))", ""}}},
		{kind: "stat", title: "Ill or not readable", unit: unitCount, queries: []query{{"count(" + ill + ") or " + none, ""}}},
		{kind: "stat", title: "Flags to change", unit: unitCount, queries: []query{{`count(rooftop_recommended_change_info{kind="flag"}) or ` + none, ""}}},
		{kind: "stat", title: "Savings an hour, predicted", unit: unitDollars, description: "For the same output, of the servers whose price is known: by rooftop exporter --cost-per-hour, else by the catalog (est) where the GPUs are.", queries: []query{{`sum(rooftop_predicted_savings_dollars_per_hour{bound="mid"})`, ""}}},
		{kind: "stat", title: "Output", unit: unitTokens, queries: []query{{rate("", "generation_tokens_total", ofModel), ""}}},
		{kind: "stat", title: "Requests waiting", unit: unitCount, queries: []query{{"sum(vllm:num_requests_waiting{" + ofModel + "})", ""}}},
	}, {
		{kind: "table", title: "Flags to change, by the output that they bring at least", unit: unitShare, description: "rooftop fleet says why, and rooftop tune tries it.", queries: []query{{"sort_desc(" + fmt.Sprintf(first, "") + ")", ""}}},
		{kind: "table", title: "Servers that are ill or cannot be read", unit: unitCount, description: "Empty if there are none. With a state it is ill; without one its latest diagnosis failed.", queries: []query{{ill, ""}}},
		{kind: "table", title: "Uneven servers of one model", unit: unitCount, description: "Empty if there are none.", queries: []query{{"rooftop_group_finding == 1", ""}}},
	}, {
		{kind: "timeseries", title: "Output by model", unit: unitTokens, queries: []query{{rate("model_name", "generation_tokens_total", ofModel), "{{model_name}}"}}},
		{kind: "timeseries", title: "Output over what is achievable (est)", unit: unitShare, description: "The ten lowest. Needs the GPU's name: from DCGM's exporter, or rooftop exporter --gpu.", queries: []query{{`bottomk(10, rooftop_output_tokens_per_second / on (server) rooftop_ceiling_tokens_per_second{ceiling="achievable"})`, "{{server}}"}}},
	}, {
		{kind: "timeseries", title: "Share of the requests that wait", unit: unitShare, description: "The ten highest.", queries: []query{{"topk(10, rooftop:queued_requests:ratio)", "{{instance}}"}}},
		{kind: "timeseries", title: "KV pool in use", unit: unitShare, description: "The ten highest.", queries: []query{{"topk(10, max by (instance) (vllm:kv_cache_usage_perc{" + ofModel + "}))", "{{instance}}"}}},
		{kind: "timeseries", title: "Preemptions a second", unit: unitCount, description: "The ten highest.", queries: []query{{"topk(10, " + rate("instance", "num_preemptions_total", ofModel) + ")", "{{instance}}"}}},
	}, {
		{kind: "timeseries", title: "Time to first token, p95", unit: unitSeconds, queries: []query{{quantile("0.95", "model_name", "time_to_first_token_seconds", ofModel), "{{model_name}}"}}},
		{kind: "timeseries", title: "Requests finished", unit: unitRate, queries: []query{{rate("model_name", "request_success_total", ofModel), "{{model_name}}"}}},
		{kind: "timeseries", title: "Servers by finding", unit: unitCount, queries: []query{{"count by (finding) (rooftop_finding == 1)", "{{finding}}"}}},
	}},
}

var serverBoard = board{
	title:       "rooftop: server",
	description: "One vLLM server: what it does, what limits it, and what to change. Needs vLLM's pages and rooftop exporter.",
	variables:   []variable{modelVariable, {"server", "label_values(vllm:num_requests_running{" + ofModel + "}, instance)", false}},
	rows: [][]panel{{
		{kind: "table", title: "Server", unit: unitCount, queries: []query{{`rooftop_server_info{server="$server"}`, ""}}},
		{kind: "table", title: "State, if it is ill or cannot be read", unit: unitCount, description: "Empty if neither is so.", queries: []query{{`rooftop_server_ill{server="$server"} == 1 or rooftop_server_readable{server="$server"} == 0`, ""}}},
		{kind: "table", title: "The flag to change, and the output that it brings at least", unit: unitShare, description: "Empty if no flag helps.", queries: []query{{fmt.Sprintf(first, `,server="$server"`), ""}}},
	}, {
		{kind: "timeseries", title: "Output, and what is achievable (est)", unit: unitTokens, queries: []query{{rate("", "generation_tokens_total", ofServer), "output"}, {`rooftop_ceiling_tokens_per_second{server="$server",ceiling=~"achievable.*"}`, "{{ceiling}}"}}},
		{kind: "timeseries", title: "Requests in the engine", unit: unitCount, queries: []query{{"sum(vllm:num_requests_running{" + ofServer + "})", "running"}, {"sum(vllm:num_requests_waiting{" + ofServer + "})", "waiting"}}},
	}, {
		{kind: "timeseries", title: "KV pool in use", unit: unitShare, queries: []query{{"max by (engine) (vllm:kv_cache_usage_perc{" + ofServer + "})", "rank {{engine}}"}}},
		{kind: "timeseries", title: "Preemptions a second", unit: unitCount, queries: []query{{rate("", "num_preemptions_total", ofServer), "preemptions"}}},
		{kind: "timeseries", title: "Prefix cache hits", unit: unitShare, queries: []query{{rate("", "prefix_cache_hits_total", ofServer) + " / " + rate("", "prefix_cache_queries_total", ofServer), "hits"}}},
	}, {
		quantiles("Time to first token", "time_to_first_token_seconds"),
		quantiles("Time between tokens", "inter_token_latency_seconds"),
		quantiles("Time of a request", "e2e_request_latency_seconds"),
	}, {
		{kind: "timeseries", title: "Requests finished", unit: unitRate, queries: []query{{rate("finished_reason", "request_success_total", ofServer), "{{finished_reason}}"}}},
		{kind: "timeseries", title: "Tokens of a request, mean", unit: unitCount, queries: []query{{mean("request_prompt_tokens"), "prompt"}, {mean("request_generation_tokens"), "output"}}},
		{kind: "timeseries", title: "Prompt tokens", unit: unitTokens, queries: []query{{rate("", "prompt_tokens_total", ofServer), "prompt"}}},
	}, {
		{kind: "timeseries", title: "Findings", unit: unitCount, queries: []query{{`rooftop_finding{server="$server"}`, "{{finding}}"}}},
		{kind: "timeseries", title: "Starts in the last hour", unit: unitCount, queries: []query{{"changes(process_start_time_seconds{" + ofServer + "}[1h])", "starts"}}},
		{kind: "table", title: "Settings of the cache", unit: unitCount, queries: []query{{"vllm:cache_config_info{" + ofServer + "}", ""}}},
	}},
}

// object is a JSON object.
type object = map[string]any

// Sizes in cells of Grafana's grid.
const (
	gridWidth  = 24
	panelRows  = 8
	statRows   = 4
	schemaSeen = 42 // the version of the schema that Grafana 12 writes
)

// source is the data source that the reader chooses.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// encode returns the board as Grafana imports it.
func (b board) encode(uid string) string {
	panels := []object{}
	y := 0
	for _, row := range b.rows {
		height := panelRows
		if row[0].kind == "stat" {
			height = statRows
		}
		for i, p := range row {
			width := gridWidth / len(row)
			o := p.encode()
			o["id"], o["gridPos"] = len(panels)+1, object{"x": i * width, "y": y, "w": width, "h": height}
			panels = append(panels, o)
		}
		y += height
	}
	list := []object{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}}
	for _, v := range b.variables {
		list = append(list, object{
			"name": v.name, "type": "query", "datasource": source, "query": object{"query": v.query, "refId": v.name}, "definition": v.query,
			"refresh": 2, "sort": 1, "multi": v.all, "includeAll": v.all,
		})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(object{
		"uid": uid, "title": b.title, "description": b.description, "tags": []string{"vllm", "rooftop"}, "schemaVersion": schemaSeen,
		"editable": true, "graphTooltip": 1, "refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"templating": object{"list": list}, "panels": panels, "annotations": object{"list": []object{}},
	}); err != nil {
		panic(err) // strings and numbers can be encoded
	}
	return out.String()
}

// encode returns the panel without its place.
func (p panel) encode() object {
	var targets []object
	for i, q := range p.queries {
		t := object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend}
		if p.kind != "timeseries" {
			t["instant"], t["range"] = true, false
		}
		if p.kind == "table" {
			t["format"] = "table"
		}
		targets = append(targets, t)
	}
	o := object{
		"type": p.kind, "title": p.title, "description": p.description, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
	}
	switch p.kind {
	case "table":
		o["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": object{"Time": true, "__name__": true, "job": true}}}}
	case "timeseries":
		o["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	default:
		o["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}}
	}
	return o
}
