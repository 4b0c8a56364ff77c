package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// scenarioFlag starts the server of a scenario.
const scenarioFlag = "--sim-scenario"

// withScenario replaces the flag by the scenario's server, GPU and faults. The command line's own
// flags follow and take precedence. named reports whether the flag was given.
func withScenario(args []string) (expanded []string, named bool, err error) {
	name, rest := cutFlag(args, scenarioFlag)
	if name == "" {
		return args, false, nil
	}
	found, err := selectScenarios(name)
	if err != nil {
		return nil, false, cli.Usagef("sim: %s: %w", scenarioFlag, err)
	}
	s := &found[0]
	words := s.Arguments(strings.Fields(s.Server))
	for _, f := range s.Faults {
		words = append(words, "--sim-fault", faultText(f))
	}
	return append(words, rest...), true, nil
}

// selectScenarios is [scenarios.Select]; its error adds the name most like the first unknown one, and where all are
// listed.
func selectScenarios(words ...string) ([]settings.Scenario, error) {
	for _, word := range words {
		_, err := settings.Select(word)
		if err == nil {
			continue
		}
		list, _ := settings.All()
		var names []string
		for i := range list {
			names = append(names, list[i].Name, list[i].CaseName(), list[i].Pair())
		}
		return nil, fmt.Errorf("%w%s; 'rooftop demo --list' lists them", err, cli.Suggestion(strings.ToLower(word), names...))
	}
	return settings.Select(words...)
}

// cutFlag removes a flag and its value from a command line. value is "" without the flag.
func cutFlag(args []string, flag string) (value string, rest []string) {
	for i := 0; i < len(args); i++ {
		head, inline, ok := strings.Cut(args[i], "=")
		switch {
		case strings.ReplaceAll(head, "_", "-") != flag:
			rest = append(rest, args[i])
		case ok:
			value = inline
		case i+1 < len(args):
			i++
			value = args[i]
		}
	}
	return value, rest
}

// faultText formats a fault for --sim-fault.
func faultText(f settings.Fault) string {
	text := f.Kind + "@" + f.At.String()
	if f.For > 0 {
		text += "+" + f.For.String()
	}
	switch {
	case f.Kind == "slow", f.Kind == "errors":
		text += "x" + strconv.FormatFloat(f.Factor, 'g', -1, 64)
	case f.Delay > 0:
		text += "x" + f.Delay.String()
	}
	if f.Rank >= 0 {
		text += fmt.Sprintf("#%d", f.Rank)
	}
	return text
}
