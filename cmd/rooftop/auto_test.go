package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// tuneFlags parses a command line of tune without running it.
func tuneFlags(t *testing.T, env []string, args ...string) (*tuneOptions, error) {
	t.Helper()
	var o tuneOptions
	c := newTuneOf(&cli.World{Env: variables(env...)}, &o)
	if err := c.ParseFlags(args); err != nil {
		return nil, err
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return nil, err
	}
	if err := cli.FromEnvironment(c.Flags(), o.Env); err != nil {
		return nil, err
	}
	return &o, o.check()
}

// program creates an executable file.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "apply.sh")
	must(t, programtest.Write(path, []byte("#!/bin/sh\n")))
	return path
}

func TestFlagsOfTuneAreParsed(t *testing.T) {
	hook := program(t)
	for _, c := range []struct {
		name string
		args string
		is   func(o *tuneOptions) any
		want any
	}{
		{"nothing is by hand", "", func(o *tuneOptions) any { return o.auto.Mode() }, autopilot.ModeNone},
		{"five restarts", "", func(o *tuneOptions) any { return o.auto.Limits() }, loop.Limits{Restarts: 5}},
		{"three per cent", "", func(o *tuneOptions) any { return o.goal.Precision }, 0.03},
		{"per cent with a sign", "--precision 2%", func(o *tuneOptions) any { return o.goal.Precision }, 0.02},
		{"a share", "--precision 0.05", func(o *tuneOptions) any { return o.goal.Precision }, 0.05},
		{"a number of per cent", "--precision 4", func(o *tuneOptions) any { return o.goal.Precision }, 0.04},
		{"objectives", "--slo ttft_p99=500ms --slo itl_mean=0.06s", func(o *tuneOptions) any { return o.goal.Objectives }, []verdict.Objective{
			{Name: "ttft_p99", Metric: verdict.MetricTTFT, Quantile: 0.99, Limit: 0.5},
			{Name: "itl_mean", Metric: verdict.MetricITL, Limit: 0.06},
		}},
		{"flags in any spelling", "--auto --allow-flags max_num_seqs,--block-size,max-num-seqs", func(o *tuneOptions) any { return o.auto.Limits().Allow },
			[]string{"--max-num-seqs", "--block-size"}},
		{"the longest measurement is at least as long as the first look", "--duration 10m", func(o *tuneOptions) any { return o.goal.Longest }, 10 * time.Minute},
		{"a command", "--auto -- vllm serve Qwen/Qwen3-8B --max-num-seqs 4", func(o *tuneOptions) any { return o.auto.Launch.String() },
			"vllm serve Qwen/Qwen3-8B --max-num-seqs 4"},
		{"a command is a mode", "-- vllm serve m", func(o *tuneOptions) any { return o.auto.Mode() }, autopilot.ModeExec},
		{"in place", "--auto --restart-in-place", func(o *tuneOptions) any { return o.auto.Mode() }, autopilot.ModeAttach},
		{"a hook", "--apply-cmd " + hook, func(o *tuneOptions) any { return o.auto.Mode() }, autopilot.ModeHook},
		{"a dry run needs no mode", "--dry-run", func(o *tuneOptions) any { return o.auto.Unattended() }, true},
		{"time to stop it, on the screen", "--auto", func(o *tuneOptions) any { return o.auto.Pause(true) }, 10 * time.Second},
		{"none in a log", "--auto", func(o *tuneOptions) any { return o.auto.Pause(false) }, time.Duration(0)},
		{"as told", "--auto --countdown 0s", func(o *tuneOptions) any { return o.auto.Pause(true) }, time.Duration(0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := tuneFlags(t, nil, strings.Fields(c.args)...)
			must(t, err)
			if diff := cmp.Diff(c.want, c.is(o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A variable may apply to all runs of a user: it limits automatic runs, and is not an error for
// others.
func TestVariablesBoundRunsWithoutKeys(t *testing.T) {
	env := []string{"ROOFTOP_MAX_RESTARTS", "3", "ROOFTOP_SLO", "itl_p99=60ms"}
	o, err := tuneFlags(t, env)
	must(t, err)
	want := loop.Limits{Restarts: 3}
	if diff := cmp.Diff(want, o.auto.Limits()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(o.goal.Objectives) != 1 {
		t.Errorf("objectives %v", o.goal.Objectives)
	}
	if o, err = tuneFlags(t, env, "--auto", "--max-restarts", "7"); err != nil || o.auto.MaxRestarts != 7 {
		t.Errorf("--max-restarts %d (%v), want the command line's", o.auto.MaxRestarts, err)
	}
}
