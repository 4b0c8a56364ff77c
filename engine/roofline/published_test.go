package roofline

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// result is one row of the published measurements.
type result struct {
	line   int
	fields map[string]string
}

func (r result) num(name string) float64 {
	v, err := strconv.ParseFloat(r.fields[name], 64)
	if err != nil {
		return 0
	}
	return v
}

func (r result) String() string {
	f := r.fields
	return fmt.Sprintf("%3d %-12s %-22s %-24s tp%-4s %-9.9s kv %-8s isl %6s osl %5s b %3s", r.line, f["engine"],
		strings.TrimPrefix(f["model"], "openai/"), f["gpu"], f["tp"], f["dtype"], f["kv_dtype"], f["isl"], f["osl"], f["concurrency_or_batch"])
}

func published(t *testing.T) []result {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "published-results.csv"))
	if err != nil {
		t.Skipf("NOT CHECKED: the published measurements are not beside this checkout: %v", err)
	}
	return readResults(t, f)
}

// sglangResults returns the published results of SGLang, to which no constant was fitted.
func sglangResults(t *testing.T) []result {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "published", "sglang.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return readResults(t, f)
}

func readResults(t *testing.T, f *os.File) (out []result) {
	t.Helper()
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		r := result{line: i + 2, fields: map[string]string{}}
		for j, name := range rows[0] {
			r.fields[name] = row[j]
		}
		out = append(out, r)
	}
	return out
}

var publishedDTypes = []struct {
	prefix string
	dtype  catalog.DType
}{
	{"bf16", catalog.BF16}, {"fp16", catalog.FP16}, {"fp8", catalog.FP8}, {"mxfp4", catalog.MXFP4}, {"nvfp4", catalog.NVFP4},
	{"int8", catalog.INT8}, {"gptq-int8", catalog.INT8}, {"awq-int4", catalog.INT4}, {"int4", catalog.INT4},
}

// arcB60 is not in the catalog: Intel's datasheet for one card.
func arcB60() catalog.GPU {
	return catalog.GPU{Name: "Intel Arc Pro B60", Vendor: "intel", Arch: "Xe2", VRAMGiB: 24, MemBandwidthGBs: 456, BF16TFLOPS: 98.5, INT8TOPS: 197}
}

