package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/simbench"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
)

func newSimBench(w *world) *cobra.Command {
	var asJSON, verbose, list, predictions bool
	var seed uint64
	var hours float64
	var files []string
	var random int
	c := &cobra.Command{
		Use:   "bench [NAME...]",
		Short: "Try the diagnosis on every scenario, in virtual time",
		Long: `Lets the scenarios of the library happen in virtual time: a simulated server
with its load and its faults, diagnosed as a real one would be. Each scenario
is run as it is, with the change that must help, with one that must not, and
with what rooftop itself recommends; the table says whether the diagnosis is
right and what every change brought.

A NAME is a case (S5), its name (seat-capped), a pair of model and hardware
(8b-a100) or one scenario (seat-capped/8b-a100). Without one all are run, which
takes minutes. Equal seeds give equal results.

--random N goes where nobody wrote down what is true: servers with some flags
set by chance under loads drawn by chance. What rooftop recommends for each is
tried, and counted by whether it helps.

--predictions follows what rooftop recommends, up to three changes on each
server, and holds what was predicted of each against what it did: how far the
middle lies off, and how often low to high, the 80 % interval, holds what was
measured. Without a NAME it does so on the whole library, each scenario as it
is and three times varied, and on 400 servers drawn by chance. Half of all
servers, by their names, is shown as held out: nothing is fitted on it.

Everything here is SIMULATED, and scores are self-tests: simulator and
diagnosis share no code, but they are written by the same hands.

EXIT CODES
  0  every row is as its file says, known gaps included
  1  a row is not
  2  the command line is off, or a scenario file is`,
		Example: `  rooftop sim bench S2
  rooftop sim bench seat-capped/8b-a100 -v
  rooftop sim bench S3 --hours 1
  rooftop sim bench --file my-case.yaml
  rooftop sim bench --random 200 --seed 7`,
		RunE: func(c *cobra.Command, words []string) error {
			if c.Flags().Changed("random") && random == 0 {
				return usage("sim bench: --random 0: give 1 to %d", maxRandom)
			}
			chosen, err := chooseScenarios(files, words, random, seed)
			if err != nil {
				return usage("sim bench: %w", err)
			}
			if list {
				return listCases(w, chosen, asJSON)
			}
			if !(hours >= 0 && hours <= 1000) {
				return usage("sim bench: --hours %v: give 0 to 1000", hours)
			}
			if predictions {
				return foretell(c, w, chosen, random == 0 && len(words)+len(files) == 0, seed, hours, verbose)
			}
			shown := 0
			done := func(r *simbench.Row) {
				shown++
				if _, ok := terminal(w.stderr); ok {
					fmt.Fprintf(w.stderr, "\r\x1b[K%d of %d: %s", shown, len(chosen), r.Scenario.Name)
				}
			}
			rows, err := simbench.Bench(c.Context(), chosen, simbench.Options{Seed: seed, Hours: hours}, done)
			if _, ok := terminal(w.stderr); ok {
				fmt.Fprint(w.stderr, "\r\x1b[K")
			}
			if ended := signalOf(c.Context()); ended != 0 {
				return exit(ended)
			}
			if err != nil {
				return fail(exitError, err)
			}
			switch {
			case asJSON:
				err = writeJSON(w, simbench.Document(rows))
			case random > 0:
				err = simbench.WriteCensus(w.stdout, rows, verbose)
			default:
				err = simbench.WriteTable(w.stdout, rows, verbose)
			}
			if err != nil {
				return fail(exitError, err)
			}
			for i := range rows {
				if random == 0 && rows[i].Surprising() {
					return exit(exitError)
				}
			}
			return nil
		},
	}
	g := groupFlags(c)
	f := g.group("What is run")
	f.BoolVar(&list, "list", false, "list the scenarios with their stories, and run nothing")
	f.StringArrayVar(&files, "file", nil, "take the scenarios of a YAML `FILE` instead of the library's (repeatable)")
	f.IntVar(&random, "random", 0, "instead of scenarios, `N` servers and loads drawn by chance: does what rooftop recommends help?")
	f.BoolVar(&predictions, "predictions", false, "score what rooftop predicts of its own recommendations")
	f.Uint64Var(&seed, "seed", 1, "the `SEED` of server and load")
	f.Float64Var(&hours, "hours", 0, "measure for `H` hours of the server's time instead of the scenario's own")
	f = g.group("The report")
	f.BoolVarP(&verbose, "verbose", "v", false, "every finding, and every expectation with its figures")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	g.done()
	return c
}

// foretell scores predictions; standard adds variants and servers drawn by chance.
func foretell(c *cobra.Command, w *world, list []scenarios.Scenario, standard bool, seed uint64, hours float64, verbose bool) error {
	const worst = 15
	var cases []simbench.Case
	if standard {
		cases = simbench.Cases(list, seed)
	} else {
		for _, sc := range list {
			cases = append(cases, simbench.Case{Scenario: sc, Seed: seed})
		}
	}
	_, tty := terminal(w.stderr)
	told, err := simbench.Foretell(c.Context(), cases, simbench.Options{Hours: hours}, func(n int) {
		if tty {
			fmt.Fprintf(w.stderr, "\r\x1b[K%d of %d servers", n, len(cases))
		}
	})
	if tty {
		fmt.Fprint(w.stderr, "\r\x1b[K")
	}
	if ended := signalOf(c.Context()); ended != 0 {
		return exit(ended)
	}
	if err == nil {
		err = simbench.WritePredictions(w.stdout, told, worst, verbose)
	}
	if err != nil {
		return fail(exitError, err)
	}
	return nil
}

const (
	maxScenarioFile = 1 << 20 // bytes of a user's scenario file
	maxRandom       = 100_000
)

func chooseScenarios(files, words []string, random int, seed uint64) ([]scenarios.Scenario, error) {
	switch {
	case random < 0 || random > maxRandom:
		return nil, fmt.Errorf("--random %d: give 1 to %d", random, maxRandom)
	case random > 0 && len(files)+len(words) > 0:
		return nil, errors.New("--random takes neither a NAME nor --file")
	case random > 0:
		list := make([]scenarios.Scenario, random)
		for i := range list {
			list[i] = simbench.Random(seed, i)
		}
		return list, nil
	case len(files) == 0:
		return scenarios.Select(words...)
	}
	var all []scenarios.Scenario
	for _, name := range files {
		text, err := readFile(name, maxScenarioFile)
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

func listCases(w *world, list []scenarios.Scenario, asJSON bool) error {
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
		return writeJSON(w, out)
	}
	last := ""
	for _, s := range list {
		if name := s.CaseName(); name != last {
			fmt.Fprintf(w.stdout, "%s %s: %s\n", s.Case, name, s.Story)
			last = name
		}
		fmt.Fprintf(w.stdout, "  %-34s %s, measured %v after %v\n", s.Name, s.GPU, s.Measure.For.Round(time.Second), s.Measure.After.Round(time.Second))
	}
	return nil
}
