package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of front-end: the API server's own time is the limit.
const (
	frontShare      = 0.50 // share of the time to first token spent outside queue and prefill, at least
	frontSeconds    = 0.10 // and at least so many seconds of it
	frontCPU        = 0.90 // cores used by the one API-server process, at least
	frontQueue      = 1.0  // requests waiting in the engine, below: else it is the engine that is behind
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
		},
		explain: Explanation{
			Condition: []string{
				fmt.Sprintf("%s of the time to first token and at least %s of it pass outside queue and prefill: in HTTP, tokeniser and scheduling of the API server", percent(frontShare), seconds(frontSeconds)),
				fmt.Sprintf("or the one API-server process uses %s of a core and more", number(frontCPU)),
				fmt.Sprintf("fewer than %s requests wait in the engine: else the engine is behind, not its front end", number(frontQueue)),
				"not judged where the model itself runs on the CPU, nor on the V0 engine: front end and model share cores or a process there",
			},
			Thresholds: []Threshold{
				{"(ttft - queue - prefill) / ttft", ">=", frontShare, "ratio", fromJudgement},
				{"ttft - queue - prefill", ">=", frontSeconds, "s", fromJudgement},
				{"waiting in the engine", "<", frontQueue, "req", fromJudgement},
				{"CPU of the API server, cores", ">=", frontCPU, "", fromVLLM},
			},
			Formula:    []string{fmt.Sprintf("API servers = present ones x CPU per server / %s, rounded up, at least twice as many, at most %d", number(frontRelief), frontMost)},
			Confidence: []string{number(frontConfidence) + " with both signs", number(frontOneSign) + " with one"},
			Remedy:     []string{"--api-server-count; with `python -m vllm.entrypoints…` the flag is ignored: launch with `vllm serve`"},
			Limits:     []string{"with several API servers the page has no process CPU; queue and prefill are observed when requests finish, so they lag by one request length"},
		},
	}
}

// frontTime returns the mean time to first token and what of it passed outside
// queue and prefill, in seconds.
func frontTime(w *engine.Window) (ttft, front stat.Opt) {
	ttft = w.Mean(engine.HistTTFT)
	queue, prefill := w.Mean(engine.HistQueue), w.Mean(engine.HistPrefill)
	if !ttft.OK || !queue.OK || !prefill.OK {
		return ttft, stat.None
	}
	return ttft, stat.Some(ttft.V - queue.V - prefill.V)
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
	if !loaded(w) {
		return idle()
	}
	if q := queued(w); q.Or(0) >= frontQueue {
		return quiet("requests queue in the engine, which the front end fills fast enough:", figure{q, ">=", frontQueue, "req"})
	}
	if cores := frontCores(w, f); cores.OK && cores.V >= frontCPU {
		return fired("CPU cores of the API server", figure{cores, ">=", frontCPU, ""})
	}
	ttft, front := frontTime(w)
	switch {
	case !ttft.OK:
		return lacks(inputTTFT)
	case !front.OK && !w.Mean(engine.HistQueue).OK:
		return lacks(inputQueue)
	case !front.OK:
		return lacks(inputPrefill)
	case ttft.V <= 0:
		return quiet("time to first token", figure{ttft, "<=", 0, "s"})
	}
	share := figure{stat.Some(front.V / ttft.V), ">=", frontShare, "ratio"}
	if front.V < frontSeconds {
		return quiet("time to first token outside queue and prefill", figure{front, "<", frontSeconds, "s"})
	}
	if share.value.V < frontShare {
		share.op = "<"
		return quiet("share of the time to first token outside queue and prefill", share)
	}
	return fired("share of the time to first token outside queue and prefill", share)
}

func concludeFrontEnd(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	var cores, share, front []float64
	for i := range r.Windows {
		w := &r.Windows[i]
		if checkFrontEnd(w, facts).State != engine.Fired {
			continue
		}
		if c := frontCores(w, facts); c.OK {
			cores = append(cores, c.V)
		}
		if ttft, v := frontTime(w); v.OK && ttft.V > 0 {
			front, share = append(front, v.V), append(share, v.V/ttft.V)
		}
	}
	busy, slow := average(cores) >= frontCPU, average(share) >= frontShare && average(front) >= frontSeconds
	f.Confidence = frontOneSign
	if busy && slow {
		f.Confidence = frontConfidence
	}
	if len(cores) > 0 {
		f.Evidence = append(f.Evidence, evidence("api_server_cpu", stat.Some(average(cores)), "", ">=", stat.Some(frontCPU), engine.FromMeasured,
			"the API-server process used "+number(average(cores))+" of a core; one Python process cannot use more than about one"))
		f.Reason = "the API server uses " + number(average(cores)) + " of a core"
	}
	if len(share) > 0 {
		f.Evidence = append(f.Evidence, evidence("front_end_share", stat.Some(average(share)), "ratio", ">=", stat.Some(frontShare), engine.FromDerived,
			fmt.Sprintf("%s of the time to first token, %s, passed outside queue and prefill", percent(average(share)), seconds(average(front)))))
		if slow {
			f.Reason = percent(average(share)) + " of the time to first token passes in the front end"
		}
	}
	f.Fix = moreAPIServers(r, average(cores), stat.Opt{V: average(share), OK: len(share) > 0})
	setImpact(f, 3)
}

func moreAPIServers(r *engine.Run, cores float64, share stat.Opt) *engine.Fix {
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
	if share.OK && share.V > 0 {
		// The front end's part of the time to first token shrinks by what the
		// added servers take over, at best; none of it is certain.
		most := -min(1, share.V) * (1 - float64(now)/float64(to))
		fix.Predicted = []engine.Prediction{{Metric: metricTTFT, Unit: "ratio", Low: stat.Some(most), Mid: stat.Some(most / 2), High: stat.Some(0)}}
	}
	return fix
}
