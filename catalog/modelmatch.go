package catalog

import (
	"reflect"
	"slices"
)

func newModelIndex(models []Model, users int) index[Model] {
	return newIndex("model", models, users, func(m Model) []string { return append([]string{m.ID}, m.Aliases...) }, modelKeys)
}

// FindModel returns the model that has a name or an alias: a Hugging Face ID, a repack of one
// ("nvidia/Llama-3.3-70B-Instruct-FP4"), a path, or a name without publisher ("qwen3-32b"), in any case
// and with any separators. Publisher, tuning and quantization do not count, nor does a release date or
// a context length that no entry has. Every other word must agree: a distilled model never matches its
// teacher, and a fine-tune under another name is unknown. The error is an *AmbiguousError if models of
// different shape have the name, and wraps ErrUnknown if none does. NativeDType is that of the entry;
// DTypeOfName reads the type from a repack's name.
func (c *Catalog) FindModel(name string) (Model, error) {
	x := c.models()
	hits := x.find(name)
	if len(hits) == 0 {
		hits = x.find(undated(name))
	}
	if len(hits) == 0 {
		return Model{}, x.unknown(name)
	}
	first := x.entries[hits[0]]
	if slices.ContainsFunc(hits, func(i int) bool { return !sameShape(first, x.entries[i]) }) {
		return Model{}, x.ambiguous(name, hits)
	}
	return first, nil
}

// sameShape reports whether two models are equal except for names, sources and the longest context,
// and therefore cost the same to serve.
func sameShape(a, b Model) bool {
	for _, m := range []*Model{&a, &b} {
		m.ID, m.Aliases, m.Family, m.Source, m.MaxPositions = "", nil, "", "", 0
	}
	return reflect.DeepEqual(a, b)
}
