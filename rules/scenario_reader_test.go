package rules

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func readScenarios(path string) ([]*scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var cases []*scenario
	var now *scenario
	var block []int // windows that rank lines apply to
	scanner := bufio.NewScanner(f)
	for line := 1; scanner.Scan(); line++ {
		words, err := split(scanner.Text())
		if err == nil && len(words) > 0 {
			switch {
			case words[0] == "case":
				now = &scenario{name: strings.Join(words[1:], " "), facts: engine.Facts{Engine: engine.Know("vllm", engine.FromMetrics, "")}}
				cases = append(cases, now)
			case now == nil:
				err = fmt.Errorf("%q before the first case", words[0])
			case words[0] == "quiet":
				now.quiet, now.facts = true, knownFacts()
			case words[0] == "facts":
				err = now.setFacts(words[1:])
			case words[0] == "window":
				block, err = now.addWindows(words[1:])
			case words[0] == "rank":
				err = now.addRank(block, words[1:])
			case words[0] == "gpu":
				err = now.addGPU(block, words[1:])
			default:
				now.expects = append(now.expects, expectation{line, words})
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
	return cases, scanner.Err()
}

// words match the words of a line, in which double quotes keep spaces, and its comment.
var scenarioWords = regexp.MustCompile(`#.*|(?:"[^"]*"|[^\s"#])+`)

// split splits a line into words.
func split(line string) ([]string, error) {
	var words []string
	for _, word := range scenarioWords.FindAllString(line, -1) {
		if !strings.HasPrefix(word, "#") {
			words = append(words, strings.ReplaceAll(word, `"`, ""))
		}
	}
	if strings.Count(line, `"`)%2 != 0 {
		return nil, fmt.Errorf("quote not closed")
	}
	return words, nil
}

// pairs parses key=value words.
func pairs(words []string) (map[string]string, error) {
	out := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not key=value", w)
		}
		out[k] = v
	}
	return out, nil
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// reading parses a reading; "?" is an absent one.
func reading(text string) (stat.Opt, error) {
	if text == "?" {
		return stat.None, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	return stat.Some(v), err
}

// given returns a fact of the launch command; "?" is an unknown one.
func given[T any](text string, v T) engine.Fact[T] {
	if text == "?" {
		return engine.Fact[T]{}
	}
	return know(v)
}

func know[T any](v T) engine.Fact[T] { return engine.Know(v, engine.FromCmdline, "") }

// setFacts parses "facts slots=4 util=0.9 model=…". Most are as if given in the launch command.
func (c *scenario) setFacts(words []string) error {
	kv, err := pairs(words)
	if err != nil {
		return err
	}
	f := &c.facts
	counts := map[string]*engine.Fact[int]{
		"slots": &f.MaxNumSeqs, "budget": &f.MaxNumBatchedTokens, "prefill_threshold": &f.LongPrefillThreshold, "tp": &f.TensorParallel,
		"dp": &f.DataParallel, "block": &f.BlockSize, "blocks": &f.NumGPUBlocks, "override": &f.NumGPUBlocksOverride,
		"max_len": &f.MaxModelLen, "max_loras": &f.MaxLoRAs, "lora_rank": &f.MaxLoRARank, "api_servers": &f.APIServerCount,
	}
	switches := map[string]*engine.Fact[bool]{"caching": &f.PrefixCaching, "eager": &f.EnforceEager, "v0": &f.V0, "chunked": &f.ChunkedPrefill, "lora": &f.EnableLoRA}
	texts := map[string]*engine.Fact[string]{"engine": &f.Engine, "kv_dtype": &f.KVCacheDType, "gpu_name": &f.GPUName, "device": &f.Device}
	for _, k := range slices.Sorted(maps.Keys(kv)) {
		v := kv[k]
		n, _ := strconv.ParseFloat(v, 64)
		switch {
		case counts[k] != nil:
			*counts[k] = given(v, int(n))
		case switches[k] != nil:
			*switches[k] = given(v, v == "on")
		case texts[k] != nil:
			*texts[k] = given(v, v)
		default:
			if err := c.setFact(k, v, n); err != nil {
				return err
			}
		}
	}
	if f.MaxLoRAs.Known {
		f.EnableLoRA = know(true)
	}
	return nil
}

// setFact sets a fact that is more than one value of the launch command.
func (c *scenario) setFact(k, v string, n float64) error {
	f := &c.facts
	switch k {
	case "given_slots":
		f.MaxNumSeqs = engine.Know(int(n), engine.FromFlag, "")
	case "made_slots": // set by this run on a server whose launch cannot be read
		f.MaxNumSeqs = engine.Know(int(n), engine.FromDerived, "")
	case "default_slots":
		f.MaxNumSeqs = engine.Know(int(n), engine.FromDefault, "")
	case "default_budget":
		f.MaxNumBatchedTokens = engine.Know(int(n), engine.FromDefault, "")
	case "divided": // the data-parallel ranks that share the flags' numbers
		f.DividedBy = int(n)
	case "util":
		f.GPUMemoryUtilization = know(n)
	case "weights":
		name, source, ok := strings.Cut(v, ":")
		if f.WeightDType = know(name); ok {
			f.WeightDType.Source = engine.Source(source)
		}
	case "bytes":
		f.ClassicBytes = n
	case "bytes_from":
		f.ClassicBytesFrom = v
	case "capacity":
		if f.KVCapacityTokens = given(v, n); v != "?" {
			f.KVCapacityTokens.Source = engine.FromMetrics
		}
	case "long_prompt": // tokens of a prompt that fills several steps
		f.LongPrompt = stat.Some(n)
	case "vram": // GiB
		f.GPU.VRAMGiB = n
	case "version":
		f.EngineVersion = engine.Know(v, engine.FromServer, "")
	case "launch":
		f.Launch = v
	case "pid":
		f.PID = int(n)
	case "params":
		f.ParamsTotal = know(n * 1e9)
	case "gpu":
		g, err := catalog.Default().FindGPU(v, 0)
		if err != nil {
			return err
		}
		f.GPU, f.GPUKnown, f.GPUName = g, true, know(g.Name)
		f.Device = know("cuda")
	case "model":
		m, err := catalog.Default().FindModel(v)
		if err != nil {
			return err
		}
		f.ModelSpec, f.ModelKnown, f.ModelFrom = m, true, engine.FromCatalog
		f.ParamsTotal, f.ParamsActive = know(m.TotalParams), know(m.ActiveParams)
		if !f.WeightDType.Known {
			f.WeightDType = engine.Know(string(m.NativeDType), engine.FromCatalog, "")
		}
		f.ComputeDType = know(string(catalog.BF16))
	default:
		return fmt.Errorf("unknown fact %q", k)
	}
	return nil
}

// counters and histograms by their scenario names.
var (
	scenarioCounters = map[string]engine.Counter{
		"gen": engine.CounterGenerationTokens, "prompt": engine.CounterPromptTokens, "cached": engine.CounterPromptTokensCached,
		"req": engine.CounterRequestSuccess, "preempt": engine.CounterPreemptions,
		"queries": engine.CounterPrefixQueries, "hits": engine.CounterPrefixHits, "cpu": engine.CounterProcessCPUSeconds,
	}
	scenarioTotals = map[string]engine.Counter{
		"total_prompt": engine.CounterPromptTokens, "total_cached": engine.CounterPromptTokensCached,
	}
	scenarioHists = map[string]engine.Hist{
		"ttft": engine.HistTTFT, "queue": engine.HistQueue, "prefill": engine.HistPrefill, "decode": engine.HistDecode,
		"itl": engine.HistITL, "e2e": engine.HistE2E, "inference": engine.HistInference, "prompt_len": engine.HistPromptTokens, "output_len": engine.HistGenerationTokens,
		"step_tokens": engine.HistIterationTokens,
	}
)

const scenarioWindow = 2 * time.Second

// Bucket bounds in seconds and tokens (vLLM, v1/metrics/loggers.py) of the histograms whose distribution a
// rule uses.
var (
	bucketsITL     = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, math.Inf(1)}
	bucketsRequest = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680, math.Inf(1)}

	bucketsPrompt = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, math.Inf(1)}

	bucketsSteps = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, math.Inf(1)}

	scenarioBuckets = map[engine.Hist][]float64{engine.HistITL: bucketsITL, engine.HistPrefill: bucketsRequest, engine.HistIterationTokens: bucketsSteps, engine.HistPromptTokens: bucketsPrompt}
)

