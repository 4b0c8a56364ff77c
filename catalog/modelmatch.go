package catalog

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
)

// modelIndex holds the models with their names as tokens.
type modelIndex struct {
	index[Model]
	names [][]modelName // id and aliases of an entry
	lower [][]string    // the same names in lower case, without publisher
}

func newModelIndex(models []Model, users int) modelIndex {
	x := modelIndex{index: index[Model]{kind: "model", title: func(m Model) string { return m.ID }, entries: models, users: users}}
	for _, m := range models {
		var names []modelName
		var lower, tokens []string
		for _, s := range append([]string{m.ID}, m.Aliases...) {
			n := parseModelName(s)
			_, base := modelBase(s)
			names, lower = append(names, n), append(lower, strings.ToLower(base))
			tokens = append(append(append(tokens, n.words...), n.sizes...), n.dates...)
		}
		x.names, x.lower, x.all = append(x.names, names), append(x.lower, lower), append(x.all, newWords(tokens))
	}
	return x
}

// FindModel returns the model of that name: a Hugging Face ID, a repack of one
// ("nvidia/Llama-3.3-70B-Instruct-FP4"), a path, or a short name ("qwen3-32b"). Tokens are compared
// as a whole and without case. Families, versions, sizes and every word that names another model
// must agree: a distilled model never matches its teacher, and a fine-tune under another name is
// unknown. Publisher, tuning, quantization and context length do not count. The error is an
// *AmbiguousError if models of different shape match, and wraps ErrUnknown if none does.
// NativeDType is that of the entry; DTypeOfName reads the type from a repack's name.
func (c *Catalog) FindModel(name string) (Model, error) {
	x := c.models()
	q := parseModelName(name)
	_, base := modelBase(name)
	base = strings.ToLower(base)
	for i := range x.entries {
		if base != "" && slices.Contains(x.lower[i], base) {
			return x.entries[i], nil
		}
	}
	for _, fits := range []func(m Model, n modelName) (extra int, ok bool){q.matchesName, q.matchesPart, q.matchesLonger} {
		var hits []int
		extra := make([]int, len(x.entries)) // tokens by which the best of an entry's names differs
		for i, m := range x.entries {
			extra[i] = math.MaxInt
			for _, n := range x.names[i] {
				if more, ok := fits(m, n); ok {
					extra[i] = min(extra[i], 2*more+pick(slices.Equal(q.context, n.context), 0, 1))
				}
			}
			if extra[i] < math.MaxInt {
				hits = append(hits, i)
			}
		}
		if len(hits) == 0 {
			continue
		}
		hits = x.preferUsers(hits)
		slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(extra[a], extra[b]) })
		first := x.entries[hits[0]]
		if slices.ContainsFunc(hits, func(i int) bool { return !sameShape(first, x.entries[i]) }) {
			return Model{}, x.ambiguous(name, hits)
		}
		return first, nil
	}
	return Model{}, x.unknown(name, newWords(slices.Concat(q.words, q.sizes, q.dates)))
}

// matchesName reports whether the query has the words of an entry's name, and the same sizes and
// dates if both have them. extra is the number of tokens that the query omits.
func (q modelName) matchesName(m Model, n modelName) (int, bool) {
	ok := len(q.words) > 0 && slices.Equal(q.words, n.words) && q.sizeFits(m, n) && len(q.sizes) >= len(n.sizes) &&
		q.dates.subsetOf(n.dates)
	return len(n.dates) - len(q.dates), ok
}

// requiredWords lists words that a query must contain to match a name with them: a distilled model is
// not its teacher, and a vision model is not the text model of the same size.
var requiredWords = []string{"distill", "vl"}

// matchesPart reports whether the query's words are a part of the entry's, including a family. extra
// is the number of tokens that the query omits.
func (q modelName) matchesPart(m Model, n modelName) (int, bool) {
	family := slices.ContainsFunc(q.words, func(t string) bool { return len(t) >= 3 && !hasDigit(t) })
	ok := family && q.words.subsetOf(n.words) && q.dates.subsetOf(n.dates) && q.sizeFits(m, n) &&
		!slices.ContainsFunc(requiredWords, func(t string) bool { return n.words.has(t) && !q.words.has(t) })
	return len(n.words) - len(q.words) + len(n.dates) - len(q.dates), ok
}

// matchesLonger reports whether the query has the entry's words and size, and in addition only a
// release date, which may be newer than the catalog. extra is the number of dates.
func (q modelName) matchesLonger(m Model, n modelName) (int, bool) {
	ok := len(q.words) > 0 && slices.Equal(q.words, n.words) && len(n.sizes) > 0 && slices.Equal(q.sizes, n.sizes) && len(n.dates) == 0
	return len(q.dates), ok
}

// sizeFits reports whether the query's sizes are those of the entry's name or, if it has none (phi-4,
// DeepSeek-V3), its parameters in billions, truncated, rounded or within 3 %.
func (q modelName) sizeFits(m Model, n modelName) bool {
	if len(q.sizes) == 0 || len(n.sizes) > 0 {
		return q.sizes.subsetOf(n.sizes)
	}
	for _, t := range q.sizes {
		b, total := sizeParams(t)/1e9, m.TotalParams/1e9
		if b != math.Floor(total) && b != math.Round(total) && !within(b, total, 0.03) {
			return false
		}
	}
	return true
}

// sameShape reports whether two models are equal except for names, sources and the longest context,
// and therefore cost the same to serve.
func sameShape(a, b Model) bool {
	for _, m := range []*Model{&a, &b} {
		m.ID, m.Aliases, m.Family, m.Source, m.MaxPositions = "", nil, "", "", 0
	}
	return reflect.DeepEqual(a, b)
}
