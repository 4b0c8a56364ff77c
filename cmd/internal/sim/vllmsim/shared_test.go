package vllmsim_test

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// fieldData returns a file of the field data beside the checkout, which is not part
// of the project.
func fieldData(t *testing.T, path ...string) string {
	t.Helper()
	name := filepath.Join(append([]string{"..", "..", "..", "..", "..", "shared", "data"}, path...)...)
	body, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("NOT CHECKED against %s: the field data is not beside this checkout", filepath.Join(path...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// mark has the additional lines of every page of a simulated server.
var mark = []string{
	"+# HELP sim_info A simulated server: neither a GPU nor a model is behind these numbers.",
	"+# TYPE sim_info gauge",
}

// typed matches the comment that names a family and its type.
var typed = regexp.MustCompile(`(?m)^# TYPE (vllm:\S+) (\S+)$`)

// TestFamiliesOfTheReleases compares with the families that the packages of vLLM
// create somewhere. The dialects are those of the first patch of a minor release,
// the list that of the last.
func TestFamiliesOfTheReleases(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(fieldData(t, "vllm-families.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	// Features that are not simulated, and families that need LoRA or an option.
	unsimulated := regexp.MustCompile(`^vllm:(spec_decode|nixl|hf3fs|kv_block|kv_offload|hisparse|mooncake)_|^vllm:(lora_requests_info|corrupted_requests|num_requests_kv_fetch_by_stage|watermark_requests)$`)
	tests := []struct {
		dialect, patch string
		missing        []string // what came within the minor release, and what is hidden
	}{
		{"0.10", "0.10.2", []string{"vllm:inter_token_latency_seconds"}},
		{"0.11", "0.11.2", []string{
			"vllm:engine_sleep_state", "vllm:external_prefix_cache_hits", "vllm:external_prefix_cache_queries",
			"vllm:gpu_cache_usage_perc", "vllm:gpu_prefix_cache_hits", "vllm:gpu_prefix_cache_queries",
			"vllm:mm_cache_hits", "vllm:mm_cache_queries",
		}},
		{"0.20", "0.20.2", nil},
		{"0.32", "0.32.0", nil},
	}
	for _, tt := range tests {
		t.Run(tt.dialect, func(t *testing.T) {
			listed := map[string]string{} // type by name on the wire
			source := map[string]string{} // name in the source
			for _, row := range rows[1:] {
				name, core, kind, first, last := row[0], row[1], row[2], row[3], row[4]
				if core != "v1" || older(tt.patch, first) || older(last, tt.patch) {
					continue
				}
				wire := name
				if kind == "counter" {
					wire = strings.TrimSuffix(name, "_total") + "_total"
				}
				listed[wire], source[wire] = kind, name
			}
			ours := map[string]string{}
			body := write(vllmsim.NewBook(tiny(func(s *settings.Settings) { s.Release = tt.dialect }), vllmsim.Cache{}, start))
			for _, m := range typed.FindAllStringSubmatch(body, -1) {
				if !strings.HasSuffix(m[1], "_created") {
					ours[m[1]] = m[2]
				}
			}
			// The list has the families that the metrics' logger names literally; it builds this name from words.
			delete(ours, "vllm:cache_config_info")
			var missing, extra []string
			for wire, kind := range listed {
				got, ok := ours[wire]
				if !ok && !unsimulated.MatchString(source[wire]) {
					missing = append(missing, source[wire])
				} else if ok && got != kind {
					t.Errorf("%s is a %s, want a %s", wire, got, kind)
				}
			}
			for wire := range ours {
				if _, ok := listed[wire]; !ok {
					extra = append(extra, wire)
				}
			}
			slices.Sort(missing)
			slices.Sort(extra)
			if d := cmp.Diff(tt.missing, missing); d != "" {
				t.Errorf("families missing on our page (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string(nil), extra); d != "" {
				t.Errorf("families only on our page (-want +got):\n%s", d)
			}
		})
	}
}

// older compares releases of three numbers.
func older(a, b string) bool {
	pad := func(v string) string {
		parts := strings.Split(v, ".")
		for i, p := range parts {
			parts[i] = strings.Repeat("0", 4-len(p)) + p
		}
		return strings.Join(parts, ".")
	}
	return pad(a) < pad(b)
}