// distribution parses "0.024" or, with weights, "0.024:98,1.5:2" as the increase of a histogram
// with count observations. With numbers of observations, "0.024*98,1.5*2", it has as many.
// Of prompts without weights only the mean is known.
func distribution(text string, count float64, bounds []float64) (stat.Delta, error) {
	if text == "?" {
		return stat.Delta{}, nil
	}
	exact := strings.Contains(text, "*")
	text = strings.ReplaceAll(text, "*", ":")
	d := stat.Delta{Count: count, Bounds: bounds, Counts: make([]float64, len(bounds)), OK: true}
	var values, weights []float64
	total := 0.0
	for _, part := range strings.Split(text, ",") {
		value, weight, weighted := strings.Cut(part, ":")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return d, err
		}
		n := 1.0
		if weighted {
			if n, err = strconv.ParseFloat(weight, 64); err != nil {
				return d, err
			}
		}
		values, weights, total = append(values, v), append(weights, n), total+n
	}
	if exact {
		d.Count = total
	}
	for i, v := range values {
		n := d.Count * weights[i] / total
		d.Sum += v * n
		if at, _ := slices.BinarySearch(bounds, v); at < len(bounds) {
			d.Counts[at] += n
		}
	}
	return d, nil
}

// quietBut returns a quiet window without what other readings replace, and the requests that finished in it.
func quietBut(kv map[string]string) (w engine.Window, finished float64) {
	w, finished = quietWindow(), 16
	w.Ranks, w.GPUs = nil, nil
	if v, ok := kv["finished"]; ok {
		finished, _ = strconv.ParseFloat(v, 64)
		for h := range w.Hist {
			w.Hist[h].Sum *= finished / w.Hist[h].Count
			w.Hist[h].Count = finished
		}
	}
	if _, ok := kv["running"]; ok {
		w.RunningPeak = stat.None
	}
	if _, ok := kv["kv"]; ok {
		w.KVPeak = stat.None
	}
	return w, finished
}

