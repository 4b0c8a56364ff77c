//go:build e2e && linux

package main_test

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

// workload is a load with a bad start and the grid of settings in which its best is searched.
type workload struct {
	name string
	load loadgen.Load
	// bad are the flags at the start of the search.
	bad []string
	// grid lists the values of each flag, which are tried in all combinations; "" leaves the flag
	// out, "on" is the flag without a value.
	grid []axis
}

type axis struct {
	flag   string
	values []string
}

// workloads are those of issue 6, others that the search was not tuned for, and two faults at once.
// docs/measurements.md has the results.
func workloads() []workload {
	return []workload{
		{
			name: "short-chat",
			load: loadgen.Load{Clients: 32, PromptTokens: loadgen.Fixed(100), OutputTokens: loadgen.Fixed(64), Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 1},
			bad:  []string{"--max-num-seqs", "4"},
			grid: []axis{
				{"--max-num-seqs", []string{"8", "16", "32", "64"}},
				{"--max-num-batched-tokens", []string{"", "512", "4096"}},
			},
		},
		{
			name: "long-outputs",
			load: loadgen.Load{Clients: 32, PromptTokens: loadgen.Fixed(200), OutputTokens: loadgen.Fixed(400), Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 2},
			bad:  []string{"--num-gpu-blocks-override", "64", "--max-num-seqs", "128"},
			grid: []axis{
				{"--num-gpu-blocks-override", []string{"64", "128", "256", ""}},
				{"--max-num-seqs", []string{"12", "24", "32"}},
			},
		},
		{
			name: "shared-prefix",
			load: loadgen.Load{
				Clients: 16, PromptTokens: loadgen.Between(860, 1000), OutputTokens: loadgen.Fixed(32), SharedPrefixTokens: 768,
				Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 3,
			},
			bad: []string{"--max-num-seqs", "16", "--no-enable-prefix-caching"},
			grid: []axis{
				{"--no-enable-prefix-caching", []string{"", "on"}},
				{"--max-num-seqs", []string{"8", "16", "32"}},
				{"--max-num-batched-tokens", []string{"", "1024"}},
			},
		},
		// Two faults at once.
		{
			name: "pair-slots-caching",
			load: loadgen.Load{
				Clients: 20, PromptTokens: loadgen.Fixed(480), OutputTokens: loadgen.Fixed(20), SharedPrefixTokens: 440,
				Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 5,
			},
			bad: []string{"--max-num-seqs", "5", "--no-enable-prefix-caching"},
			grid: []axis{
				{"--no-enable-prefix-caching", []string{"", "on"}},
				{"--max-num-seqs", []string{"5", "24"}},
			},
		},
		{
			name: "pair-slots-pool",
			load: loadgen.Load{Clients: 28, PromptTokens: loadgen.Fixed(80), OutputTokens: loadgen.Fixed(160), Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 6},
			bad:  []string{"--num-gpu-blocks-override", "40", "--max-num-seqs", "5"},
			grid: []axis{
				{"--num-gpu-blocks-override", []string{"40", ""}},
				{"--max-num-seqs", []string{"5", "16", "32"}},
			},
		},
		{
			name: "pair-slots-budget",
			load: loadgen.Load{Clients: 24, PromptTokens: loadgen.Fixed(350), OutputTokens: loadgen.Fixed(60), Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 7},
			bad:  []string{"--max-num-batched-tokens", "128", "--max-num-seqs", "4"},
			grid: []axis{
				{"--max-num-batched-tokens", []string{"128", ""}},
				{"--max-num-seqs", []string{"4", "12", "24"}},
			},
		},
		{
			name: "pair-pool-caching",
			load: loadgen.Load{
				Clients: 16, PromptTokens: loadgen.Fixed(600), OutputTokens: loadgen.Fixed(40), SharedPrefixTokens: 512,
				Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 8,
			},
			bad: []string{"--num-gpu-blocks-override", "24", "--no-enable-prefix-caching", "--max-model-len", "1024"}, // 24 blocks hold less than the model's own length
			grid: []axis{
				{"--num-gpu-blocks-override", []string{"24", ""}},
				{"--no-enable-prefix-caching", []string{"", "on"}},
			},
		},
	}
}

// cell is one setting of a grid.
type cell []string

// cells returns a grid's settings as flags, with those of the bad start that are not in the grid.
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
