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
	entries []Model
	names   [][]modelName // id and aliases of an entry
	lower   [][]string    // the same as they are written, without publisher
	all     []words       // every token of an entry's names
	users   int           // the first entries are a user's
}

func newModelIndex(models []Model) modelIndex {
	x := modelIndex{entries: models}
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

// FindModel returns the model of that name: a Hugging Face id, a repack of one
// ("nvidia/Llama-3.3-70B-Instruct-FP4"), a path, or a short name
// ("qwen3-32b"). Names are compared as whole tokens without case; families,
// versions, sizes and every word that names another model must agree, so that
// a distilled model never matches its teacher and a fine-tune under a name of
// its own is unknown. Publisher, tuning, quantization and context length do not
// count. A name that fits models of different shape is an *AmbiguousError, one
// that fits none wraps ErrUnknown. NativeDType is that of the entry; DTypeOfName
// tells what a repack's name says.
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
	for _, fits := range []func(m Model, n modelName) (extra int, ok bool){q.equals, q.saysLess, q.saysMore} {
		var hits []int
		extra := make([]int, len(x.entries)) // how far the best of an entry's names is off
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
		hits = preferUsers(hits, x.users)
		slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(extra[a], extra[b]) })
		first := x.entries[hits[0]]
		err := &AmbiguousError{Kind: "model", Name: name}
		same := true
		for _, i := range hits {
			same = same && sameShape(first, x.entries[i])
			err.Candidates = append(err.Candidates, x.entries[i].ID)
		}
		if same {
			return first, nil
		}
		return Model{}, err
	}
	query := newWords(slices.Concat(q.words, q.sizes, q.dates))
	return Model{}, unknown("model", name, nearest(query, len(x.entries),
		func(i int) words { return x.all[i] }, func(i int) string { return x.entries[i].ID }))
}

// equals: the same words; sizes and dates where both have them.
func (q modelName) equals(m Model, n modelName) (int, bool) {
	ok := len(q.words) > 0 && slices.Equal(q.words, n.words) && q.sizeFits(m, n) && len(q.sizes) >= len(n.sizes) &&
		q.dates.in(n.dates)
	return len(n.dates) - len(q.dates), ok
}

// distinct are words that a name has to say: a distilled model is not its
// teacher, one that sees is not the text model of the same size.
var distinct = []string{"distill", "vl"}

// saysLess: the query's words are some of the entry's, a family among them.
func (q modelName) saysLess(m Model, n modelName) (int, bool) {
	family := slices.ContainsFunc(q.words, func(t string) bool { return len(t) >= 3 && !hasDigit(t) })
	ok := family && q.words.in(n.words) && q.dates.in(n.dates) && q.sizeFits(m, n) &&
		!slices.ContainsFunc(distinct, func(t string) bool { return n.words.has(t) && !q.words.has(t) })
	return len(n.words) - len(q.words) + len(n.dates) - len(q.dates), ok
}

// saysMore: the query has the entry's words and size and, beyond them, only a
// release date that the catalog does not know yet.
func (q modelName) saysMore(m Model, n modelName) (int, bool) {
	ok := len(q.words) > 0 && slices.Equal(q.words, n.words) && len(n.sizes) > 0 && slices.Equal(q.sizes, n.sizes) && len(n.dates) == 0
	return len(q.dates), ok
}

// sizeFits reports whether the sizes that the query names are those of the
// entry's name or, where that has none (phi-4, DeepSeek-V3), its parameter
// count cut or rounded to the same number of billions, or within 3 %.
func (q modelName) sizeFits(m Model, n modelName) bool {
	if len(q.sizes) == 0 || len(n.sizes) > 0 {
		return q.sizes.in(n.sizes)
	}
	for _, t := range q.sizes {
		b, total := sizeParams(t)/1e9, m.TotalParams/1e9
		if b != math.Floor(total) && b != math.Round(total) && !within(b, total, 0.03) {
			return false
		}
	}
	return true
}

// sameShape reports whether two models cost the same to serve: everything but
// names, sources and the longest context.
func sameShape(a, b Model) bool {
	for _, m := range []*Model{&a, &b} {
		m.ID, m.Aliases, m.Family, m.Source, m.MaxPositions = "", nil, "", "", 0
	}
	return reflect.DeepEqual(a, b)
}
