package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of front-end: the API server's own time is the limit.
const (
	frontShare   = 0.50 // share of the time before the first token spent in the API server, at least
	frontSeconds = 0.10 // and at least so many seconds of it
	// frontInside is how many requests must be in each API server at once. Below
	// one a request is mostly alone there: it takes as long with more of them.
	frontInside = 1.0
	frontCPU    = 0.90 // cores used by the one API-server process, at least
	// frontIdle is the share of its core below which the API server does not hold
	// up requests by working: one server with one queue has frontInside in it at
	// this load (M/M/1: load/(1-load)).
	frontIdle  = 0.50
	frontQueue = 1.0 // requests waiting in the engine, below: else it is the engine that is behind
	// frontShort is the longest stay in the engine, as a share of the window, with
	// which first tokens and ends in one window are of the same requests.
	frontShort      = 0.10
	frontRelief     = 0.5  // CPU share that each API server should come down to
	frontConfidence = 0.80 // both signs
	frontOneSign    = 0.60
	frontMost       = 8 // API servers proposed at most
)

func frontEnd() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.FrontEnd, Code: "beyond", Title: "Front end", Group: engine.GroupHost, Impact: 3,
			Check: checkFrontEnd, Conclude: concludeFrontEnd,
			// Few requests run because the API server lets few through: more of them
			// would wait there.
			Suppresses: []engine.FindingID{engine.UnderBatching},
		},
		explain: Explanation{
			Condition: []string{
				fmt.Sprintf("%s of the time before the first token and at least %s of it pass in the API server: end to end less queue and inference of the same finished requests, less the step at hand that an arriving request waits for", percent(frontShare), seconds(frontSeconds)),
				fmt.Sprintf("and %s request or more is in each API server at once", number(frontInside)),
				fmt.Sprintf("or the one API-server process uses %s of a core and more", number(frontCPU)),
				fmt.Sprintf("fewer than %s requests wait in the engine: else the engine is behind, not its front end", number(frontQueue)),
				"not judged where the model itself runs on the CPU, nor on the V0 engine: front end and model share cores or a process there",
			},
			Thresholds: []Threshold{
				{"(e2e - queue - inference - step at hand) / (e2e - inference + prefill)", ">=", frontShare, "ratio", fromJudgement},
				{"e2e - queue - inference - step at hand", ">=", frontSeconds, "s", fromJudgement},
				{"requests in each API server at once", ">=", frontInside, "req", fromQueueing},
				{"waiting in the engine", "<", frontQueue, "req", fromJudgement},
				{"CPU of the API server, cores", ">=", frontCPU, "", fromVLLM},
			},
			Formula: []string{
				"step at hand = the mean step or prefill that a random moment falls into, sum(x^2)/sum(x) at the most that the buckets of inter-token latency and prefill time allow, at most the longest time between two moves of the counters",
				"requests in the API servers at once = their own time x requests per second (Little)",
				fmt.Sprintf("API servers = present ones x CPU per server / %s, rounded up, at least twice as many, at most %d", number(frontRelief), frontMost),
			},
			Confidence: []string{number(frontConfidence) + " with both signs", number(frontOneSign) + " with one"},
			Remedy: []string{
				"--api-server-count; with `python -m vllm.entrypoints…` the flag is ignored: launch with `vllm serve`",
				fmt.Sprintf("no flag where the process uses less than %s of a core: it waits for CPU time or for something it fetches", number(frontIdle)),
			},
			Limits: []string{
				"with several API servers the page has no process CPU",
				"where a release or an endpoint notes the arrival after tokenising (vLLM PR 37498), only the CPU of the process shows the tokeniser",
				"a page without end-to-end times is judged by time to first token less queue and prefill, where requests stay in the engine so briefly that both are of the same ones",
			},
		},
	}
}

// frontTimes is how requests of a window waited for their first token.
type frontTimes struct {
	own    float64 // s, mean: in the API server, not for the step at hand
	first  float64 // s, mean: all of it, with step at hand, queue and prefill
	inside float64 // requests in the API servers at once, mean
}

