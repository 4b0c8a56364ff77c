package roofline

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
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
		t.Skipf("the published measurements are not beside this checkout: %v", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []result
	for i, row := range rows[1:] {
		r := result{line: i + 2, fields: map[string]string{}}
		for j, name := range rows[0] {
			r.fields[name] = row[j]
		}
		out = append(out, r)
	}
	return out
}

// publishedGPUs are the publications' names of devices in the catalog's terms.
var publishedGPUs = []struct{ prefix, name string }{
	{"H100", "NVIDIA H100 80GB HBM3"}, {"H200", "NVIDIA H200"}, {"A100", "NVIDIA A100-SXM4-80GB"},
	{"GB200", "NVIDIA GB200"}, {"B200", "NVIDIA B200"}, {"RTX 4090", "NVIDIA GeForce RTX 4090"},
	{"RTX 5090", "NVIDIA GeForce RTX 5090"}, {"GB10", "NVIDIA GB10"}, {"MI250X (1 GCD)", "AMD Instinct MI250X GCD"},
	{"RTX PRO 6000 Blackwell Workstation", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"},
	{"RTX PRO 6000 Blackwell Server", "NVIDIA RTX PRO 6000 Blackwell Server Edition"},
}

var publishedModels = map[string]string{
	"gpt-oss-20b": "openai/gpt-oss-20b", "Qwen3-8B": "Qwen/Qwen3-8B", "Llama-3.1-8B": "meta-llama/Llama-3.1-8B-Instruct",
	"Llama-3.3-70B-Instruct": "meta-llama/Llama-3.3-70B-Instruct", "DeepSeek-R1-0528": "deepseek-ai/DeepSeek-R1",
	"Qwen3-30B-A3B": "Qwen/Qwen3-30B-A3B", "Llama-2-7B": "meta-llama/Llama-2-7b-hf", "Llama-2-7b": "meta-llama/Llama-2-7b-hf",
	"Mixtral-8x7B": "mistralai/Mixtral-8x7B-Instruct-v0.1",
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

// config reads a row's configuration; ranks is the number of data-parallel ones,
// whose rates add up.
func (r result) config(t *testing.T) (c Config, ranks float64) {
	t.Helper()
	f := r.fields
	gpus, models := catalog.Default().GPUs(), catalog.Default().Models()
	name := f["gpu"]
	for _, g := range publishedGPUs {
		if strings.HasPrefix(name, g.prefix) {
			name = g.name
			break
		}
	}
	if strings.HasPrefix(name, "Intel Arc Pro B60") {
		c.GPU = arcB60()
	} else if i := slices.IndexFunc(gpus, func(g catalog.GPU) bool { return g.Name == name }); i >= 0 {
		c.GPU = gpus[i]
	} else {
		t.Fatalf("row %d: no GPU %q", r.line, f["gpu"])
	}
	model := f["model"]
	if _, after, ok := strings.Cut(model, "/"); ok {
		model = after
	}
	i := slices.IndexFunc(models, func(m catalog.Model) bool { return m.ID == publishedModels[model] })
	if i < 0 {
		t.Fatalf("row %d: no model %q", r.line, f["model"])
	}
	c.Model = models[i]

	c.TP, c.PP, ranks = 1, 1, 1
	if n, ok := strings.CutPrefix(f["tp"], "DEP"); ok {
		d, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		c.DP, c.ExpertParallel, ranks = d, true, float64(d)
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

// lengths returns prompt and output tokens; the ShareGPT runs without lengths
// have none.
func (r result) lengths() (isl, osl float64) { return r.num("isl"), r.num("osl") }

// bound returns the ideal ceiling of output tokens per second: at the row's
// batch, or without one at any batch that the GPUs' memory could hold if all of
// it were weights and cache.
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

// impossible are the rows that no ceiling can hold, by line, each with its
// reason: physically impossible, or gained by speculation. The file as it stands
// has none.
var impossible = map[int]string{}

// Nothing that was published lies above the ideal ceiling.
func TestPublishedBelowIdeal(t *testing.T) {
	for _, r := range published(t) {
		if why, ok := impossible[r.line]; ok {
			t.Logf("%v  skipped: %s", r, why)
			continue
		}
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
			isl, _ := r.lengths()
			ideal := c.Step(Point{Batch: b / ranks, Context: isl}).Ideal.Total()
			if itl < ideal {
				t.Errorf("row %d: %.2f ms between tokens is below the ideal step of %.2f ms", r.line, itl*1e3, ideal*1e3)
			}
		}
	}
}

// The achievable step predicts what vLLM reached in decode: rows with a batch
// and a time between tokens.
func TestPublishedDecodeNearAchievable(t *testing.T) {
	var dense, moe []float64
	for _, r := range published(t) {
		itl, b := r.num("tpot_or_itl_ms")/1000, r.num("concurrency_or_batch")
		if itl == 0 || b == 0 || r.fields["engine"] != "vLLM" {
			continue
		}
		c, _ := r.config(t)
		isl, osl := r.lengths()
		p := Point{Batch: b, Context: isl + osl/2, Tokens: b}
		if isl == 0 {
			p.Context = 0 // the intercept of a published line
		}
		got := c.Step(p).Achievable.Total()
		e := got/itl - 1
		t.Logf("%v  measured %6.2f ms, achievable %6.2f ms %+5.0f %%", r, itl*1e3, got*1e3, 100*e)
		if c.Model.Experts > 0 {
			moe = append(moe, math.Abs(e))
		} else {
			dense = append(dense, math.Abs(e))
		}
	}
	slices.Sort(dense)
	slices.Sort(moe)
	t.Logf("dense: %d rows, median %.0f %%, worst %.0f %%; MoE: %d rows, median %.0f %%, worst %.0f %%",
		len(dense), 100*dense[len(dense)/2], 100*dense[len(dense)-1], len(moe), 100*moe[len(moe)/2], 100*moe[len(moe)-1])
	if m := dense[len(dense)/2]; m > 0.20 {
		t.Errorf("median error of dense vLLM decode = %.0f %%, want at most 20 %%", 100*m)
	}
}
