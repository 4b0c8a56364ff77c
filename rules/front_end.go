package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of front-end: the time in the API server itself limits throughput.
const (
	frontShare   = 0.50 // share of the time before the first token spent in the API server, at least
	frontSeconds = 0.10 // seconds before the first token spent in the API server, at least
	// frontInside is the minimum number of requests in each API server at once. Below one, a
	// request is mostly alone there, and more API servers would not be faster.
	frontInside = 1.0
	frontCPU    = 0.90 // cores used by the one API-server process, at least
	// frontIdle is the CPU use, in cores, below which the API server delays requests by waiting
	// instead of working: an M/M/1 queue holds frontInside requests at this load (load/(1-load)).
	frontIdle  = 0.50
	frontQueue = 1.0 // requests waiting in the engine, below; else the engine is the limit
	// frontShort is the longest stay in the engine, as a share of the window, for first tokens
	// and ends of one window to belong to the same requests.
	frontShort      = 0.10
	frontConfidence = 0.80 // both signs
	frontOneSign    = 0.60
)

var frontEnd = definition{engine.Rule{
	ID: engine.FrontEnd, Code: "beyond", Title: "Front end", Group: engine.GroupHost, Impact: 3,
	Check: checkFrontEnd, Conclude: concludeFrontEnd,
	// Few requests run because the API server admits few: more would wait there.
	Suppresses: []engine.FindingID{engine.UnderBatching},
}, Explanation{
	Condition: []string{
		fmt.Sprintf("at least %s and %v s of the time before the first token pass in the API server: end-to-end time minus queue and inference of the same finished requests, minus the step in progress that an arriving request waits for", figure.PercentSign(frontShare), frontSeconds),
		fmt.Sprintf("and at least %v request is in each API server at once", frontInside),
		fmt.Sprintf("or the only API-server process uses at least %v of a core", frontCPU),
		fmt.Sprintf("less than %v request waits in the engine: otherwise the engine is the limit", frontQueue),
		"not judged if the model itself runs on the CPU, nor on the V0 engine: front end and model share cores or a process there",
	},
	Thresholds: []Threshold{
		{"(e2e - queue - inference - step in progress) / (e2e - inference + prefill)", ">=", frontShare, "ratio", fromJudgement},
		{"e2e - queue - inference - step in progress", ">=", frontSeconds, "s", fromJudgement},
		{"requests in each API server at once", ">=", frontInside, "req", fromQueueing},
		{"waiting in the engine", "<", frontQueue, "req", fromJudgement},
		{"CPU of the API server, cores", ">=", frontCPU, "", fromVLLM},
	},
	Formula: []string{
		"step in progress = the mean step or prefill at a random moment, sum(x^2)/sum(x), the maximum that the buckets of inter-token latency and prefill time allow, at most the longest time between two changes of the counters",
		"requests in the API servers at once = their own time x requests per second (Little's law)",
		fmt.Sprintf("API servers = current number x CPU per server / %v, rounded up, at least twice as many, at most %d", lever.ServerShare, lever.MostServers),
	},
	Confidence: []string{fmt.Sprintf("%v with both signs", frontConfidence), fmt.Sprintf("%v with one", frontOneSign)},
	Remedy: []string{
		"--api-server-count; with `python -m vllm.entrypoints…` the flag is ignored: launch with `vllm serve`",
		fmt.Sprintf("no flag if the process uses less than %v of a core: it waits for CPU time or for something it fetches", frontIdle),
	},
	Limits: []string{
		"with several API servers the page has no CPU time of the process",
		"a release or endpoint that counts the arrival after tokenization (vLLM PR 37498) shows the tokenizer only in the CPU of the process",
		"without end-to-end times it uses time to first token minus queue and prefill, if requests stay in the engine so briefly that both belong to the same ones",
	},
}}

// frontTimes describes how requests of a window waited for their first token.
type frontTimes struct {
	own    float64 // s, mean: in the API server, without the step in progress
	first  float64 // s, mean: all of it, with the step in progress, queue and prefill
	inside float64 // requests in the API servers at once, mean
}