// frontTimesOf returns the times of a window, or what is missing.
func frontTimesOf(w *engine.Window) (t frontTimes, missing string) {
	queue, prefill := w.Mean(engine.HistQueue), w.Mean(engine.HistPrefill)
	switch {
	case !w.Hist[engine.HistTTFT].OK && !w.Hist[engine.HistE2E].OK:
		return t, inputTTFT
	case !queue.OK:
		return t, inputQueue
	case !prefill.OK:
		return t, inputPrefill
	}
	outside, missing := engine.OutsideEngine(&w.Hist)
	requests := w.Hist[engine.HistE2E].Count
	if !outside.OK {
		ttft := &w.Hist[engine.HistTTFT]
		if !ttft.OK || !brief(w) {
			return t, missing
		}
		outside, requests = stat.Some(ttft.Sum/ttft.Count-queue.V-prefill.V), ttft.Count
	}
	t.first = outside.V + queue.V + prefill.V
	t.own = max(0, outside.V-stepAtHand(w))
	t.inside = t.own * requests / w.Seconds()
	return t, ""
}

// brief says whether requests stay in the engine for so small a part of the
// window that its first tokens and its ends are of the same ones.
func brief(w *engine.Window) bool {
	begun, ended := &w.Hist[engine.HistTTFT], &w.Hist[engine.HistQueue]
	if begun.Count <= 0 || !w.Running.OK || math.Abs(begun.Count-ended.Count) > frontShort*ended.Count {
		return false
	}
	stay := w.Running.V * w.Seconds() / ended.Count // Little's law
	return stay <= frontShort*w.Seconds()
}

// stepAtHand bounds, in seconds, what the mean request waits between its arrival
// at the engine and the end of the step that is under way: clients that answer at
// once send theirs when a step begins, so it may be a whole one. A step is a gap
// between two tokens of those that decode, or a prefill where none does.
func stepAtHand(w *engine.Window) float64 {
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

// frontCores returns the cores that the one API-server process used; absent
// where there are several.
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
	if onCPU(f) {
		return lacks("a model that does not run on the CPU itself")
	}
	if f.V0.Known && f.V0.Value {
		return lacks("the V1 engine: in V0 front end and engine can share a process")
	}
	if answer, ok := underLoad(w); !ok {
		return answer
	}
	if q := queued(w); q.Or(0) >= frontQueue {
		return quiet("requests queue in the engine, which the front end fills fast enough:", figure{q, ">=", frontQueue, "req"})
	}
	if cores := frontCores(w, f); cores.OK && cores.V >= frontCPU {
		return fired("CPU cores of the API server", figure{cores, ">=", frontCPU, ""})
	}
	t, missing := frontTimesOf(w)
	if missing != "" {
		return lacks(missing)
	}
	inside := frontInside * float64(max(1, f.APIServerCount.Value))
	switch {
	case t.own < frontSeconds:
		return quiet("time before the first token in the API server", figure{stat.Some(t.own), "<", frontSeconds, "s"})
	case t.own < frontShare*t.first:
		return quiet("share of the time before the first token in the API server", figure{stat.Some(t.own / t.first), "<", frontShare, "ratio"})
	case t.inside < inside:
		return quiet("requests in the API server at once", figure{stat.Some(t.inside), "<", inside, "req"})
	}
	return fired("share of the time before the first token in the API server", figure{stat.Some(t.own / t.first), ">=", frontShare, "ratio"})
}

