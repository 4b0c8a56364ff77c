package settings

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.yaml
var scenarioFiles embed.FS

// Default is the default scenario of the demonstration.
const Default = "slot-capped/8b-a100"

var all = sync.OnceValues(load)

func load() ([]Scenario, error) {
	entries, err := scenarioFiles.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var out []Scenario
	for _, e := range entries {
		data, err := scenarioFiles.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		s, err := ParseScenario(e.Name(), data)
		if err != nil {
			return nil, err
		}
		out = append(out, s...)
	}
	slices.SortStableFunc(out, func(a, b Scenario) int { return cmp.Compare(caseNumber(a.Case), caseNumber(b.Case)) })
	return out, nil
}

func caseNumber(caseID string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(caseID, "S"))
	return n
}

// All returns the library in the order of its cases. The error is one of a library file, which tests check.
func All() ([]Scenario, error) {
	s, err := all()
	return slices.Clone(s), err
}

// Select returns the scenarios of the library that match any of the words: a case ("S5"), its name
// ("slot-capped"), a pair ("8b-l4") or a scenario ("slot-capped/8b-l4"). Without words it returns all. A word
// that matches nothing is an error.
func Select(words ...string) ([]Scenario, error) {
	list, err := All()
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return list, nil
	}
	for _, w := range words {
		if !slices.ContainsFunc(list, func(s Scenario) bool { return s.named(w) }) {
			return nil, fmt.Errorf("no scenario is called %q: give a case (%s), its name (%s), a pair of model and hardware (%s) or one scenario (%s)",
				w, list[0].Case, list[0].CaseName(), list[0].Pair(), list[0].Name)
		}
	}
	var out []Scenario
	for _, s := range list {
		if slices.ContainsFunc(words, s.named) {
			out = append(out, s)
		}
	}
	return out, nil
}

func (s Scenario) named(word string) bool {
	names := []string{s.Case, s.CaseName(), s.Pair(), s.Name}
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(word, name) })
}

// CaseName returns the part of the name that is common to all pairs of the case.
func (s Scenario) CaseName() string {
	name, _, _ := strings.Cut(s.Name, "/")
	return name
}

// Pair returns the name of the pair of model and hardware.
func (s Scenario) Pair() string {
	_, pair, _ := strings.Cut(s.Name, "/")
	return pair
}