// frontTimesOf returns the times of a window, or the name of a missing input.
func frontTimesOf(w *engine.Window) (t frontTimes, missing string) {
	queue, prefill := w.Mean(engine.HistQueue), w.Mean(engine.HistPrefill)
	switch {
	case !w.Hist[engine.HistTTFT].OK && !w.Hist[engine.HistE2E].OK:
		return t, inputTTFT
	case !queue.OK:
		return t, "request_queue_time_seconds"
	case !prefill.OK:
		return t, inputPrefill
	}
	outside, missing := engine.OutsideEngine(&w.Hist)
	requests := w.Hist[engine.HistE2E].Count
	if !outside.OK {
		ttft := &w.Hist[engine.HistTTFT]
		if !ttft.OK || !briefStay(w) {
			return t, missing
		}
		outside, requests = stat.Some(ttft.Sum/ttft.Count-queue.V-prefill.V), ttft.Count
	}
	t.first = outside.V + queue.V + prefill.V
	t.own = max(0, outside.V-stepInProgress(w))
	t.inside = t.own * requests / w.Seconds()
	return t, ""
}

// briefStay reports whether requests stay in the engine for at most frontShort of the window.
// The first tokens and the ends that the window counts then belong to the same requests.
func briefStay(w *engine.Window) bool {
	begun, ended := &w.Hist[engine.HistTTFT], &w.Hist[engine.HistQueue]
	if begun.Count <= 0 || !w.Running.OK || math.Abs(begun.Count-ended.Count) > frontShort*ended.Count {
		return false
	}
	stay := w.Running.V * w.Seconds() / ended.Count // Little's law
	return stay <= frontShort*w.Seconds()
}

// stepInProgress bounds, in seconds, the mean wait between a request's arrival at the engine
// and the end of the current step. It may be a whole step, because clients that react at once
// send when a step begins. A step is the gap between two tokens, or a prefill.
func stepInProgress(w *engine.Window) float64 {
	longest := w.LongestStep.Seconds()
	itl, prefill := &w.Hist[engine.HistITL], &w.Hist[engine.HistPrefill]
	step := itl.LengthBiasedMean().Max(prefill.LengthBiasedMean())
	switch beyond := itl.Count > 0 && !itl.LengthBiasedMean().OK; {
	case !step.OK || beyond:
		return longest
	case longest > 0:
		return min(step.V, longest)
	}
	return step.V
}

// frontCores returns the CPU use of the only API-server process, in cores; absent with several.
func frontCores(w *engine.Window, f *engine.Facts) stat.Opt {
	if f.APIServerCount.Known && f.APIServerCount.Value > 1 {
		return stat.None
	}
	return w.Rate[engine.CounterProcessCPUSeconds]
}

func checkFrontEnd(w *engine.Window, f *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if f.OnCPU() {
		return lacks("a model that does not run on the CPU")
	}
	if f.V0.Known && f.V0.Value {
		return lacks("the V1 engine: in V0, front end and engine can share a process")
	}
	if result, ok := underLoad(w); !ok {
		return result
	}
	if q := queued(w); q.Or(0) >= frontQueue {
		return notFired("the front end fills the engine fast enough; requests queued", comparison{q, ">=", frontQueue, "req"})
	}
	if cores := frontCores(w, f); cores.OK && cores.V >= frontCPU {
		return above("CPU cores of the API server", cores, frontCPU, "")
	}
	t, missing := frontTimesOf(w)
	if missing != "" {
		return lacks(missing)
	}
	inside := frontInside * float64(max(1, f.APIServerCount.Value))
	switch {
	case t.own < frontSeconds:
		return above("time before the first token in the API server, without the step in progress,", stat.Some(t.own), frontSeconds, "s")
	case t.own >= frontShare*t.first && t.inside < inside:
		return above("requests in the API server at once", stat.Some(t.inside), inside, "req")
	}
	return above("share of the time before the first token in the API server", stat.Some(t.own/t.first), frontShare, "ratio")
}

