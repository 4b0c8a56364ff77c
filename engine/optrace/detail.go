package optrace

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// detailWord is a word that a command line takes for details.
type detailWord struct {
	name   string
	detail Detail
}

// words are in the order in which they are listed. The first ones are levels: each
// holds those before it.
var words = []detailWord{
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

// levels are how many of words are levels.
const levels = 4

// aliases are other words for the same.
var aliases = map[string]string{
	"tokens": "token", "graphs": "graph", "operators": "operator", "tensors": "tensor",
	"experts": "tensor", "backends": "graph", "barrier": "barriers", "syscall": "syscalls", "fault": "faults", "counter": "counters", "sample": "sampling", "samplers": "sampling",
}

// String is the shortest list of words that [ParseDetail] reads as the same: a level,
// and what is added to it. Sets that no such list makes are spelt bit by bit; "nothing"
// is none.
func (d Detail) String() string {
	if d == 0 {
		return "nothing"
	}
	if d == LevelAll {
		return "all"
	}
	for i := levels - 1; i >= 0; i-- {
		level := words[i]
		if d&level.detail != level.detail {
			continue
		}
		list := []string{level.name}
		rest := d &^ level.detail
		for _, w := range words[levels : len(words)-1] {
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

// joinDetail leaves out the level that a list without one has.
func joinDetail(list []string) string {
	if len(list) > 1 && list[0] == words[levels-1].name {
		return strings.Join(list[1:], "+")
	}
	return strings.Join(list, "+")
}

// bits spells every bit.
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

// ParseDetail reads a list of words, with "+" or a comma between them: "tensor",
// "graph+sched", "barriers,io". A list without a level stands on "tensor", operators
// with their tensors.
func ParseDetail(s string) (Detail, error) {
	var d Detail
	level := false
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == '+' || r == ',' }) {
		word = strings.ToLower(strings.TrimSpace(word))
		if full, ok := aliases[word]; ok {
			word = full
		}
		i := slices.IndexFunc(words, func(w detailWord) bool { return w.name == word })
		if i < 0 {
			return 0, fmt.Errorf("detail %q is not known: take one or more of %s, with + between them", word, detailWords())
		}
		d |= words[i].detail
		level = level || i < levels
	}
	if d == 0 {
		return 0, fmt.Errorf("no detail is named: take one or more of %s, with + between them", detailWords())
	}
	if !level {
		d |= LevelTensor
	}
	return d, nil
}

// detailWords lists the words.
func detailWords() string {
	var list []string
	for _, w := range words {
		list = append(list, w.name)
	}
	return strings.Join(list, ", ")
}