// addWindows parses "window x10 running=4 waiting=28 ...". Counters are per
// second, histograms are means over as many requests as finished (at least one).
func (c *scenario) addWindows(words []string) ([]int, error) {
	n := 1
	if len(words) > 0 && strings.HasPrefix(words[0], "x") {
		var err error
		if n, err = strconv.Atoi(words[0][1:]); err != nil {
			return nil, err
		}
		words = words[1:]
	}
	kv, err := pairs(words)
	if err != nil {
		return nil, err
	}
	w := engine.Window{Duration: scenarioWindow, Polls: 9, Evaluable: true, Progress: true, LongestStep: 250 * time.Millisecond}
	finished := 1.0
	if c.quiet {
		w, finished = quietBut(kv)
	}
	if v, ok := kv["req"]; ok {
		r, _ := strconv.ParseFloat(v, 64)
		finished = max(1, r*scenarioWindow.Seconds())
	}
	gaps := finished // between tokens
	if v, ok := kv["gen"]; ok {
		g, _ := strconv.ParseFloat(v, 64)
		gaps = max(finished, g*scenarioWindow.Seconds()-finished)
	}
	states := map[string]*bool{"asleep": &w.Asleep, "skewed": &w.Skewed, "evaluable": &w.Evaluable}
	readings := map[string]*stat.Opt{
		"running_peak": &w.RunningPeak, "running_median": &w.RunningMedian, "occupied": &w.Occupied, "deferred": &w.Deferred,
		"loras_max": &w.LoRAs.Max, "kv_last": &w.KVLast, "kv_peak": &w.KVPeak, "step": &w.StepTime,
	}
	for _, k := range slices.Sorted(maps.Keys(kv)) {
		if h, ok := scenarioHists[k]; ok {
			count := finished
			if h == engine.HistITL {
				count = gaps
			}
			var err error
			bounds := scenarioBuckets[h]
			if h == engine.HistPromptTokens && !strings.ContainsAny(kv[k], ":*") {
				bounds = nil
			}
			if w.Hist[h], err = distribution(kv[k], count, bounds); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			continue
		}
		value, err := reading(kv[k])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		if counter, ok := scenarioCounters[k]; ok {
			w.Rate[counter], w.Delta[counter] = value, value.Times(scenarioWindow.Seconds())
			continue
		}
		if counter, ok := scenarioTotals[k]; ok {
			w.Last[counter] = value
			continue
		}
		if is := states[k]; is != nil {
			*is = value.V > 0
			continue
		}
		if gauge := readings[k]; gauge != nil {
			*gauge = value
			continue
		}
		switch v := value.V; k {
		case "finished": // see quietBut
		case "seconds":
			w.Duration = seconds(v)
		case "running":
			w.Running = value
			w.RunningPeak = w.RunningPeak.Max(value)
		case "waiting":
			w.Waiting, w.WaitingPeak = value, value
		case "loras_running":
			w.LoRAs.Running = stat.Some(v)
			w.LoRAs.Wanted = stat.Some(w.LoRAs.Wanted.Or(0) + v)
		case "loras_waiting":
			w.LoRAs.Waiting = stat.Some(v)
			w.LoRAs.Wanted = stat.Some(w.LoRAs.Wanted.Or(0) + v)
		case "kv":
			w.KV, w.KVLast = value, value
			w.KVPeak = w.KVPeak.Max(value)
		case "prefill_sum":
			w.Hist[engine.HistPrefill] = stat.Delta{Sum: v, Count: finished, OK: true}
		case "longest_step":
			w.LongestStep = seconds(v)
		case "stall":
			w.Stall, w.Progress = seconds(v), false
		case "dead":
			w.Dead, w.HealthWhy = seconds(v), "/health answers 503"
		case "answered":
			w.Answers.Ended = v
		case "errors":
			w.Answers.Failed = v
		default:
			return nil, fmt.Errorf("unknown reading %q", k)
		}
	}
	if g := w.Rate[engine.CounterGenerationTokens]; !w.StepTime.OK && g.Or(0) > 0 {
		w.StepTime = w.Running.Div(g)
	}
	w.Active = w.Evaluable && w.Running.Or(0) > 0
	var block []int
	for range n {
		one := w.Clone()
		one.Index = len(c.windows)
		one.Start = time.Duration(one.Index) * scenarioWindow
		block = append(block, one.Index)
		c.windows = append(c.windows, one)
	}
	return block, nil
}

