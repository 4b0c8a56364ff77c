package optrace

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// LevelFlag is rooftop's own option for the level of detail.
const LevelFlag = "--level"

// detailWord is a word for details on a command line.
type detailWord struct {
	name   string
	detail Detail
}

// words are in the order in which they are listed. The first ones are levels: each includes
// those before it.
var detailWords = []detailWord{
	{"token", LevelToken},
	{"graph", LevelGraph},
	{"operator", LevelOperator},
	{"tensor", LevelTensor},
	{"barriers", DetailBarrier},
	{"sched", DetailSched},
	{"syscalls", DetailSyscall},
	{"io", DetailIO},
	{"faults", DetailFault},
	{"counters", DetailCounters},
	{"sampling", DetailSample},
	{"all", LevelAll},
}

// levels is the number of entries of words that are levels.
const levels = 4

// aliases maps alternative spellings to the words.
var aliases = map[string]string{
	"tokens": "token", "graphs": "graph", "operators": "operator", "tensors": "tensor",
	"experts": "tensor", "backends": "graph", "barrier": "barriers", "syscall": "syscalls", "fault": "faults", "counter": "counters", "sample": "sampling", "samplers": "sampling",
}

// String returns the shortest list of words that [ParseDetail] reads as d: a level and the
// details added to it. A set that no list gives is spelt bit by bit; the empty set is
// "nothing".
func (d Detail) String() string {
	if d == 0 {
		return "nothing"
	}
	if d == LevelAll {
		return "all"
	}
	for i := levels - 1; i >= 0; i-- {
		level := detailWords[i]
		if d&level.detail != level.detail {
			continue
		}
		list := []string{level.name}
		rest := d &^ level.detail
		for _, w := range detailWords[levels : len(detailWords)-1] {
			if rest&w.detail != 0 {
				list = append(list, w.name)
				rest &^= w.detail
			}
		}
		if rest == 0 {
			return joinDetail(list)
		}
	}
	return d.bits()
}

// joinDetail joins words with "+" and omits the level that is the default of a list without
// one.
func joinDetail(list []string) string {
	if len(list) > 1 && list[0] == detailWords[levels-1].name {
		return strings.Join(list[1:], "+")
	}
	return strings.Join(list, "+")
}

// bits spells d bit by bit.
func (d Detail) bits() string {
	var list []string
	for ; d != 0; d &= d - 1 {
		if n := bits.TrailingZeros32(uint32(d)); n < len(detailNames) {
			list = append(list, "only "+detailNames[n])
		} else {
			list = append(list, fmt.Sprintf("only bit %d", n))
		}
	}
	return strings.Join(list, "+")
}

// ParseDetail parses words separated by "+" or commas: "tensor", "graph+sched", "barriers,io".
// If no level is among them, "tensor" is added: operators with their tensors.
func ParseDetail(s string) (Detail, error) {
	var d Detail
	level := false
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == '+' || r == ',' }) {
		word = strings.ToLower(strings.TrimSpace(word))
		if full, ok := aliases[word]; ok {
			word = full
		}
		i := slices.IndexFunc(detailWords, func(w detailWord) bool { return w.name == word })
		if i < 0 {
			return 0, fmt.Errorf("unknown detail %q: use one or more of %s, joined with +", word, LevelWords())
		}
		d |= detailWords[i].detail
		level = level || i < levels
	}
	if d == 0 {
		return 0, fmt.Errorf("no detail given: use one or more of %s, joined with +", LevelWords())
	}
	if !level {
		d |= LevelTensor
	}
	return d, nil
}

// LevelWords lists the words that [ParseDetail] accepts.
func LevelWords() string {
	var list []string
	for _, w := range detailWords {
		list = append(list, w.name)
	}
	return strings.Join(list, ", ")
}
