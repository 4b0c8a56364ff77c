//go:build proof && e2e && linux

package main_test

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
)

// workload is a load with a bad start and the grid of settings that its best is
// looked for in.
type workload struct {
	name string
	load probe.Load
	// bad are the flags that the search starts from.
	bad []string
	// grid lists, for each flag, the values that are tried with all of the others;
	// "" leaves the flag out, a value of "on" is the bare flag.
	grid []axis
}

type axis struct {
	flag   string
	values []string
}

// workloads are those of issue 6 and some beside, which the search was never fitted
// to. vllm.md section 7.2 has what the first three come to.
func workloads() []workload {
	return []workload{
		{
			name: "short-chat",
			load: probe.Load{Clients: 32, PromptTokens: probe.Fixed(100), OutputTokens: probe.Fixed(64), Style: probe.Characters, Stagger: 2 * time.Second, Seed: 1},
			bad:  []string{"--max-num-seqs", "4"},
			grid: []axis{
				{"--max-num-seqs", []string{"8", "16", "32", "64"}},
				{"--max-num-batched-tokens", []string{"", "512", "4096"}},
			},
		},
		{
			name: "long-outputs",
			load: probe.Load{Clients: 32, PromptTokens: probe.Fixed(200), OutputTokens: probe.Fixed(400), Style: probe.Characters, Stagger: 2 * time.Second, Seed: 2},
			bad:  []string{"--num-gpu-blocks-override", "64", "--max-num-seqs", "128"},
			grid: []axis{
				{"--num-gpu-blocks-override", []string{"64", "128", "256", ""}},
				{"--max-num-seqs", []string{"12", "24", "32"}},
			},
		},
		{
			name: "shared-prefix",
			load: probe.Load{
				Clients: 16, PromptTokens: probe.Between(860, 1000), OutputTokens: probe.Fixed(32), SharedPrefixTokens: 768,
				Style: probe.Characters, Stagger: 2 * time.Second, Seed: 3,
			},
			bad: []string{"--max-num-seqs", "16", "--no-enable-prefix-caching"},
			grid: []axis{
				{"--no-enable-prefix-caching", []string{"", "on"}},
				{"--max-num-seqs", []string{"8", "16", "32"}},
				{"--max-num-batched-tokens", []string{"", "1024"}},
			},
		},
		{
			name: "mixed-lengths",
			load: probe.Load{
				Clients: 24, PromptTokens: probe.LognormalMean(250, 0.8, 1200), OutputTokens: probe.LognormalMean(120, 0.7, 500),
				Style: probe.Characters, Stagger: 2 * time.Second, Seed: 4,
			},
			bad: []string{"--max-num-seqs", "6", "--max-num-batched-tokens", "256", "--max-model-len", "2048"},
			grid: []axis{
				{"--max-num-seqs", []string{"6", "12", "24", "48"}},
				{"--max-num-batched-tokens", []string{"256", "1024", "4096"}},
			},
		},
	}
}

// cell is one setting of a grid.
type cell []string

// cells lists a grid's settings as flags, beside those of the bad start that no
// axis moves.
func (w *workload) cells() []cell {
	moved := map[string]bool{}
	for _, a := range w.grid {
		moved[a.flag] = true
	}
	var fixed cell
	for i := 0; i < len(w.bad); i++ {
		flag := w.bad[i]
		bare := i+1 == len(w.bad) || w.bad[i+1][0] == '-'
		if !moved[flag] {
			fixed = append(fixed, flag)
			if !bare {
				fixed = append(fixed, w.bad[i+1])
			}
		}
		if !bare {
			i++
		}
	}
	out := []cell{fixed}
	for _, a := range w.grid {
		var next []cell
		for _, c := range out {
			for _, v := range a.values {
				one := append(cell{}, c...)
				switch v {
				case "":
				case "on":
					one = append(one, a.flag)
				default:
					one = append(one, a.flag, v)
				}
				next = append(next, one)
			}
		}
		out = next
	}
	return out
}