func concludeFrontEnd(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	var cores, share, own, inside []float64
	for i := range r.Windows {
		w := &r.Windows[i]
		if checkFrontEnd(w, facts).State != engine.Fired {
			continue
		}
		if c := frontCores(w, facts); c.OK {
			cores = append(cores, c.V)
		}
		if v, missing := frontTimesOf(w); missing == "" && v.first > 0 {
			own, share, inside = append(own, v.own), append(share, v.own/v.first), append(inside, v.inside)
		}
	}
	busy, slow := average(cores) >= frontCPU, average(share) >= frontShare && average(own) >= frontSeconds
	f.Confidence = frontOneSign
	if busy && slow {
		f.Confidence = frontConfidence
	}
	if len(cores) > 0 {
		text := "the API-server process used " + number(average(cores)) + " of a core; one Python process cannot use more than about one"
		f.Evidence = append(f.Evidence, evidence("api_server_cpu", stat.Some(average(cores)), "", ">=", stat.Some(frontCPU), engine.FromMeasured, text))
		f.Reason = "the API server uses " + number(average(cores)) + " of a core"
	}
	if len(share) > 0 {
		f.Evidence = append(f.Evidence,
			evidence("front_end_share", stat.Some(average(share)), "ratio", ">=", stat.Some(frontShare), engine.FromDerived,
				fmt.Sprintf("%s of the time before the first token, %s, passed in the API server: outside queue and inference, and longer than a step takes", percent(average(share)), seconds(average(own)))),
			evidence("front_end_requests", stat.Some(average(inside)), "req", ">=", stat.Some(frontInside), engine.FromDerived,
				number(average(inside))+" requests were in the API server at once"))
		if slow {
			f.Reason = percent(average(share)) + " of the time before the first token passes in the front end"
		}
	}
	if len(cores) > 0 && average(cores) < frontIdle {
		f.Reason += ", which uses " + number(average(cores)) + " of a core"
		f.Fix = lookAtFrontEnd(average(cores))
	} else {
		f.Fix = moreAPIServers(r, average(cores), average(inside), stat.Opt{V: average(share), OK: len(share) > 0})
	}
	setLatencyImpact(f, 3)
}

// lookAtFrontEnd is the remedy where the API server holds requests up without
// working: more servers wait for the same.
func lookAtFrontEnd(cores float64) *engine.Fix {
	return &engine.Fix{
		Kind:    engine.KindHost,
		Command: "look at what the API server waits for: the CPU limit of its container (nr_throttled in cpu.stat), other processes on its cores, images or adapters that it fetches",
		Why:     fmt.Sprintf("Requests spend their time in the API server, and its process uses %s of a core: it waits rather than works.", number(cores)),
		Price:   []string{"none: nothing on the server changes"},
		Rejected: []engine.Rejected{{
			What: "--api-server-count", Why: "the server that is there does not use its core; more of them wait for the same",
		}},
	}
}

func moreAPIServers(r *engine.Run, cores, inside float64, share stat.Opt) *engine.Fix {
	facts := r.Facts
	now := max(1, facts.APIServerCount.Value)
	to := min(frontMost, max(2*now, int(math.Ceil(float64(now)*cores/frontRelief))))
	from, who := "", "the API server"
	if facts.APIServerCount.Known {
		from, who = strconv.Itoa(now), counted(float64(now), "API server", "API servers")
	}
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--api-server-count", From: from, To: strconv.Itoa(to),
		Command: setFlag(facts, "--api-server-count", from, strconv.Itoa(to), facts.APIServerCount.Source),
		Why:     fmt.Sprintf("HTTP and tokeniser of %s set the pace, not the GPU; %d share the work.", who, to),
		Price:   []string{priceRestart, "a CPU core and about 1 GB of host memory for each server added", "the page loses its process_* metrics"},
		Risk:    1,
	}
	if from == "" {
		fix.Why += " How many there are is not known; one is the default."
	}
	if strings.Contains(facts.Launch, "api_server") {
		fix.Command = fmt.Sprintf("launch with `vllm serve` and --api-server-count %d: python -m … ignores the flag", to)
	}
	fix.Rejected = append(fix.Rejected, engine.Rejected{What: "--stream-interval", Why: "fewer, larger messages per stream: less CPU, but choppier answers"})
	switch most := -min(1, share.V) * (1 - float64(now)/float64(to)); {
	case r.Perf != nil && cores > 0:
		front := roofline.Front{Inside: inside / float64(max(1, r.Agg.Ranks)), Share: min(1, share.Or(0)), Busy: cores}
		fix.Predicted = modelled(r, func(m *roofline.Performance) roofline.Gain {
			return m.MoreServers(float64(to)/float64(now), front)
		}).predictions()
	case share.V > 0:
		// The front end's part of the time to first token shrinks by what the
		// added servers take over, at best; none of it is certain.
		fix.Predicted = []engine.Prediction{{Metric: metricTTFT, Unit: "ratio", Low: stat.Some(most), Mid: stat.Some(most / 2), High: stat.Some(0)}}
	}
	return fix
}
