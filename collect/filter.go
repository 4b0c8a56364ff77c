package collect

// Filter is an immutable set of wire names that pass.
type Filter struct {
	names map[string]struct{}
}

// NewExactFilter returns a filter that passes only samples with these names as
// written on the page (a counter's with _total, a histogram's with _bucket, _sum and
// _count).
func NewExactFilter(names ...string) *Filter {
	f := &Filter{names: make(map[string]struct{}, len(names))}
	for _, name := range names {
		f.names[name] = struct{}{}
	}
	return f
}

// wants reports whether samples with a wire name pass. A nil filter passes all.
func (f *Filter) wants(name []byte) bool {
	if f == nil {
		return true
	}
	_, found := f.names[string(name)]
	return found
}