// addRank parses "rank 0 running=4 waiting=2 kv=0.5 gen=300" for the windows above
// it.
func (c *scenario) addRank(block []int, words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("rank needs a name")
	}
	kv, err := pairs(words[1:])
	if err != nil {
		return err
	}
	r := engine.RankWindow{Name: words[0]}
	gauges := map[string]*stat.Opt{"running": &r.Running, "waiting": &r.Waiting, "kv": &r.KVPeak, "slots": &r.MaxNumSeqs}
	for k, text := range kv {
		v, err := reading(text)
		if err != nil {
			return err
		}
		switch {
		case gauges[k] != nil:
			*gauges[k] = v
		case k == "gen":
			r.Generation = v.Times(scenarioWindow.Seconds())
		case k == "stall":
			r.Stall = seconds(v.V)
		case k == "longest_step":
			r.LongestStep = seconds(v.V)
		case k == "untouched":
			r.Untouched = v.V != 0
		default:
			return fmt.Errorf("unknown reading %q of a rank", k)
		}
	}
	for _, i := range block {
		c.windows[i].Ranks = append(c.windows[i].Ranks, r)
	}
	return nil
}

// addGPU parses "gpu power=700 limit=700 clock=1400 reasons=0x4" for the windows
// above it.
func (c *scenario) addGPU(block []int, words []string) error {
	kv, err := pairs(words)
	if err != nil {
		return err
	}
	g := engine.GPUWindow{Name: "GPU"}
	fields := map[string]engine.GPUField{
		"power": engine.GPUPowerW, "limit": engine.GPUPowerLimitW, "clock": engine.GPUSMClockMHz,
		"temperature": engine.GPUTemperatureC, "vram_used": engine.GPUVRAMUsed, "vram_total": engine.GPUVRAMTotal, "util": engine.GPUUtil, "clock_max": engine.GPUSMClockMaxMHz, "temperature_limit": engine.GPUTemperatureLimitC,
	}
	for k := range kv {
		if k == "reasons" {
			mask, err := strconv.ParseUint(kv[k], 0, 64)
			if err != nil {
				return err
			}
			g.Throttle, g.ThrottleOK = mask, true
			continue
		}
		field, ok := fields[k]
		v, err := strconv.ParseFloat(kv[k], 64)
		if !ok || err != nil {
			return fmt.Errorf("unknown reading %q of a GPU", k)
		}
		g.Mean[field], g.Last[field], g.Peak[field] = stat.Some(v), stat.Some(v), stat.Some(v)
	}
	for _, i := range block {
		w := &c.windows[i]
		g.Index = len(w.GPUs)
		w.GPUs = append(w.GPUs, g)
		w.GPUUtil, w.GPUBusy = g.Mean[engine.GPUUtil], w.GPUBusy.Max(g.Mean[engine.GPUUtil])
	}
	return nil
}
