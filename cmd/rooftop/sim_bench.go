package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/scenarios"
)

// benchOptions are the flags of sim bench.
type benchOptions struct {
	json, verbose, list, predictions bool
	seed                             uint64
	hours                            float64
	files                            []string
	random, pairs                    int
}

func newSimBench(w *cli.World) *cobra.Command {
	var o benchOptions
	c := newCommand("sim-bench", nil, func(c *cobra.Command, names []string) error {
		if c.Flags().Changed("random") && o.random == 0 {
			return cli.Usagef("sim bench: --random 0: give 1 to %d", maxRandom)
		}
		return o.run(c.Context(), w, names)
	})
	c.Annotations = map[string]string{ownFlags: "--hours of tune is another one"}
	g := cli.GroupFlags(c)
	f := g.Group("What is run")
	f.BoolVar(&o.list, "list", false, "list the scenarios with their stories, and run nothing")
	f.StringArrayVar(&o.files, "file", nil, "take the scenarios of a YAML `FILE` instead of the library's (repeatable)")
	f.IntVar(&o.random, "random", 0, "instead of scenarios, test recommendations on `N` random servers and loads")
	f.IntVar(&o.pairs, "pairs", 0, "tune servers with two faults at once, `N` of each pair, and compare with the best of a grid")
	f.BoolVar(&o.predictions, "predictions", false, "score what rooftop predicts of its own recommendations")
	f.Uint64Var(&o.seed, "seed", 1, "the `SEED` of server and load")
	f.Float64Var(&o.hours, "hours", 0, "measure for `H` hours of the server's time instead of the scenario's own")
	f = g.Group("The report")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "every finding, and every expectation with its figures")
	f.BoolVar(&o.json, "json", false, "print JSON")
	g.Done()
	return c
}

// run lists, runs or scores the selected scenarios.
func (o *benchOptions) run(ctx context.Context, w *cli.World, names []string) error {
	if o.pairs != 0 {
		return o.tunePairs(ctx, w, names)
	}
	chosen, err := o.choose(names)
	if err != nil {
		return cli.Usagef("sim bench: %w", err)
	}
	switch {
	case o.list:
		return listCases(w, chosen, o.json)
	case !(o.hours >= 0 && o.hours <= 1000):
		return cli.Usagef("sim bench: --hours %v: give 0 to 1000", o.hours)
	}
	progress := cli.NewProgress(w, &cli.Output{})
	if o.predictions {
		err = o.score(ctx, w, progress, chosen, o.random == 0 && len(names)+len(o.files) == 0)
	} else {
		err = o.bench(ctx, w, progress, chosen)
	}
	if ended := cli.SignalCode(ctx); ended != 0 {
		return cli.Exit(ended)
	}
	return err
}

// bench runs scenarios and prints the results.
func (o *benchOptions) bench(ctx context.Context, w *cli.World, progress *cli.Progress, list []scenarios.Scenario) error {
	shown := 0
	rows, err := bench.Bench(ctx, list, bench.Options{Seed: o.seed, Hours: o.hours}, func(r *bench.Row) {
		shown++
		progress.Show(fmt.Sprintf("%d of %d: %s", shown, len(list), r.Scenario.Name))
	})
	progress.Done()
	if err != nil || ctx.Err() != nil {
		return err
	}
	switch {
	case o.json:
		err = bench.WriteJSON(w.Stdout, rows)
	case o.random > 0:
		err = bench.WriteCensus(w.Stdout, rows, o.verbose)
	default:
		err = bench.WriteTable(w.Stdout, rows, o.verbose)
	}
	if err == nil && o.random == 0 && slices.ContainsFunc(rows, func(r bench.Row) bool { return r.Surprising() }) {
		return cli.Exit(cli.ExitError)
	}
	return err
}

