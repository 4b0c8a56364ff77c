package scenarios

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
var files embed.FS

// Default is the scenario that the demonstration begins with.
const Default = "seat-capped/8b-a100"

var all = sync.OnceValues(load)

func load() ([]Scenario, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var out []Scenario
	for _, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		s, err := Parse(e.Name(), data)
		if err != nil {
			return nil, err
		}
		out = append(out, s...)
	}
	slices.SortStableFunc(out, func(a, b Scenario) int { return cmp.Compare(number(a.Case), number(b.Case)) })
	return out, nil
}

func number(caseID string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(caseID, "S"))
	return n
}

// All returns the library in the order of its cases. The error is that of a
// file of the library, which its tests exclude.
func All() ([]Scenario, error) {
	s, err := all()
	return slices.Clone(s), err
}

// Select returns the scenarios of the library that any of the words names: a
// case ("S5"), its name ("seat-capped"), a pair ("8b-l4") or a scenario
// ("seat-capped/8b-l4"). Without a word it is all of them.
func Select(words ...string) ([]Scenario, error) {
	list, err := All()
	if err != nil {
		return nil, err
	}
	return Among(list, words...)
}

// Among is [Select] from a list.
func Among(list []Scenario, words ...string) ([]Scenario, error) {
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
	name, pair, _ := strings.Cut(s.Name, "/")
	for _, n := range []string{s.Case, name, pair, s.Name} {
		if strings.EqualFold(word, n) {
			return true
		}
	}
	return false
}

// CaseName is the name that the case has on every pair.
func (s Scenario) CaseName() string {
	name, _, _ := strings.Cut(s.Name, "/")
	return name
}

// Pair names model and hardware.
func (s Scenario) Pair() string {
	_, pair, _ := strings.Cut(s.Name, "/")
	return pair
}