// publishedGPU returns the GPU of a name; of several that share it, the first, which is the fastest.
func publishedGPU(t *testing.T, name string) catalog.GPU {
	t.Helper()
	g, err := catalog.Default().FindGPU(name, 0)
	var several *catalog.AmbiguousError
	if errors.As(err, &several) {
		name = several.Candidates[0]
	}
	if i := slices.IndexFunc(catalog.Default().GPUs(), func(g catalog.GPU) bool { return g.Name == name }); i >= 0 {
		return catalog.Default().GPUs()[i]
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// config reads a row's configuration; ranks is the number of data-parallel ones,
// whose rates add up.
func (r result) config(t *testing.T) (c Config, ranks float64) {
	t.Helper()
	f := r.fields
	if strings.HasPrefix(f["gpu"], "Intel Arc Pro B60") {
		c.GPU = arcB60()
	} else {
		c.GPU = publishedGPU(t, f["gpu"])
	}
	c.Model, c.OtherEngine = mustModel(t, f["model"]), f["engine"] == "SGLang"

	c.TP, c.PP, ranks = 1, 1, 1
	if n, ok := strings.CutPrefix(f["tp"], "DEP"); ok {
		d, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		c.DP, c.ExpertParallel, ranks = d, true, float64(d)
	} else if n, ok := strings.CutPrefix(f["tp"], "TEP"); ok {
		d, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		c.TP, c.ExpertParallel = d, true
	} else if d, err := strconv.Atoi(f["tp"]); err == nil {
		c.TP = d
	}
	for _, d := range publishedDTypes {
		if strings.HasPrefix(f["dtype"], d.prefix) {
			c.Weight = d.dtype
			break
		}
	}
	c.KV, c.Compute = catalog.BF16, catalog.BF16
	switch kv := f["kv_dtype"]; {
	case strings.HasPrefix(kv, "fp8"), kv == "per checkpoint":
		c.KV = catalog.FP8 // the lighter reading of "per checkpoint": a bound must hold for it
	}
	if missing := c.Check(); len(missing) > 0 {
		t.Fatalf("row %d: unknown %v", r.line, missing)
	}
	return c, ranks
}

// lengths returns prompt and output tokens; ShareGPT runs have none.
func (r result) lengths() (isl, osl float64) { return r.num("isl"), r.num("osl") }

// bound returns the ideal ceiling of output tokens per second: at the row's batch or, without one, at any batch that fits
// the GPUs' memory if all of it were weights and cache.
func (r result) bound(c Config, ranks float64) float64 {
	isl, osl := r.lengths()
	context := isl + osl/2
	if osl == 0 {
		context = isl
	}
	at := func(b float64) float64 {
		p := Point{Batch: b, Context: context, Tokens: b, PerSequence: 1}
		if osl > 0 && isl > 16 && r.num("concurrency_or_batch") == 0 {
			p.Tokens, p.PrefillContext = b*(1+isl/osl), isl/2
		}
		return ranks * b / c.Step(p).Ideal.Total()
	}
	if b := r.num("concurrency_or_batch"); b > 0 {
		return at(b / ranks)
	}
	hold := c.poolBytes(1, 0) / c.poolPerSequence(context)
	most := 0.0
	for b := 1.0; b < hold; b *= 1.05 {
		most = max(most, at(b))
	}
	return max(most, at(max(1, hold)))
}

// impossible are the rows, by line, that exceed any ceiling, each with its reason: physically impossible, or gained by
// speculation. The present file has none.
var impossible = map[int]string{}

// No published rate is above the ideal ceiling.
func TestPublishedBelowIdeal(t *testing.T) {
	for _, r := range append(published(t), tensorRTResults(t, "fp8")...) {
		if why, ok := impossible[r.line]; ok {
			t.Logf("%v  skipped: %s", r, why)
			continue
		}
		r.checkBelowIdeal(t)
	}
}

// No published rate of SGLang is above the ideal ceiling.
func TestPublishedSGLangBelowIdeal(t *testing.T) {
	for _, r := range sglangResults(t) {
		r.checkBelowIdeal(t)
	}
}

func (r result) checkBelowIdeal(t *testing.T) {
	t.Helper()
	c, ranks := r.config(t)
	out := r.num("output_tok_s_total")
	isl, _ := r.lengths()
	switch {
	case out > 0 && (isl > 0 || r.fields["isl"] == "0" || r.num("concurrency_or_batch") > 0):
		ideal := r.bound(c, ranks)
		t.Logf("%v  %8.0f of %8.0f tok/s  %5.1f %%", r, out, ideal, 100*out/ideal)
		if out > ideal {
			t.Errorf("row %d: %.0f tok/s measured is above the ideal ceiling of %.0f", r.line, out, ideal)
		}
	case r.num("total_tok_s") > 0:
		// Prompt and output together, lengths unknown: the tensor cores alone.
		pl := c.plan()
		ideal := pl.tp * pl.dense.ideal / (2 * pl.s.dense)
		total := r.num("total_tok_s")
		t.Logf("%v  %8.0f of %8.0f tok/s in all %5.1f %%", r, total, ideal, 100*total/ideal)
		if total > ideal {
			t.Errorf("row %d: %.0f tok/s in all is above the compute ceiling of %.0f", r.line, total, ideal)
		}
	case r.num("tpot_or_itl_ms") == 0:
		t.Errorf("row %d has nothing to hold against a ceiling", r.line)
	}
	if itl, b := r.num("tpot_or_itl_ms")/1000, r.num("concurrency_or_batch"); itl > 0 && b > 0 {
		ideal := c.Step(Point{Batch: b / ranks, Context: isl}).Ideal.Total()
		if itl < ideal {
			t.Errorf("row %d: %.2f ms between tokens is below the ideal step of %.2f ms", r.line, itl*1e3, ideal*1e3)
		}
	}
}

// tensorRT are results of TensorRT-LLM 0.5 and 0.6.1 with Llama 2 7B at full batches (NVIDIA/TensorRT-LLM,
// docs/source/performance.md), for which no constant was fitted: GPU, type of weights and cache, batch,
// prompt, output, output tokens per second. The engines were built with --enable_fp8 --fp8_kv_cache; with
// a 16-bit cache 32 sequences of 2048 + 2048 would be 1.21 times above the ideal.
const tensorRT = `
H100 SXM,fp8,768,128,128,19694
H100 SXM,fp8,112,128,2048,6818
H100 SXM,fp8,80,2048,128,2244
H100 SXM,fp8,48,2048,2048,2740
H100 SXM,fp8,64,128,128,9193
H100 SXM,fp8,64,128,2048,5367
H100 SXM,fp8,64,2048,128,2058
H100 SXM,fp8,32,2048,2048,2230
NVIDIA L40S,fp8,64,128,128,3240
NVIDIA L40S,fp8,64,128,2048,1622
NVIDIA L40S,fp8,32,2048,128,581
NVIDIA L40S,fp8,16,2048,2048,531
A100 SXM,fp16,384,128,128,5586
A100 SXM,fp16,60,128,2048,1928
A100 SXM,fp16,52,2048,128,591
`

// tensorRTResults returns them as results; kv is the type of the cache as published, or "" for unknown.
func tensorRTResults(t *testing.T, kv string) (out []result) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimSpace(tensorRT))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		r := result{line: -i - 1, fields: map[string]string{
			"engine": "TensorRT-LLM", "model": "Llama-2-7b", "gpu": row[0], "tp": "1", "dtype": row[1], "kv_dtype": kv,
			"concurrency_or_batch": row[2], "isl": row[3], "osl": row[4], "output_tok_s_total": row[5],
		}}
		if row[1] != "fp8" {
			r.fields["kv_dtype"] = row[1]
		}
		out = append(out, r)
	}
	return out
}