func concludeFrontEnd(r *engine.Run, t engine.Tally, f *engine.Finding) {
	var allCores, shares, owns, insides []float64
	for w := range windows(r, firesIn(r, checkFrontEnd)) {
		if c := frontCores(w, r.Facts); c.OK {
			allCores = append(allCores, c.V)
		}
		if v, missing := frontTimesOf(w); missing == "" && v.first > 0 {
			owns, shares, insides = append(owns, v.own), append(shares, v.own/v.first), append(insides, v.inside)
		}
	}
	cores, share, own, inside := stat.Mean(allCores), stat.Mean(shares), stat.Mean(owns), stat.Mean(insides)
	busy, slow := cores.Or(0) >= frontCPU, share.Or(0) >= frontShare && own.Or(0) >= frontSeconds
	f.Confidence = frontOneSign
	if busy && slow {
		f.Confidence = frontConfidence
	}
	ofACore := figure.PercentSign(cores.V) + " of a core"
	if cores.OK {
		addEvidence(f, compared("api_server_cpu", cores, "", ">=", frontCPU, engine.FromMeasured,
			"the API-server process used "+ofACore+"; one Python process cannot use much more than one"))
		f.Reason = "the API server uses " + ofACore
	}
	if share.OK {
		addEvidence(f,
			compared("front_end_share", share, "ratio", ">=", frontShare, engine.FromDerived,
				fmt.Sprintf("%s of the time before the first token, %s, passed in the API server: outside queue and inference, and longer than a step", figure.PercentSign(share.V), formatSeconds(own.V))),
			compared("front_end_requests", inside, "req", ">=", frontInside, engine.FromDerived,
				figure.Counted(inside.V, "request")+" in the API server at once"))
		if slow {
			f.Reason = figure.PercentSign(share.V) + " of the time before the first token passes in the front end"
		}
	}
	if cores.OK && cores.V < frontIdle {
		f.Reason += ", which uses " + ofACore
		f.Fix = inspectFrontEnd(ofACore)
	} else {
		f.Fix = moreAPIServers(r, cores.Or(0), inside.Or(0), share)
	}
}

// inspectFrontEnd returns the fix for an API server that delays requests while its core is idle:
// more servers would wait for the same thing.
func inspectFrontEnd(ofACore string) *engine.Fix {
	return &engine.Fix{
		Kind:    engine.KindHost,
		Command: "find out what the API server waits for: the CPU limit of its container (nr_throttled in cpu.stat), other processes on its cores, images or adapters that it fetches",
		Why:     "Requests spend their time in the API server, but its process uses only " + ofACore + ": it waits instead of working.",
		Costs:   []string{"none: nothing on the server changes"},
		Rejected: []engine.Rejected{{
			What: "--api-server-count", Why: "the current server does not use its core; more servers would wait for the same thing",
		}},
	}
}

func moreAPIServers(r *engine.Run, cores, inside float64, share stat.Opt) *engine.Fix {
	facts := r.Facts
	now := max(1, facts.APIServerCount.Value)
	to, servers := lever.ServersFor(now, cores), "the API server"
	if facts.APIServerCount.Known {
		servers = figure.Counted(now, "API server")
	}
	fix := flagFix(facts, lever.APIServers, strconv.Itoa(to),
		fmt.Sprintf("HTTP and tokenization in %s limit throughput, not the GPU; %d servers share the work.", servers, to))
	if fix.From == "" {
		fix.Why += " The current number is unknown; the default is one."
	}
	if strings.Contains(facts.Launch, "api_server") {
		fix.Command = fmt.Sprintf("launch with `vllm serve` and --api-server-count %d: python -m … ignores the flag", to)
	}
	reject(fix, "--stream-interval", "fewer, larger messages per stream: less CPU, but less smooth streaming")
	switch most := -min(1, share.V) * (1 - float64(now)/float64(to)); {
	case r.Perf != nil && cores > 0:
		front := roofline.Front{Inside: inside / float64(max(1, r.Agg.Ranks)), Share: min(1, share.Or(0)), Busy: cores}
		fix.Predicted = modelled(r, func(m *roofline.Performance) roofline.Gain {
			return m.MoreServers(float64(to)/float64(now), front)
		}).predictions()
	case share.V > 0:
		// At best, the front end's part of the time to first token shrinks by what the added
		// servers take over.
		fix.Predicted = []engine.Prediction{{Metric: engine.QuantityTTFT, Unit: "ratio", Low: stat.Some(most), Mid: stat.Some(most / 2), High: stat.Some(0)}}
	}
	return fix
}
