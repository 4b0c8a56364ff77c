package perf_test

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// TestPublished compares decode steps with what others measured: rows of the
// field data that state model, GPU, batch and time between tokens. Each is a
// plain decode step of the batch in the middle of its answers.
func TestPublished(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "..", "..", "..", "..", "shared", "data", "published-results.csv"))
	if err != nil {
		t.Skip("NOT CHECKED against published decode times: the field data is not beside this checkout")
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var off []float64
	seen := map[string]bool{}
	for _, record := range rows[1:] {
		row := map[string]string{}
		for i, name := range rows[0] {
			row[name] = record[i]
		}
		argv, work, ok := decodeRow(row)
		key := strings.Join(argv, " ") + row["concurrency_or_batch"] + row["isl"]
		if !ok || seen[key] {
			continue
		}
		s, err := settings.Parse(argv, nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "not simulated: ") { // as gpt-oss with its sliding windows is not
				t.Errorf("%s: %v", key, err)
			}
			continue
		}
		seen[key] = true
		m, err := perf.New(s)
		if err != nil {
			t.Fatal(err)
		}
		b := batch(work.batch, work.context)
		got := m.Step(&b).Total * 1e3
		off = append(off, math.Abs(got/work.ms-1))
		t.Logf("%-24s %-22s TP %d %-5s batch %2d context %6d: %6.2f ms, measured %6.2f (%+.0f %%, %s)", row["model"], s.GPU.Name, s.TensorParallel,
			s.WeightDType, work.batch, work.context, got, work.ms, 100*(got/work.ms-1), row["engine"])
		within(t, row["model"]+" on "+row["gpu"], got, work.ms, 0.30)
	}
	if len(off) < 15 {
		t.Fatalf("only %d rows were compared: the field data or their columns changed", len(off))
	}
	slices.Sort(off)
	t.Logf("%d rows, median %.1f %% off, worst %.0f %%", len(off), 100*off[len(off)/2], 100*off[len(off)-1])
	if median := off[len(off)/2]; median > 0.12 {
		t.Errorf("median %.1f %% off, at most 12 %% allowed", 100*median)
	}
}

type decodeWork struct {
	batch, context int
	ms             float64
}

// decodeRow reads a row whose time between tokens is that of a decode step.
func decodeRow(row map[string]string) ([]string, decodeWork, bool) {
	number := func(name string) int { n, _ := strconv.Atoi(row[name]); return n }
	w := decodeWork{batch: number("concurrency_or_batch"), context: number("isl") + number("osl")/2}
	w.ms, _ = strconv.ParseFloat(row["tpot_or_itl_ms"], 64)
	if static := strings.HasPrefix(row["notes"], "static batch"); w.ms == 0 && static && number("osl") >= 2048 && number("isl") <= 128 {
		// A static batch that decodes almost all the time.
		perSecond, _ := strconv.ParseFloat(row["output_tok_s_total"], 64)
		w.ms = 1e3 * float64(w.batch) / perSecond
	}
	engine := slices.Contains([]string{"vLLM", "gpt-fast", "LMDeploy TurboMind"}, row["engine"])
	if !engine || w.batch == 0 || w.batch > 64 || w.ms == 0 {
		return nil, w, false
	}
	gpu := row["gpu"]
	switch gpu { // names that leave the board open
	case "H100":
		gpu = "H100 SXM"
	case "A100 80GB":
		gpu = "A100-SXM4-80GB"
	}
	argv := []string{row["model"], "--sim-gpu", gpu, "-tp", row["tp"], "--sim-dialect", "0.32"}
	if row["engine"] == "vLLM" && strings.HasPrefix(row["engine_version"], "0.11") {
		argv[6] = "0.11"
	}
	switch row["dtype"] {
	case "bf16", "fp16":
	case "int8":
		argv = append(argv, "--quantization", "int8_per_channel_weight_only")
	default:
		return nil, w, false
	}
	if row["kv_dtype"] == "fp8" {
		argv = append(argv, "--kv-cache-dtype", "fp8")
	}
	return argv, w, true
}