// A published cache type that is not known does not make the ideal too low.
func TestIdealAllowsForAnAssumedCache(t *testing.T) {
	exceeded := 0
	for _, r := range tensorRTResults(t, "") {
		c, ranks := r.config(t)
		if out := r.num("output_tok_s_total"); out > r.bound(c, ranks) {
			exceeded++
		}
		c.KVAssumed = true
		if out, ideal := r.num("output_tok_s_total"), r.bound(c, ranks); out > ideal {
			t.Errorf("%v: %.0f tok/s measured is above the ideal of %.0f", r, out, ideal)
		}
	}
	if exceeded == 0 {
		t.Error("no result is above the ideal with a 16-bit cache: nothing was tested")
	}
}

// point returns the operating point of a row and the measured rate over the achievable one; ok is false if
// its batch or its context is not known.
func (r result) point(c *Config, ranks float64) (p Point, ratio float64, ok bool) {
	out, itl := r.num("output_tok_s_total"), r.num("tpot_or_itl_ms")/1000
	isl, osl := r.lengths()
	b := r.num("concurrency_or_batch")
	if r.fields["isl"] == "" {
		return p, 0, false
	}
	p = Point{Batch: b / ranks, Context: isl + osl/2, PerSequence: 1}
	if isl == 0 {
		p.Context = 0 // the intercept of a published line
	}
	switch {
	case b > 0:
	case out > 0 && itl > 0:
		p.Batch = out * itl / ranks // Little's law: requests that decode
	default:
		return p, 0, false
	}
	p.Tokens = p.Batch
	if out == 0 { // the time between tokens alone, without prefill
		return p, c.Step(p).Achievable.Total() / itl, true
	}
	if osl > 0 && isl > 16 {
		p.Tokens, p.PrefillContext, p.Chunk = p.Batch*(1+isl/osl), isl/2, min(8192, isl)
	}
	step := c.Step(p).Achievable.Total()
	if b == 0 {
		return p, step / itl, true
	}
	return p, out * step / ranks / p.Batch, true
}

// Nine of ten published results at a known batch and context lie within the range of the achievable rate.
func TestPublishedWithinAchievable(t *testing.T) {
	dense, within, n := scoreAchievable(t, append(published(t), tensorRTResults(t, "fp8")...))
	if float64(within) < 0.9*float64(n) {
		t.Errorf("%d of %d results lie within the range of the achievable rate, want 90 %%", within, n)
	}
	if m := dense[len(dense)/2]; m < 0.9 || m > 1.1 {
		t.Errorf("the median of dense models is %.2f of achievable", m)
	}
}