// tunePairs tunes servers with two faults, and prints where the runs ended.
func (o *benchOptions) tunePairs(ctx context.Context, w *cli.World, names []string) error {
	switch {
	case o.pairs < 1 || o.pairs > maxRandom:
		return cli.Usagef("sim bench: --pairs %d: give 1 to %d", o.pairs, maxRandom)
	case len(names)+len(o.files)+o.random > 0 || o.predictions || o.list || o.json || o.hours != 0:
		return cli.Usagef("sim bench: --pairs goes with --seed and --verbose alone")
	}
	progress := cli.NewProgress(w, &cli.Output{})
	list := bench.Pairs(o.seed, o.pairs)
	rows, err := bench.ScorePairs(ctx, list, func(n int) { progress.Show(fmt.Sprintf("%d of %d servers", n, len(list))) })
	progress.Done()
	if ended := cli.SignalCode(ctx); ended != 0 {
		return cli.Exit(ended)
	}
	if err == nil {
		err = bench.WritePairs(w.Stdout, rows, o.verbose)
	}
	if err == nil && bench.UnreachedPairs(rows) {
		return cli.Exit(cli.ExitError)
	}
	return err
}

// score scores predictions. standard adds variants and random servers.
func (o *benchOptions) score(ctx context.Context, w *cli.World, progress *cli.Progress, list []scenarios.Scenario, standard bool) error {
	const worst = 15
	var cases []bench.Case
	if standard {
		cases = bench.Cases(list, o.seed)
	} else {
		for _, sc := range list {
			cases = append(cases, bench.Case{Scenario: sc, Seed: o.seed})
		}
	}
	told, err := bench.ScorePredictions(ctx, cases, bench.Options{Hours: o.hours}, func(n int) {
		progress.Show(fmt.Sprintf("%d of %d servers", n, len(cases)))
	})
	progress.Done()
	if err != nil || ctx.Err() != nil {
		return err
	}
	return bench.WritePredictions(w.Stdout, told, worst, o.verbose)
}

const (
	maxScenarioFile = 1 << 20 // bytes of a user's scenario file
	maxRandom       = 100_000
)

// choose returns the scenarios selected by flags and names.
func (o *benchOptions) choose(words []string) ([]scenarios.Scenario, error) {
	switch {
	case o.random < 0 || o.random > maxRandom:
		return nil, fmt.Errorf("--random %d: give 1 to %d", o.random, maxRandom)
	case o.random > 0 && len(o.files)+len(words) > 0:
		return nil, errors.New("--random takes neither a NAME nor --file")
	case o.random > 0:
		list := make([]scenarios.Scenario, o.random)
		for i := range list {
			list[i] = bench.Random(o.seed, i)
		}
		return list, nil
	case len(o.files) == 0:
		return selectScenarios(words...)
	}
	var all []scenarios.Scenario
	for _, name := range o.files {
		text, err := cli.ReadFile(name, maxScenarioFile)
		if err != nil {
			return nil, err
		}
		list, err := scenarios.Parse(name, text)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return scenarios.Among(all, words...)
}

func listCases(w *cli.World, list []scenarios.Scenario, asJSON bool) error {
	if asJSON {
		type entry struct {
			Name    string  `json:"name"`
			Case    string  `json:"case"`
			Story   string  `json:"story"`
			Server  string  `json:"server"`
			GPU     string  `json:"gpu"`
			Seconds float64 `json:"measured_s"`
		}
		out := []entry{}
		for _, s := range list {
			out = append(out, entry{s.Name, s.Case, s.Story, s.Server, s.GPU, s.Measure.For.Seconds()})
		}
		return cli.Document(w.Stdout, out)
	}
	last := ""
	for _, s := range list {
		if name := s.CaseName(); name != last {
			fmt.Fprintf(w.Stdout, "%s %s: %s\n", s.Case, name, s.Story)
			last = name
		}
		fmt.Fprintf(w.Stdout, "  %-34s %s, measured %v after %v\n", s.Name, s.GPU, s.Measure.For.Round(time.Second), s.Measure.After.Round(time.Second))
	}
	return nil
}
