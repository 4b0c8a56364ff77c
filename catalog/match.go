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

// index holds the entries of one kind with the tokens of their names.
type index[E any] struct {
	kind    string         // "GPU", "CPU" or "model"
	title   func(E) string // name of an entry in messages
	entries []E
	all     []words // every token of an entry's names
	users   int     // number of a user's entries, which come first
}

// withUser returns a user's entries, followed by those of the index that have other names, and the
// number of a user's entries.
func (x *index[E]) withUser(user []E) (entries []E, users int) {
	entries = slices.Clone(user)
	for _, e := range x.entries {
		if !slices.ContainsFunc(user, func(u E) bool { return strings.EqualFold(x.title(u), x.title(e)) }) {
			entries = append(entries, e)
		}
	}
	return entries, x.users + len(user)
}

// preferUsers returns only the user's entries if any are among the hits, else all hits, which must
// be in order.
func (x *index[E]) preferUsers(hits []int) []int {
	if n, _ := slices.BinarySearch(hits, x.users); n > 0 {
		return hits[:n]
	}
	return hits
}

// ambiguous returns the error for a name that matches several entries.
func (x *index[E]) ambiguous(name string, hits []int) error {
	err := &AmbiguousError{Kind: x.kind, Name: name}
	for _, i := range hits {
		err.Candidates = append(err.Candidates, x.title(x.entries[i]))
	}
	return err
}

// unknown returns the error for a name that matches no entry, with the nearest ones.
func (x *index[E]) unknown(name string, query words) error {
	return &UnknownError{Kind: x.kind, Name: name, Nearest: x.nearest(query)}
}

// words is a sorted set of tokens.
type words []string

func newWords(tokens []string) words {
	w := words(slices.Clone(tokens))
	slices.Sort(w)
	return slices.Compact(w)
}

func (w words) has(token string) bool {
	_, ok := slices.BinarySearch(w, token)
	return ok
}

// subsetOf reports whether every token of w is in other.
func (w words) subsetOf(other words) bool {
	return !slices.ContainsFunc(w, func(t string) bool { return !other.has(t) })
}

func (w words) minus(other words) words {
	return slices.DeleteFunc(slices.Clone(w), other.has)
}

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

// nearest returns the names of up to four entries whose tokens resemble the query's, best first; ""
// if there are none.
func (x *index[E]) nearest(query words) string {
	type scored struct{ score, i int }
	var all []scored
	for i, tokens := range x.all {
		score := 0
		for _, q := range query {
			best := 0
			for _, t := range tokens {
				best = max(best, similarity(q, t))
			}
			score += best
		}
		if score > 0 {
			all = append(all, scored{score, i})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var out []string
	for _, s := range all {
		if len(out) == 4 || s.score*2 < all[0].score {
			break
		}
		out = append(out, x.title(x.entries[s.i]))
	}
	return strings.Join(out, ", ")
}

// maxToken bounds the length of tokens that are compared by Distance, in bytes.
const maxToken = 32

// similarity returns the score of two tokens, 0 if they are unlike: a product or a family (h100,
// qwen) counts more than a version or a size (3.1, 70b).
func similarity(a, b string) int {
	switch {
	case a == b && (sizeToken(a) || len(a) <= 3 && a[0] >= '0' && a[0] <= '9'):
		return 3
	case a == b:
		return 8
	case len(a) > maxToken || len(b) > maxToken:
		return 0
	case sizeToken(a) && sizeToken(b):
		if within(sizeParams(a), sizeParams(b), 0.2) && sizeParams(a) > 0 {
			return 2
		}
		return 0
	case len(a) >= 3 && len(b) >= 3 && Distance(a, b) == 1:
		return 4
	case len(a) >= 6 && len(b) >= 6 && Distance(a, b) == 2:
		return 2
	}
	return 0
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