// Nine of ten of SGLang's published results too, in the wider range of an engine on which the fractions were not
// measured.
func TestPublishedSGLangWithinAchievable(t *testing.T) {
	dense, within, n := scoreAchievable(t, sglangResults(t))
	if float64(within) < 0.9*float64(n) {
		t.Errorf("%d of %d results lie within the range of the achievable rate, want 90 %%", within, n)
	}
	if highest := dense[len(dense)-1]; highest > 1 {
		t.Errorf("a dense model reaches %.2f of achievable", highest)
	}
}

// scoreAchievable logs each result at a known batch and context, and the distribution of measured over
// achievable, in all and by kind of model and GPU. It returns the sorted ratios of dense models, and of
// all results the number within the range of the achievable rate and their number.
func scoreAchievable(t *testing.T, rows []result) (dense []float64, within, n int) {
	t.Helper()
	ratios, inside := map[string][]float64{}, map[string]int{}
	for _, r := range rows {
		c, ranks := r.config(t)
		p, ratio, ok := r.point(&c, ranks)
		if !ok {
			continue
		}
		pl := c.plan()
		s := c.Step(p)
		lower, upper := pl.band(p, s.Achievable)
		upper = min(upper, s.Achievable.Total()/s.Ideal.Total())
		held := ratio >= lower && ratio <= upper
		t.Logf("%v  measured over achievable %.2f (%.2f to %.2f) %v", r, ratio, lower, upper, held)
		kind := "dense"
		if c.Model.Experts > 0 {
			kind = "experts"
		}
		for _, group := range []string{"all", kind, kind + " on " + c.GPU.Name} {
			ratios[group] = append(ratios[group], ratio)
			if held {
				inside[group]++
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(ratios)) {
		list := ratios[group]
		slices.Sort(list)
		at := func(q float64) float64 { return list[int(q*float64(len(list)-1))] }
		t.Logf("%s, %d results, %d within: lowest %.2f, 5 %% %.2f, 25 %% %.2f, median %.2f, 75 %% %.2f, 95 %% %.2f, highest %.2f",
			group, len(list), inside[group], at(0), at(0.05), at(0.25), at(0.5), at(0.75), at(0.95), at(1))
	}
	return ratios["dense"], inside["all"], len(ratios["all"])
}

// The achievable step predicts the decode of vLLM, for rows with a batch and a time between tokens.
func TestPublishedDecodeNearAchievable(t *testing.T) {
	var dense []float64
	for _, r := range published(t) {
		itl, b := r.num("tpot_or_itl_ms")/1000, r.num("concurrency_or_batch")
		c, _ := r.config(t)
		if itl == 0 || b == 0 || r.fields["engine"] != "vLLM" || c.Model.Experts > 0 {
			continue
		}
		isl, osl := r.lengths()
		p := Point{Batch: b, Context: isl + osl/2, Tokens: b}
		if isl == 0 {
			p.Context = 0
		}
		dense = append(dense, math.Abs(c.Step(p).Achievable.Total()/itl-1))
	}
	slices.Sort(dense)
	if m := dense[len(dense)/2]; m > 0.20 {
		t.Errorf("median error of dense vLLM decode = %.0f %%, want at most 20 %%", 100*m)
	}
}

// pair is a change of the batch between two published or recorded measurements of one server.
type pair struct {
	name     string
	gain     Range
	measured float64 // relative change of the output
}

// scorePairs logs each pair, and returns the median error of the middles as a ratio and the share of
// pairs within their range.
func scorePairs(t *testing.T, list []pair) (median, within float64) {
	t.Helper()
	var errors []float64
	for _, p := range list {
		held := p.measured >= p.gain.Low.V && p.measured <= p.gain.High.V
		if held {
			within += 1 / float64(len(list))
		}
		errors = append(errors, math.Abs((1+p.gain.Mid.V)/(1+p.measured)-1))
		t.Logf("%-60s %+5.0f %% (%+.0f to %+.0f %%), measured %+5.0f %% %v", p.name, 100*p.gain.Mid.V, 100*p.gain.Low.V, 100*p.gain.High.V, 100*p.measured, held)
	}
	slices.Sort(errors)
	median = errors[len(errors)/2]
	t.Logf("%d pairs: median error %.1f %%, %.0f %% within", len(list), 100*median, 100*within)
	return median, within
}

// Published pairs of equal servers at two batches: the second is predicted from the first alone.
func TestPublishedPairs(t *testing.T) {
	type key [8]string
	groups := map[key][]result{}
	var order []key
	for _, r := range append(published(t), tensorRTResults(t, "fp8")...) {
		isl, osl := r.lengths()
		if r.num("concurrency_or_batch") == 0 || r.num("output_tok_s_total") == 0 || isl == 0 || osl == 0 {
			continue
		}
		k := key{r.fields["engine"], r.fields["model"], r.fields["gpu"], r.fields["tp"], r.fields["dtype"], r.fields["kv_dtype"], r.fields["isl"], r.fields["osl"]}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	var list []pair
	for _, k := range order {
		rows := groups[k]
		for i, a := range rows {
			for _, b := range rows[i+1:] {
				from, to := a.num("concurrency_or_batch"), b.num("concurrency_or_batch")
				if to < from {
					a, b, from, to = b, a, to, from
				}
				if from == to {
					continue
				}
				c, _ := a.config(t)
				isl, osl := a.lengths()
				out := a.num("output_tok_s_total")
				m := Measured{
					Point: Point{Batch: from, Context: isl + osl/2}, StepSeconds: stat.Some(from / out), OutputPerS: stat.Some(out), PrefillPerS: stat.Some(out * isl / osl),
					Waiting: stat.Some(to - from), MaxNumSeqs: stat.Some(from), Workload: Workload{Prompt: isl, Computed: isl, Output: osl}, WorkloadKnown: true,
				}
				list = append(list, pair{
					fmt.Sprintf("%s %s %s %s+%s: %.0f to %.0f", k[0], k[1], k[2], k[6], k[7], from, to),
					operate(t, c, m).RaiseSlots(int(to)).Throughput, b.num("output_tok_s_total")/out - 1,
				})
			}
		}
	}
	if median, within := scorePairs(t, list); len(list) < 15 || median > 0.20 || within < 0.7 {
		t.Errorf("%d pairs: median error %.2f, %.2f within", len(list), median, within)
	}
}

// Pairs of a real vLLM's CPU backend on two shared cores, without a physical model. At least seven were
// known when the halves of a CPU were chosen: this guards them and does not prove them. Hosts were idle or busy.
func TestRealPairsOnACPU(t *testing.T) {
	var list []pair
	for _, p := range []struct {
		name                     string
		running, waiting, prompt float64 // prompt: share of the engine's time that computes prompts, negative if unknown
		to                       int
		was, is                  float64 // tok/s
	}{
		{"idle, 100+64, 4 to 12 slots", 4, 28, 0.043, 12, 316, 806},
		{"idle, 100+64, 4 to 32 slots", 4, 28, 0.043, 32, 316, 1225},
		{"idle, 100+64, 12 to 32 slots", 12, 20, 0.11, 32, 806, 1225},
		{"another host, 100+64, 4 to 32 slots", 4, 28, -1, 32, 900, 1800},
		{"busy, 100+64, 4 to 32 slots", 3.92, 27.9, 0.054, 32, 199.3, 452.5},
		{"short chat, 4 to 32 slots", 4, 28, -1, 32, 360, 1181},
		{"32 clients, 3 to 32 slots", 3, 29, -1, 32, 100, 225},
		{"64 blocks, 4 to 16 slots", 3.9, 28, -1, 16, 100, 194},
		{"busy, 540+16, 4 to 24 slots", 3.36, 19.6, 0.47, 24, 54.8, 68.9},
		{"very busy, 400+100, 2 to 16 slots, 10 clients", 1.96, 7.92, 0.044, 16, 62.7, 81.6},
	} {
		b := Blind{Running: p.running, Waiting: p.waiting, CPU: true, Prefill: stat.Opt{V: p.prompt, OK: p.prompt >= 0}}
		list = append(list, pair{p.name, b.RaiseSlots(p.to).Throughput, p.is/p.was - 1})
	}
	if median, within := scorePairs(t, list); median > 0.35 || within < 0.7 {
		t.Errorf("median error %.2f, %.2f within", median, within)
	}
}
