package vllmsim_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// differences returns the lines in which two pages differ, in order, marked with
// - those that only the real one has, with + those that only ours has.
func differences(real, ours []string) []string {
	// common[i][j] is the length of the longest common run of lines, in order, of
	// what follows line i of the one and line j of the other.
	common := make([][]int, len(real)+1)
	for i := range common {
		common[i] = make([]int, len(ours)+1)
	}
	for i := len(real) - 1; i >= 0; i-- {
		for j := len(ours) - 1; j >= 0; j-- {
			if real[i] == ours[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var d []string
	i, j := 0, 0
	for i < len(real) || j < len(ours) {
		switch {
		case i < len(real) && j < len(ours) && real[i] == ours[j]:
			i, j = i+1, j+1
		case j == len(ours) || i < len(real) && common[i+1][j] >= common[i][j+1]:
			d = append(d, "-"+real[i])
			i++
		default:
			d = append(d, "+"+ours[j])
			j++
		}
	}
	return d
}

func TestPageIsTheRealOneLineByLine(t *testing.T) {
	tests := []struct {
		name     string
		recorded string
		change   func(*settings.Settings)
		http     []string // paths in order of their first answer
	}{
		{name: "young", recorded: "vllm-0.32.0-cpu-young.txt.gz"},
		{name: "loaded", recorded: "vllm-0.32.0-cpu-loaded.txt.gz", http: []string{"/v1/completions"}},
		{name: "two engines", recorded: "vllm-0.32.0-cpu-dp2.txt.gz", http: []string{"/v1/completions"},
			change: func(s *settings.Settings) { s.DataParallel = 2 }},
		{name: "statistics off", recorded: "vllm-0.32.0-cpu-stats-off.txt.gz", http: []string{"/v1/completions"},
			change: func(s *settings.Settings) { s.LogStats = false }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			real := shape(realPage(t, tt.recorded))
			b := vllmsim.NewBook(tiny(tt.change), vllmsim.Cache{NumBlocks: 1024, SizeTokens: 131072, MaxConcurrency: 32}, start)
			for _, h := range tt.http {
				b.HTTP(h, 200)
			}
			ours := shape(write(b))
			want := slices.Concat(mark, []string{`+sim_info{gpu="NVIDIA L4",release="0.32",scenario="",seed="0",time_scale="1"}`})
			if d := cmp.Diff(want, differences(real, ours)); d != "" {
				t.Errorf("differences from the real page (-want +got):\n%s", d)
			}
		})
	}
}

// TestMultiprocessPageLineByLine compares with pages that the logger of 0.32.0 and
// prometheus_client wrote in multiprocess mode, without a server, for two engines
// of which one had a step.
func TestMultiprocessPageLineByLine(t *testing.T) {
	for _, name := range []string{"young", "used"} {
		t.Run(name, func(t *testing.T) {
			real := byKind(shape(unzip(t, filepath.Join("testdata", "vllm-0.32.0-multiprocess-"+name+".txt.gz"))))
			b := vllmsim.NewBook(tiny(func(s *settings.Settings) {
				s.DataParallel, s.APIServers, s.Argv = 2, 2, []string{"--block-size=128"}
			}), vllmsim.Cache{NumBlocks: 1024, SizeTokens: 131072, MaxConcurrency: 32}, start)
			write(b)
			if name == "used" {
				b.Observe(0, &core.Report{State: core.State{Running: 3}})
				b.HTTP("/v1/completions", 200)
			}
			want := slices.Concat(mark, []string{`+sim_info{gpu="NVIDIA L4",release="0.32",scenario="",seed="0",time_scale="1"}`})
			if d := cmp.Diff(want, differences(real, byKind(shape(write(b))))); d != "" {
				t.Errorf("differences from the real page (-want +got):\n%s", d)
			}
		})
	}
}

// byKind sorts the families of a multiprocess page by kind and keeps the order within each kind: which kind comes
// first is the order of a directory, which varies.
func byKind(lines []string) []string {
	var families [][]string
	for _, l := range lines {
		if strings.HasPrefix(l, "# HELP ") {
			families = append(families, nil)
		}
		last := len(families) - 1
		families[last] = append(families[last], l)
	}
	kind := func(f []string) string { return f[1][strings.LastIndexByte(f[1], ' '):] }
	slices.SortStableFunc(families, func(a, b []string) int { return strings.Compare(kind(a), kind(b)) })
	return slices.Concat(families...)
}

func TestLabelsAreEscaped(t *testing.T) {
	body := write(vllmsim.NewBook(tiny(func(s *settings.Settings) { s.Served = []string{"a\"b\\c\nd"} }), vllmsim.Cache{}, start))
	if want := `model_name="a\"b\\c\nd"`; !strings.Contains(body, want) {
		t.Errorf("the page lacks %s", want)
	}
}
