package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// maxSimFile limits the size of files named by flags of a simulated server.
const maxSimFile = 8 << 20

func newSim(w *cli.World) *cobra.Command {
	c := newCommand("sim", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			return c.Help()
		}
		words, named, err := withScenario(args)
		if err != nil {
			return err
		}
		if named && w.Replace != nil {
			// Replace the process so that its command line has the flags in use.
			w.Replace(append([]string{c.Name()}, words...))
		}
		return sim(c.Context(), w, words)
	})
	// The flags are vLLM's, and are parsed as vLLM does.
	c.DisableFlagParsing = true
	c.DisableFlagsInUseLine = true
	cli.GroupFlags(c) // for its usage: cobra does not know the flags
	return c
}

// sim runs a simulated server until a signal ends it.
func sim(ctx context.Context, w *cli.World, args []string) error {
	s, err := simSettings(w, args)
	if err != nil {
		return err
	}
	host, err := vllmsim.Open(s)
	if err != nil {
		return err
	}
	// However the wait below ends, clean up.
	defer host.Close(context.WithoutCancel(ctx), false)
	describe(w, host)
	if err := host.Ready(ctx); err != nil {
		if ended := cli.SignalCode(ctx); ended != 0 {
			return cli.Exit(ended)
		}
		return err
	}
	fmt.Fprintf(w.Stderr, "ready on %s\n", host.URL())
	if err := host.Wait(ctx); err != nil {
		return err
	}
	fmt.Fprintln(w.Stderr, "stopping: requests under way may end; a second signal ends them")
	host.Close(context.WithoutCancel(ctx), true)
	return cli.Exit(cli.SignalCode(ctx))
}

// simSettings parses the command line of a simulated server.
func simSettings(w *cli.World, args []string) (*settings.Settings, error) {
	s, err := settings.Parse(args, func(path string) ([]byte, error) { return cli.ReadFile(path, maxSimFile) })
	if err != nil {
		return nil, cli.Usagef("sim: %w; see 'rooftop sim --help'", err)
	}
	if key, ok := w.Env("VLLM_API_KEY"); ok && s.APIKey == "" {
		s.APIKey = key
	}
	return s, nil
}

// describe prints a description of the simulation before the server is up.
func describe(w *cli.World, host *vllmsim.Host) {
	s, pool := host.Settings(), host.Sizing()
	fmt.Fprintf(w.Stderr, "SIMULATED vLLM %s: no model is loaded and no GPU computes; times come from a model of the hardware\n", s.Release)
	row := func(name, format string, a ...any) {
		fmt.Fprintf(w.Stderr, "  %-6s %s\n", name, fmt.Sprintf(format, a...))
	}
	row("model", "%s, %.3g B parameters, %s weights, %s KV cache", s.ModelName, s.Model.TotalParams/1e9, s.WeightDType, s.KVDType)
	row("GPU", "%d × %s, simulated (TP %d, DP %d)", s.TensorParallel*s.DataParallel, s.GPU.Name, s.TensorParallel, s.DataParallel)
	tokens := (pool.NumBlocks - 1) * s.BlockSize
	row("KV", "%d blocks of %d tokens a rank: %d tokens, %.1f × max_model_len %d", pool.NumBlocks, s.BlockSize, tokens, pool.MaxConcurrency, s.MaxModelLen)
	row("slots", "%d a rank, %d tokens a step", s.MaxNumSeqs, s.MaxNumBatchedTokens)
	for _, note := range s.Notes {
		row("note", "%s", note)
	}
	if s.Scale != 1 {
		row("note", "%s simulated seconds pass in a second: rates by the wall clock are as many times too high", strconv.FormatFloat(s.Scale, 'g', -1, 64))
	}
	if left := host.StartsIn(); left > 0 {
		fmt.Fprintf(w.Stderr, "starting: up in %v (--sim-startup-time 0 skips this)\n", left.Round(100*time.Millisecond))
	}
}
