package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ErrUnknown says that no entry has the name.
var ErrUnknown = errors.New("not in the catalog")

// AmbiguousError says that a name fits several entries that differ.
type AmbiguousError struct {
	Kind       string   // "GPU", "CPU" or "model"
	Name       string   // as given
	Candidates []string // names of the entries, in catalog order
}

// Error lists the candidates and the next step.
func (e *AmbiguousError) Error() string {
	const most = 6
	list := strings.Join(e.Candidates[:min(most, len(e.Candidates))], ", ")
	if more := len(e.Candidates) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if e.Kind == "CPU" { // its name is read, and no flag gives another
		return fmt.Sprintf("CPU %q fits several: %s; describe it in a --catalog FILE", e.Name, list)
	}
	return fmt.Sprintf("%s %q fits several: %s; give one of them with --%s", e.Kind, e.Name, list, strings.ToLower(e.Kind))
}

func unknown(kind, name string, nearest []string) error {
	flag := "--" + strings.ToLower(kind)
	if len(nearest) == 0 {
		return fmt.Errorf("%s %q is %w: give one of `rooftop catalog list` with %s, or describe it in a --catalog FILE",
			kind, name, ErrUnknown, flag)
	}
	return fmt.Errorf("%s %q is %w (nearest: %s): give its name with %s, or describe it in a --catalog FILE",
		kind, name, ErrUnknown, strings.Join(nearest, ", "), flag)
}

// preferUsers leaves only a user's entries where any are among the hits,
// which are in order.
func preferUsers(hits []int, users int) []int {
	n, _ := slices.BinarySearch(hits, users)
	if n > 0 {
		return hits[:n]
	}
	return hits
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

// in reports whether every token of w is in other.
func (w words) in(other words) bool {
	for _, t := range w {
		if !other.has(t) {
			return false
		}
	}
	return true
}

func (w words) minus(other words) words {
	return slices.DeleteFunc(slices.Clone(w), other.has)
}

// split cuts a name into lower-case tokens of letters, digits and inner points:
// "H100-SXM5 (80GB)" is h100, sxm5, 80gb; "Llama-3.1" is llama, 3.1.
func split(s string) []string {
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

// nearest returns up to four of n entries whose tokens resemble the query's,
// best first.
func nearest(query words, n int, tokens func(i int) words, name func(i int) string) []string {
	type scored struct{ score, i int }
	var all []scored
	for i := range n {
		score := 0
		for _, q := range query {
			best := 0
			for _, t := range tokens(i) {
				best = max(best, likeness(q, t))
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
		out = append(out, name(s.i))
	}
	return out
}

// maxToken bounds what is compared letter by letter.
const maxToken = 32

// likeness weighs two tokens: a product or a family (h100, qwen) says much, a
// version or a size (3.1, 70b) little.
func likeness(a, b string) int {
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

// Distance is the Levenshtein distance of two short words, in bytes: how many to
// add, to leave out or to replace.
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
