package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ErrUnknown is wrapped by the error of a name that matches no entry.
var ErrUnknown = errors.New("not in the catalog")

// UnknownError is the error of a name that matches no entry. It wraps [ErrUnknown].
type UnknownError struct {
	Kind    string // "GPU", "CPU" or "model"
	Name    string // as given
	Nearest string // names of the nearest entries, "" if none is near
}

// Error names the nearest entries and the next step.
func (e *UnknownError) Error() string {
	flag := "--" + strings.ToLower(e.Kind)
	if e.Nearest == "" {
		return fmt.Sprintf("%s %q is %v: give one of `rooftop catalog list` with %s, or describe it in a --catalog FILE", e.Kind, e.Name, ErrUnknown, flag)
	}
	return fmt.Sprintf("%s %q is %v (nearest: %s): give its name with %s, or describe it in a --catalog FILE", e.Kind, e.Name, ErrUnknown, e.Nearest, flag)
}

// Unwrap returns ErrUnknown.
func (e *UnknownError) Unwrap() error { return ErrUnknown }

// AmbiguousError is the error of a name that matches several entries that differ.
type AmbiguousError struct {
	Kind       string   // "GPU", "CPU" or "model"
	Name       string   // as given
	Candidates []string // names of the entries, in catalog order
}

// Error lists the candidates and the next step.
func (e *AmbiguousError) Error() string {
	const maxListed = 6
	list := strings.Join(e.Candidates[:min(maxListed, len(e.Candidates))], ", ")
	if more := len(e.Candidates) - maxListed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if e.Kind == "CPU" { // there is no flag for the CPU
		return fmt.Sprintf("CPU %q fits several: %s; describe it in a --catalog FILE", e.Name, list)
	}
	return fmt.Sprintf("%s %q fits several: %s; give one of them with --%s", e.Kind, e.Name, list, strings.ToLower(e.Kind))
}

// index finds the entries of one kind by their names.
type index[E any] struct {
	kind    string // "GPU", "CPU" or "model"
	names   func(E) []string
	keys    func(name string) []string // of a name, the most exact first
	entries []E
	byKey   map[string][]int // entries in order
	users   int              // number of a user's entries, which come first
}

func newIndex[E any](kind string, entries []E, users int, names func(E) []string, keys func(string) []string) index[E] {
	x := index[E]{kind: kind, names: names, keys: keys, entries: entries, byKey: map[string][]int{}, users: users}
	for i, e := range entries {
		for _, name := range names(e) {
			for _, key := range keys(name) {
				if !slices.Contains(x.byKey[key], i) {
					x.byKey[key] = append(x.byKey[key], i)
				}
			}
		}
	}
	return x
}

// title returns the name of an entry in messages.
func (x *index[E]) title(i int) string { return x.names(x.entries[i])[0] }

// withUser returns a user's entries, followed by those of the index that have other names, and the
// number of a user's entries.
func (x *index[E]) withUser(user []E) (entries []E, users int) {
	title := func(e E) string { return x.names(e)[0] }
	entries = slices.Clone(user)
	for _, e := range x.entries {
		if !slices.ContainsFunc(user, func(u E) bool { return strings.EqualFold(title(u), title(e)) }) {
			entries = append(entries, e)
		}
	}
	return entries, x.users + len(user)
}

// find returns the entries that have a name: only the user's if any of them has it.
func (x *index[E]) find(name string) []int {
	for _, key := range x.keys(name) {
		if hits := preferUsers(x.byKey[key], x.users); len(hits) > 0 {
			return hits
		}
	}
	return nil
}

// preferUsers returns only the user's entries if any are among the hits, else all hits, which must
// be in order.
func preferUsers(hits []int, users int) []int {
	if n, _ := slices.BinarySearch(hits, users); n > 0 {
		return hits[:n]
	}
	return hits
}

// ambiguous returns the error for a name that several entries have.
func (x *index[E]) ambiguous(name string, hits []int) error {
	err := &AmbiguousError{Kind: x.kind, Name: name}
	for _, i := range hits {
		err.Candidates = append(err.Candidates, x.title(i))
	}
	return err
}

// unknown returns the error for a name that no entry has, with up to four whose names are the most similar.
func (x *index[E]) unknown(name string) error {
	out := &UnknownError{Kind: x.kind, Name: name}
	keys := x.keys(name)
	if len(keys) == 0 || len(keys[0]) > maxCompared {
		return out
	}
	distance := make([]int, len(x.entries))
	order := make([]int, len(x.entries))
	for i := range order {
		order[i], distance[i] = i, len(keys[0])
	}
	for key, entries := range x.byKey {
		d := Distance(keys[0], key)
		for _, i := range entries {
			distance[i] = min(distance[i], d)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance[a], distance[b]) })
	var near []string
	for _, i := range order[:min(4, len(order))] {
		if d := distance[i]; d <= max(1, len(keys[0])*2/5) && d <= 2*distance[order[0]] {
			near = append(near, x.title(i))
		}
	}
	out.Nearest = strings.Join(near, ", ")
	return out
}

// maxCompared bounds the length of names that are compared with all others, in bytes.
const maxCompared = 64

// tokenize splits a name into lower-case tokens of letters, digits and points between digits:
// "H100-SXM5 (80GB)" is h100, sxm5, 80gb; "Llama-3.1" is llama, 3.1.
func tokenize(s string) []string {
	rs := []rune(strings.ToLower(s))
	for i, r := range rs {
		inner := i > 0 && i+1 < len(rs) && unicode.IsDigit(rs[i-1]) && unicode.IsDigit(rs[i+1])
		switch {
		case r == '.' && inner, unicode.IsLetter(r), unicode.IsDigit(r):
		default:
			rs[i] = ' '
		}
	}
	return strings.Fields(string(rs))
}

// Distance returns the Levenshtein distance of two short words: the minimum number of bytes to
// insert, delete or replace.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
