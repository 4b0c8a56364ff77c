// Package promtext reads Prometheus exposition text, classic and OpenMetrics,
// as servers really send it: filtered by line before anything is parsed, judged
// by content and never by its declared type. It is the only importer of expfmt.
//
// A page is read whole or not at all: a truncated or malformed page is an error,
// never a part of its values.
package promtext

// Filter is the set of wire names that pass. It is immutable once built.
type Filter struct {
	names map[string]struct{}
}

// NewExactFilter returns a filter that passes the samples with these names as
// they stand on the page (a counter's with _total, a histogram's with _bucket,
// _sum and _count), and no others.
func NewExactFilter(names ...string) *Filter {
	f := &Filter{names: make(map[string]struct{}, len(names))}
	for _, name := range names {
		f.names[name] = struct{}{}
	}
	return f
}

// wants reports whether samples of that wire name pass. A nil filter passes all.
func (f *Filter) wants(name []byte) bool {
	if f == nil {
		return true
	}
	_, found := f.names[string(name)]
	return found
}
