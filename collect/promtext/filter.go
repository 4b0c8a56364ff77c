// Package promtext reads Prometheus exposition text, classic and OpenMetrics,
// as servers really send it: filtered by line before anything is parsed, judged
// by content and never by its declared type. It is the only importer of expfmt.
//
// A page is read whole or not at all: a truncated or malformed page is an error,
// never a part of its values.
package promtext

import "strings"

// Filter is the set of wire names that pass. It is immutable once built.
type Filter struct {
	names map[string]struct{}
}

// suffixes that a family's samples carry on the wire.
var suffixes = []string{"", "_total", "_bucket", "_sum", "_count", "_created"}

// NewFilter returns a filter that passes the samples of the named families with
// their suffixes: a counter may be named with or without its _total.
func NewFilter(families ...string) *Filter {
	f := &Filter{names: make(map[string]struct{}, len(families)*len(suffixes))}
	for _, family := range families {
		for _, suffix := range suffixes {
			f.names[family+suffix] = struct{}{}
			f.names[strings.TrimSuffix(family, "_total")+suffix] = struct{}{}
		}
	}
	return f
}

// NewExactFilter returns a filter that passes these wire names and no others.
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
