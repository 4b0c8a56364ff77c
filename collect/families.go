package collect

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
)

// Label is one name-value pair of a series.
type Label struct{ Name, Value string }

// Series is the identity of a sample: a wire name (with _total, _bucket, …) and
// its labels, sorted by name; a label without a value is none. A Series is immutable, and the same series has the
// same pointer from one page to the next.
type Series struct {
	Name   string
	Labels []Label

	page uint64 // number of the last page with this series
}

// Label returns the value of a label, "" if the series lacks it.
func (s *Series) Label(name string) string {
	for i := range s.Labels {
		if s.Labels[i].Name == name {
			return s.Labels[i].Value
		}
	}
	return ""
}

// String returns the series in exposition format: name{label="value"}.
func (s *Series) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for i, l := range s.Labels {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(l.Name + `="` + escape.Replace(l.Value) + `"`)
	}
	if len(s.Labels) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Sample is one value of a page. It may be NaN or infinite.
type Sample struct {
	*Series
	Value float64
}

// Families holds the samples of a page that passed the filter, in the page's
// order, and the memory that the next page reuses: keep one for each server.
// The zero value is ready to use. It is not safe for concurrent use.
type Families struct {
	Samples []Sample
	// Duplicates are series that the page has more than once. The first value counts, as
	// in Prometheus.
	Duplicates []*Series

	page   uint64             // number of the current page
	known  map[string]*Series // by the text in front of the value
	same   map[uint64]*Series // by hash of name and sorted labels: label order does not matter
	seed   maphash.Seed
	blocks map[string]*block // by what unseen.block returns, which many series share

	unseen  []unseen
	scratch []byte
}

// unseen is a sample whose series is new. Its text points into the page.
type unseen struct {
	text       []byte
	at         int32 // index into Samples
	line       int32 // of the page, from 1
	nameLength int32 // of the text; 0 if the name is within the braces
}

// block returns the text between the braces, which is empty without labels. If the name is
// within the braces, the text includes them, because it parses differently then.
func (u *unseen) block() []byte {
	if u.nameLength == 0 {
		return u.text
	}
	labels := bytes.TrimLeft(u.text[u.nameLength:], " \t")
	return bytes.TrimSuffix(bytes.TrimPrefix(labels, []byte("{")), []byte("}"))
}

// block holds what expfmt parsed of the text between braces.
type block struct {
	labels []Label
	sorted bool   // labels are sorted and distinct, and have values
	name   string // metric name if it is within the braces
}

// Reset empties f but keeps its memory.
func (f *Families) Reset() {
	f.Samples, f.Duplicates, f.unseen = f.Samples[:0], f.Duplicates[:0], f.unseen[:0]
}

// dropStale drops the known series if most of them are stale, so that a page with ever
// new labels uses bounded memory.
func (f *Families) dropStale() {
	if f.known == nil || len(f.known) > 2*len(f.Samples)+256 {
		f.known, f.same, f.blocks = map[string]*Series{}, map[uint64]*Series{}, map[string]*block{}
		f.seed = maphash.MakeSeed()
	}
}

// intern returns the one Series for a name and sorted labels.
func (f *Families) intern(name string, labels []Label) *Series {
	var h maphash.Hash
	h.SetSeed(f.seed)
	h.WriteString(name)
	for _, l := range labels {
		h.WriteByte(0xff) // in no UTF-8 text
		h.WriteString(l.Name)
		h.WriteByte(0xff)
		h.WriteString(l.Value)
	}
	key := h.Sum64()
	if s, found := f.same[key]; found && s.Name == name && slices.Equal(s.Labels, labels) {
		return s
	}
	s := &Series{Name: name, Labels: labels}
	f.same[key] = s
	return s
}
